"""The API documentation in a browser, with the session of whoever is logged in."""

import pytest

from pools.models import Cluster
from tests.e2e.conftest import Visit

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
    visit.open("/api/v1/docs/")
    page.get_by_role("link", name="Create a token").first.click()
    page.get_by_role("button", name="Create token").click()
    assert page.locator(".cad-call").inner_text().startswith("curl -H")
    page.get_by_role("link", name="API reference").click()
    page.locator(".opblock-tag").first.wait_for()
