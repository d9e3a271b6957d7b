"""A field of a form and a filter of a list suggest names while one types, where a menu would be long."""

from typing import Any

import pytest

from pools.models import Container
from pools.platform.admin import related
from tests import eventually
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for_names(field: Any, text: str) -> None:
    """Type, and wait until names that contain the text are offered, and no others."""
    field.fill("")
    field.press_sequentially(text)
    offered = (
        "e => e.list.options.length && [...e.list.options].every(o => o.value.includes(e.value))"
    )
    eventually.until(lambda: field.evaluate(offered))


def test_names_are_suggested(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MENU", 1)
    page = visit.page
    visit.open("/admin/pools/container/add/")
    field = page.locator("input[name=space]")
    wait_for_names(field, "frank")
    field.fill("demo-frankfurt")
    page.fill("input[name=cidr]", "192.0.2.128/25")
    page.locator(".cad-submit button[type=submit]").first.click()
    page.wait_for_load_state("networkidle")
    container = Container.objects.get(cidr="192.0.2.128/25")
    assert container.space
    assert container.space.cluster.name == "demo-frankfurt"

    visit.open("/admin/pools/block/")
    page.locator("[role=button]", has_text="Filters").press("Enter")
    field = page.locator("input[name=cluster]").first
    wait_for_names(field, "frank")


def test_the_network_of_an_import_is_named(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MENU", 1)
    visit.open("/admin/pools/import/add/")
    field = visit.page.locator("input[name=where]")
    wait_for_names(field, "demo")
