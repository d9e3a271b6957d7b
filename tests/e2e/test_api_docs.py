"""The API documentation in a browser: how it looks, its calls, and how one signs in."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from pools.models import Cluster
from pools.platform.rest import token_scopes
from tests.e2e.conftest import Visit
from tests.e2e.strict import Watched

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_menu_leads_to_documentation_that_renders(visit: Visit) -> None:
    visit.open("/admin/")
    page = visit.page
    page.locator("#nav-sidebar").get_by_role("link", name="Settings").click()
    page.locator("#tabs-items").get_by_role("link", name="API docs").click()
    page.locator(".opblock-tag[data-tag='addresses']").click()
    page.locator("[data-path='/api/v1/addresses/{address}/']").wait_for()
    page.locator(".opblock-tag[data-tag='webhook-targets']").click()
    page.locator("[data-path='/api/v1/webhook-targets/']").first.wait_for()
    assert visit.hosts == {visit.url.removeprefix("http://")}
    page.get_by_role("link", name="Back to Cadastre").click()
    page.wait_for_url("**/admin/")


def test_try_it_out_writes_with_the_session(visit: Visit) -> None:
    page = visit.page
    visit.open("/api/v1/docs/#/clusters")
    block = page.locator(".opblock-post", has=page.locator("[data-path='/api/v1/clusters/']"))
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.locator("textarea").fill('{"name": "from-the-docs"}')
    block.get_by_role("button", name="Execute").click()
    block.locator(".live-responses-table .response-col_status", has_text="201").wait_for()
    assert Cluster.objects.filter(name="from-the-docs").exists()


def test_a_token_and_the_first_call_are_two_clicks_away(visit: Visit) -> None:
    page = visit.page
    visit.open(DOCS)
    page.get_by_role("link", name="Create a token").first.click()
    page.get_by_role("button", name="Create token").click()
    assert page.locator(".cad-call").inner_text().startswith("curl -H")
    page.get_by_role("link", name="API reference").click()
    page.locator(".opblock-tag").first.wait_for()


DOCS = "/api/v1/docs/"


def _open(visit: Visit) -> Any:
    visit.open(DOCS)
    visit.page.locator(".opblock-tag").first.wait_for()
    return visit.page


@pytest.mark.parametrize("visit", [1440, 720, 390], indirect=True)
def test_it_has_the_width_of_the_window_and_is_folded(visit: Visit) -> None:
    page = _open(visit)
    width = page.viewport_size["width"]
    assert page.locator(".opblock-tag").first.bounding_box()["width"] > 0.85 * width
    assert page.locator("#swagger-ui main").evaluate("e => getComputedStyle(e).marginTop") == "0px"
    assert page.locator(".opblock").count() == 0
    assert not visit.scrolls_sideways()


def test_a_section_is_found_by_its_name(visit: Visit) -> None:
    page = _open(visit)
    every = page.locator(".opblock-tag").count()
    page.get_by_placeholder("Filter by tag").fill("clusters")
    page.locator(".opblock-tag[data-tag='pools']").wait_for(state="detached")
    assert 0 < page.locator(".opblock-tag").count() < every


@pytest.mark.parametrize(("scheme", "is_dark"), [("dark", True), ("light", False)])
def test_it_is_dark_where_the_system_is(visit: Visit, scheme: str, is_dark: bool) -> None:
    visit.page.emulate_media(color_scheme=scheme)
    page = _open(visit)
    for place in ("body", ".swagger-ui .scheme-container"):
        color = page.locator(place).evaluate("e => getComputedStyle(e).backgroundColor")
        lightness = sum(int(part) for part in re.findall(r"\d+", color)[:3])
        assert (lightness < 3 * 80) is is_dark, (place, color)


def test_a_theme_that_was_chosen_goes_before_the_systems(visit: Visit) -> None:
    visit.open("/admin/")
    visit.page.evaluate("localStorage.setItem('_x_adminTheme', '\"dark\"')")
    page = _open(visit)
    assert page.evaluate("document.documentElement.className") == "dark-mode"


def _authorize(page: Any, token: str) -> None:
    page.get_by_role("button", name="Authorize").click()
    dialog = page.locator(".dialog-ux")
    assert "Create a token for yourself." in dialog.inner_text()
    dialog.locator("input").last.fill(token)
    dialog.get_by_role("button", name="Apply credentials").last.click()
    dialog.get_by_role("button", name="Close").last.click()


def _status_of_alerts(page: Any) -> str:
    page.locator(".opblock-tag[data-tag='alerts']").click()
    block = page.locator(".opblock-get", has=page.locator("[data-path='/api/v1/alerts/']"))
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    status = block.locator(".live-responses-table tbody .response-col_status").first
    status.wait_for()
    return str(status.inner_text()).split()[0]


@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_token_is_used_and_kept_with_its_scheme_or_bare(visit: Visit, scheme: str) -> None:
    page = _open(visit)
    text = token_scopes.create_token(get_user_model().objects.get(username="admin"))
    _authorize(page, f"{scheme}{text}")
    page.context.clear_cookies()  # nothing but the token is left
    with page.expect_request(re.compile("/api/v1/alerts/")) as request_info:
        assert _status_of_alerts(page) == "200"
    assert request_info.value.headers["authorization"] == f"Bearer {text}"
    assert text in page.evaluate("JSON.stringify(localStorage)")


def test_a_wrong_token_is_refused_beside_a_session(visit: Visit) -> None:
    page = _open(visit)
    visit.expected.add(401)
    _authorize(page, "Bearer 0000")
    assert _status_of_alerts(page) == "401"
    visit.complaints[:] = [text for text in visit.complaints if "schema request" not in text]


def test_without_a_session_it_leads_to_the_login_and_back(
    browser: Watched, live_server: Any
) -> None:
    get_user_model().objects.create_superuser("admin", password="a password of the tests")
    page = browser.new_context().new_page()
    page.goto(live_server.url + DOCS)
    assert "/admin/login/" in page.url
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", "a password of the tests")
    page.press("input[name=password]", "Enter")
    page.locator(".opblock-tag").first.wait_for()
    assert page.url == live_server.url + DOCS
