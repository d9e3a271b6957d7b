"""The list of imports, and who sees which: an owner of VMs their own, a viewer all."""

from __future__ import annotations

import pytest
from django.urls import reverse

from claims.models import Network, VMImport
from tests.claims import worlds
from tests.claims.imports import drafts, pages

pytestmark = pytest.mark.django_db
LIST = "admin:pools_import_changelist"


@pytest.fixture
def network() -> Network:
    return worlds.network()


@pytest.fixture
def foreign(network: Network) -> VMImport:
    return drafts.draft(network, drafts.row("hidden-vm", drafts.mac(7), "10.0.0.7"))


def test_the_list_says_what_each_is(network: Network, foreign: VMImport) -> None:
    client = pages.browser("viewer")
    shown = pages.text(client.get(reverse(LIST)))
    for item in (f"Import {foreign.pk}", "ready for review", "new", "1", "VMs", "tester"):
        assert item in shown
    assert f"Import {foreign.pk}" in pages.text(client.get(reverse(LIST), {"q": "tester"}))
    filtered = {"status": "committed", "kind": "vm", "cluster": network.cluster_id}
    assert f"Import {foreign.pk}" not in pages.text(client.get(reverse(LIST), filtered))
    rows = b"".join(client.get(reverse("admin:pools_import_export")).streaming_content)  # type: ignore[attr-defined]
    assert b"drafted" in rows
    assert "Discard draft" not in pages.page(client, foreign)
    assert client.post(pages.url(foreign), {"action": "commit"}).status_code == 403


def test_an_empty_list_offers_the_first_step(network: Network) -> None:
    assert "No imports yet" in pages.text(pages.browser().get(reverse(LIST)))


@pytest.mark.exhaustive
def test_an_owner_imports_for_their_own_namespaces(network: Network, foreign: VMImport) -> None:
    client = pages.owner(network, "shop")
    assert "hidden-vm" not in pages.text(client.get(reverse(LIST)))
    assert client.get(pages.url(foreign)).status_code == 404
    assert client.post(pages.url(foreign), {"action": "cancel"}).status_code == 404
    assert 'name="namespace" value="shop"' in pages.text(client.get(reverse(pages.NEW)))
    client.post(reverse(pages.NEW), pages.typed(network))
    vm_import = VMImport.objects.latest("pk")
    assert (vm_import.limited, vm_import.counts["new"]) == (True, 1)
    assert "Committed: 1 new." in pages.do(client, vm_import, "commit")
    client.post(reverse(pages.NEW), pages.typed(network, namespace="bank", ips="10.0.0.9"))
    other = VMImport.objects.latest("pk")
    assert other.counts["invalid"] == 1


def test_only_networks_that_are_seen_can_be_chosen(network: Network) -> None:
    hidden = worlds.network("hidden-net", subnets=("10.9.0.0/24",))
    client = pages.owner(network, "shop")
    assert "hidden-net" not in pages.text(client.get(reverse(pages.NEW)))
    answer = client.post(reverse(pages.NEW), pages.typed(hidden))
    assert answer.context["form"].errors["where"]
