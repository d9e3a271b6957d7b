"""Several networks or MAC entries are edited, or deleted, on one page."""

from typing import Any

import pytest
from django.urls import reverse

from claims.models import Entry, EntryEvent, IndexEntry, Network
from tests import people
from tests.claims import worlds
from tests.edges import api as apis

MACS = [f"02:00:00:00:00:0{n}" for n in range(1, 4)]


@pytest.fixture
def entries() -> list[Entry]:
    ippool = worlds.ippool(worlds.network("prod-network"), "prod-pool")
    return [
        worlds.entry(ippool, mac, f"10.0.0.{n}/24", vm=f"vm-{n}", namespace="shop")
        for n, mac in enumerate(MACS, start=10)
    ]


def _url(name: str, rows: list[Any]) -> str:
    return reverse(f"admin:claims_{name}", query={"id": [row.pk for row in rows]})


def _confirm(url: str, data: dict[str, str]) -> Any:
    browser = people.browser()
    preview = browser.post(url, data)
    assert preview.status_code == 200
    return browser.post(url, data | {"_confirmed": preview.context["agreed"]})


def test_entries_move_to_another_namespace(entries: list[Entry]) -> None:
    data = {"namespace": "bank", "note": "moved", "reason": "merger"}
    assert _confirm(_url("entry_bulk_edit", entries[:2]), data).status_code == 302
    moved = Entry.objects.filter(namespace="bank", note="moved").order_by("pk")
    assert list(moved.values_list("mac", "vm")) == [(MACS[0], "vm-10"), (MACS[1], "vm-11")]
    assert IndexEntry.objects.filter(namespace="bank").exists()
    events: Any = EntryEvent.objects.filter(pgh_label="changed")
    assert [event.pgh_context["reason"] for event in events] == ["merger"] * 2


def test_a_wrong_namespace_is_refused_beside_its_field(entries: list[Entry]) -> None:
    data = {"change_namespace": "on", "namespace": "Bank", "reason": "x"}
    answer = people.browser().post(_url("entry_bulk_edit", entries), data)
    assert "lower-case letters" in str(answer.context["form"].errors["namespace"])


@pytest.mark.exhaustive
def test_entries_are_deleted_after_a_preview(entries: list[Entry]) -> None:
    url = _url("entry_bulk_delete", entries[:2])
    assert MACS[0] in people.browser().post(url, {"reason": "gone"}).content.decode()
    assert Entry.objects.count() == 3
    assert _confirm(url, {"reason": "gone"}).status_code == 302
    assert Entry.objects.get().mac == MACS[2]


def test_a_network_that_follows_its_cluster_stops_all() -> None:
    ours = worlds.network("prod-network")
    theirs = worlds.network("other-network", follows_cluster=True, of=ours.cluster)
    url = _url("network_bulk_edit", [ours, theirs])
    both = {"change_description": "on", "description": "Blue", "reason": "x"}
    refused = people.browser().post(url, both | {"change_applied": "on", "applied": "on"})
    texts = [preview.refusals for preview in refused.context["previews"]]
    assert "read-only" in texts[0][0]
    assert "follows the cluster" in texts[1][0]
    assert _confirm(url, both).status_code == 302
    assert set(Network.objects.values_list("description", flat=True)) == {"Blue"}


def test_a_vm_owner_is_not_offered_it(entries: list[Entry]) -> None:
    browser = people.signed_in(apis.user("vm-owner", is_staff=True))
    assert "bulk_edit" not in browser.get(reverse("admin:claims_entry_changelist")).content.decode()
