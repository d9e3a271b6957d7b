"""Every page that the product links to, opened in a browser as each role: nothing complains.

The crawl starts at the overview and follows each link of each page. Of each URL pattern some pages are
opened, by turns on a light and a dark screen, and for the administrator one with each name in the query. Three
crawls look closer at one page of each pattern: at its widths, at what it is without JavaScript, and with axe.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import resolve
from playwright.sync_api import Error

from claims.operations import demo as claims_demo
from pools.register.demo import demo
from tests import demo_rows
from tests.e2e import fleet
from tests.e2e.strict import Watched

pytestmark = pytest.mark.django_db(transaction=True)

_NAMELESS = """() => [...document.querySelectorAll('button, a[href]')]
    .filter(e => e.checkVisibility() && !e.textContent.trim() && !e.ariaLabel && !e.title && !e.querySelector('[title]'))
    .map(e => e.outerHTML.slice(0, 100))"""

PASSWORD = "a password of the tests"
ROLES = ("administrator", "operator", "viewer", "vm-owner", "")  # "": nobody is logged in
# Of an empty register operators and viewers see what the administrator sees.
EMPTY_FOR = ("administrator", "vm-owner", "")
OF_A_PATTERN = {"administrator": 2, "vm-owner": 2}  # pages opened; of other roles one
WIDTHS = (1440, 720, 390)  # 720: 1440 at 200 %
_SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"
# Pairs of links, buttons and fields that cover each other, without what their cells cut off.
_OVERLAPS = """() => {
    const cuts = new Map();
    const cutOf = e => {
        if (!cuts.has(e)) cuts.set(e, findCut(e));
        return cuts.get(e);
    };
    const findCut = e => {
        const style = e && getComputedStyle(e);
        if (!e || /auto|scroll/.test(style.overflowX + style.overflowY)) return null;
        const outer = cutOf(e.parentElement);
        return style.overflowX === 'visible' ? outer : cut(e.getBoundingClientRect(), outer);
    };
    const cut = (box, by) => !by ? box : {
        left: Math.max(box.left, by.left), right: Math.min(box.right, by.right),
        top: Math.max(box.top, by.top), bottom: Math.min(box.bottom, by.bottom)};
    const lines = [...document.querySelectorAll('#content :is(a[href], button, input, select, textarea)')]
        .filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !e.closest('[class*=sticky]'))
        .flatMap(e => [...e.getClientRects()].map(box => cut(box, cutOf(e.parentElement)))
            .filter(box => box.right - box.left > 1 && box.bottom - box.top > 1).map(box => [e, box]));
    return lines.flatMap(([a, at], i) => lines.slice(i + 1)
        .filter(([b, box]) => Math.min(at.bottom, box.bottom) - Math.max(at.top, box.top) > 3
            && Math.min(at.right, box.right) - Math.max(at.left, box.left) > 3
            && !a.contains(b) && !b.contains(a))
        .map(([b]) => `${a.outerHTML.slice(0, 120)} covers ${b.outerHTML.slice(0, 120)}`));
}"""
# A script may follow the scheme a frame later, and the end of one change may begin another one.
_SETTLED = """async () => {
    for (let quiet = 0; quiet < 3; ) {
        await new Promise(requestAnimationFrame);
        const changes = document.getAnimations().filter(e => e instanceof CSSTransition);
        changes.forEach(e => e.finish());
        quiet = changes.length ? 0 : quiet + 1;
    }
}"""
_LINKS = """() => [...document.querySelectorAll('a[href]')]
    .map(link => [new URL(link.getAttribute('href'), document.baseURI).href, link.hasAttribute('download')])"""


@pytest.fixture(params=["demo fleet", "empty register"])
def register(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the roles that look at it."""
    for role in filter(None, ROLES):
        # The demo fleet gives the VM owner a namespace by this name.
        name = claims_demo.OWNER if role == "vm-owner" else role
        user = get_user_model().objects.create_user(name, password=PASSWORD, is_staff=True)
        user.groups.set([Group.objects.get(name=role)])
    if request.param == "demo fleet":
        demo.load()
        fleet.observed()
        fleet.operated()
        return ROLES
    return EMPTY_FOR


def test_nothing_complains(browser: Watched, live_server: Any, register: tuple[str, ...]) -> None:
    broken: list[str] = []
    for role in register:
        crawl = Crawl(browser, live_server.url, role)
        crawl.run()
        broken += [f"{role or 'nobody'}: {complaint}" for complaint in crawl.complaints]
    assert broken == []


@pytest.fixture
def demo_fleet() -> None:
    user = get_user_model().objects.create_superuser("administrator", password=PASSWORD)
    user.groups.set([Group.objects.get(name="administrator")])
    demo_rows.load()
    fleet.observed()
    fleet.operated()


@pytest.mark.parametrize("kind", ["widths", "no script", "axe"])
@pytest.mark.usefixtures("demo_fleet")
def test_each_page_is_for_everybody(browser: Watched, live_server: Any, kind: str) -> None:
    """No page scrolls sideways or covers its own controls; each shows its content without JavaScript; axe finds nothing."""
    examine = {"widths": _widths, "no script": _content, "axe": _barriers}[kind]
    crawl = CloseLook(browser, live_server.url, examine, scripts=kind != "no script")
    crawl.run()
    assert crawl.opened.total() > 80
    assert not crawl.complaints, "\n".join(crawl.complaints)


def _widths(page: Any) -> list[str]:
    complaints = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        complaints += [f"scrolls sideways at {width}"] if page.evaluate(_SIDEWAYS) else []
        complaints += [f"{width}: {text}" for text in page.evaluate(_OVERLAPS)[:3]]
    return complaints


def _content(page: Any) -> list[str]:
    content = page.locator("#content, body:not(:has(#content))")
    has_field = content.locator("input:visible, textarea:visible").count() > 0
    is_shown = content.is_visible() and (has_field or len(content.inner_text()) > 20)
    complaints = _widths(page) + ([] if is_shown else ["shows nothing without JavaScript"])
    opened = page.locator("#changelist-filter:visible, #modal-overlay:visible").count()
    return complaints + (["is covered by what only JavaScript closes"] if opened else [])


def _barriers(page: Any) -> list[str]:
    complaints = []
    if page.locator("#swagger-ui").count():  # the API documentation is drawn late
        page.wait_for_load_state("networkidle")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(_SETTLED)  # colours that change slowly have changed
        # All else is the same in both schemes, and the rows of a table are alike.
        rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
        context = {"exclude": [["tbody tr:nth-child(n + 21)"]]} if scheme == "dark" else None
        options = {"resultTypes": ["violations"], **rules}
        response = Axe().run(page, context, options).response
        complaints += [
            f"{scheme} {rule['id']} ({rule['impact']}): {rule['nodes'][0]['html'][:150]}"
            for rule in response["violations"]
            if rule["impact"] != "minor"
        ]
    return complaints


class Crawl:
    """One role's way through all pages that it is led to."""

    def __init__(self, browser: Watched, url: str, role: str, *, scripts: bool = True) -> None:
        self.browser, self.url, self.role = browser, url, role
        self.context = browser.new_context(
            viewport={"width": 1440, "height": 900}, java_script_enabled=scripts
        )
        self.page = self.context.new_page()
        self.opened: Counter[str] = Counter()
        self.asked: set[tuple[str, str]] = set()  # names in the query, by pattern
        self.complaints: list[str] = []

    def run(self) -> None:
        if self.role:
            self._log_in()
        waiting, observed = deque([("/admin/", False)]), {"/admin/"}
        while waiting:
            path, is_file = waiting.popleft()
            if not self._is_wanted(path):
                continue
            for link in self._open(path, is_file, dark=self.opened.total() % 2 == 0):
                if link[0] not in observed:
                    observed.add(link[0])
                    waiting.append(link)
            self.complaints += [f"{path}: {text}" for text in self.browser.take()]
        self.context.close()
        self.complaints += self.browser.take()

    def _is_wanted(self, path: str) -> bool:
        """Whether the page is to be opened; it is counted then."""
        parts = urlsplit(path)
        pattern = resolve(parts.path).route
        new = {
            (pattern, name) for name in parse_qs(parts.query, keep_blank_values=True)
        } - self.asked
        enough = self.opened[pattern] >= OF_A_PATTERN.get(self.role, 1)
        if enough and not (new and self.role == "administrator"):
            return False
        self.asked |= new
        self.opened[pattern] += 1
        return True

    def _log_in(self) -> None:
        name = claims_demo.OWNER if self.role == "vm-owner" else self.role
        self.page.goto(f"{self.url}/admin/login/")
        self.page.fill("input[name=username]", name)
        self.page.fill("input[name=password]", PASSWORD)
        self.page.press("input[name=password]", "Enter")
        self.page.wait_for_url("**/admin/")

    def _open(self, path: str, is_file: bool, *, dark: bool) -> list[tuple[str, bool]]:
        """The links of the page; a file is fetched only."""
        if not is_file:
            self.page.emulate_media(color_scheme="dark" if dark else "light")
            try:
                self.page.goto(self.url + path, wait_until="load")
            except Error as error:
                if "Download is starting" not in error.message:
                    raise
                is_file = True
        if is_file:
            answer = self.context.request.get(self.url + path)
            if not answer.ok:
                self.complaints.append(f"{path}: {answer.status}")
            return []
        self.complaints += [f"{path}: no text: {tag}" for tag in self.page.evaluate(_NAMELESS)]
        return [
            (parts.path + (f"?{parts.query}" if parts.query else ""), is_download)
            for href, is_download in self.page.evaluate(_LINKS)
            if (parts := urlsplit(href)).netloc == urlsplit(self.url).netloc
            and not parts.path.startswith(settings.STATIC_URL)
        ]


class CloseLook(Crawl):
    """An administrator's way through one page of each pattern, each of which is examined."""

    def __init__(
        self, browser: Watched, url: str, examine: Callable[[Any], list[str]], *, scripts: bool
    ) -> None:
        super().__init__(browser, url, "administrator", scripts=scripts)
        self._examine = examine

    def _is_wanted(self, path: str) -> bool:
        pattern = resolve(urlsplit(path).path).route
        self.opened[pattern] += 1
        return self.opened[pattern] == 1

    def _open(self, path: str, is_file: bool, *, dark: bool) -> list[tuple[str, bool]]:
        if is_file:
            return []
        links = super()._open(path, is_file, dark=dark)
        if links:  # a page, and no file
            self.complaints += [f"{path}: {text}" for text in self._examine(self.page)]
            self.page.set_viewport_size({"width": 1440, "height": 900})
        return links
