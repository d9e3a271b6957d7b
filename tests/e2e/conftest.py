"""A real browser (Debian's chromium) on a running site with the demo fleet."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import strict

PASSWORD = "a password of the tests"
CHROMIUM = pathlib.Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("needs /usr/bin/chromium (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    # Playwright runs an event loop in this thread; Django's ORM is told that this is no view.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[strict.Watched]:
    """Fails any test in which a page complained, or asked for what there is not."""
    watched = strict.Watched(chromium)
    yield watched
    watched.close()
    assert watched.complaints == []


class Visit:
    """A page, what it and the others of its test complained of, and which hosts it asked."""

    def __init__(self, browser: strict.Watched, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints = browser.complaints
        self.expected = browser.expected  # statuses of 400 and above
        self.hosts: set[str] = set()
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def open(self, path: str) -> None:
        answer = self.page.goto(self.url + path)
        assert answer.ok, f"{path}: {answer.status}"
        self.page.wait_for_load_state("networkidle")

    def click_in_menu(self, name: str) -> None:
        """Click a link of the menu *More* of an object's page."""
        self.page.locator(".cad-object-head summary").click()
        self.page.locator(".cad-menu").get_by_role("link", name=name, exact=True).click()

    def scrolls_sideways(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.fixture
def visit(browser: strict.Watched, live_server: Any, request: pytest.FixtureRequest) -> Visit:
    """Logged in as a superuser; the width is the test's parameter, 1440 without one."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from tests import demo_rows

    demo_rows.load()
    user = get_user_model().objects.create_superuser("admin", password=PASSWORD)
    width = getattr(request, "param", 1440)
    context = browser.new_context(viewport={"width": width, "height": 900})
    visit = Visit(browser, context.new_page(), live_server.url)
    client = Client()
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
    return visit
