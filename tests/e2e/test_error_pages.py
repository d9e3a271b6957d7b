"""What is refused or absent is told inside the site's frame, with a way back."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.strict import Watched

pytestmark = pytest.mark.django_db(transaction=True)


def _goes_back(page: Any) -> None:
    page.locator("#content").get_by_role("link", name="Overview").click()
    page.wait_for_url("**/admin/")


def test_what_is_not_there(visit: Visit) -> None:
    page = visit.page
    visit.expected.add(404)
    for path in ("/admin/pools/block/999999999/change/", "/admin/nope/"):
        page.goto(visit.url + path)
        assert page.locator("h1").inner_text().strip() == "Not found", path
        expect(page.locator("#nav-sidebar"), path).to_be_visible()
        _goes_back(page)


def test_what_one_may_not_do(visit: Visit) -> None:
    user = get_user_model().objects.get(username="admin")
    user.is_superuser = False
    user.save()
    user.groups.set([Group.objects.get(name="vm-owner")])
    visit.expected.add(403)
    visit.page.goto(f"{visit.url}/admin/pools/pool/")
    content = visit.page.locator("#content").inner_text()
    assert "Forbidden" in content
    assert "You lack the permission for this." in content
    _goes_back(visit.page)


def test_a_form_of_another_session(visit: Visit) -> None:
    page = visit.page
    visit.expected.add(403)
    visit.open("/admin/pools/pool/add/")
    page.context.clear_cookies(name="csrftoken")
    page.click("text=Add the pool")
    page.get_by_text("reload the page and submit the form again").wait_for()
    expect(page.locator("#nav-sidebar")).to_be_visible()


def test_without_a_login(browser: Watched, live_server: Any) -> None:
    browser.expected.add(404)
    page = browser.new_context(color_scheme="dark").new_page()
    page.goto(f"{live_server.url}/nope/")
    assert page.get_by_role("heading").inner_text() == "Not found"
    page.get_by_role("link", name="Overview").click()
    page.wait_for_url("**/admin/login/**")


def test_the_icon_that_browsers_ask_for(browser: Watched, live_server: Any) -> None:
    answer = browser.new_context().request.get(f"{live_server.url}/favicon.ico")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
