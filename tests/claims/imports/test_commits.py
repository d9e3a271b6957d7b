"""A draft is written: all of it or all but its bad rows, once, and taken back as long as nothing uses it."""

from typing import Any

import pytest
from django.test import Client

from claims.entries import entries
from claims.imports import drafts as import_drafts, manifests
from claims.models import Entry, IndexEntry, IPAMClaim, IPPool, Network, VMImport
from claims.models.history import EntryEvent
from pools.core import errors
from pools.models import Block, Event, ImportEvent
from pools.models.imports import ImportStatus as Status
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row
from tests.claims.worlds import BY


def test_entries_are_written_and_the_same_file_changes_nothing(network: Network) -> None:
    rows = [row("one", mac(1), "10.0.0.11"), row("two", mac(2), "10.0.0.12/24")]
    of = import_drafts.IMPORTS.commit(drafts.draft(network, *rows).pk, author=BY)
    assert (of.status, of.counts["new"]) == (Status.COMMITTED, 2)
    ippool = IPPool.objects.get(network=network)
    result = ippool.entries.order_by("mac").values_list("vm", "namespace", "ips", "source")
    assert list(result) == [
        ("one", "blue", ["10.0.0.11/24"], "import"),
        ("two", "blue", ["10.0.0.12/24"], "import"),
    ]
    held = Block.objects.filter(state="held").values_list("holder_id", flat=True)
    assert sorted(held) == ["blue/one", "blue/two"]
    written = of.rows.filter(written=True)
    assert set(written.values_list("object_id", flat=True)) == set(
        ippool.entries.values_list("pk", flat=True)
    )
    events = EntryEvent.objects.count()
    again = import_drafts.IMPORTS.commit(drafts.draft(network, *rows).pk, author=BY)
    assert drafts.counts(again) == {"unchanged": 2}
    assert (EntryEvent.objects.count(), ippool.entries.count()) == (events, 2)


def test_an_import_is_one_event_and_those_of_its_entries_name_it() -> None:
    of = drafts.draft(worlds.network(), row("one", mac(1), "10.0.0.11"))
    import_drafts.IMPORTS.commit(of.pk, author=BY)
    import_drafts.IMPORTS.undo(of.pk, author=BY)
    vm_import_events = ImportEvent.objects.filter(pgh_obj=of.pk).order_by("pgh_id")
    statuses = ["queued", "drafted", "committed", "undone"]
    assert [item.status for item in vm_import_events] == statuses
    reasons = EntryEvent.objects.values_list("pgh_context__reason", flat=True)
    assert set(reasons) == {f"import {of.pk}"}
    log = Event.objects.filter(type__startswith="import.").order_by("id")
    assert [item.type.removeprefix("import.") for item in log] == ["created", *statuses[1:]]
    assert (log[2].actor, log[2].message, log[2].reason) == ("tester", "1 new", f"import {of.pk}")


def test_what_became_true_since_the_draft_counts(network: Network) -> None:
    of = drafts.draft(network, row("one", mac(1), "10.0.0.11"))
    worlds.workload(network, "other", mac(9), "10.0.0.11")
    with pytest.raises(errors.ImportHasBadRows):
        import_drafts.IMPORTS.commit(of.pk, author=BY)
    assert not Entry.objects.exists()


def _changed() -> tuple[Any, VMImport]:
    network = worlds.network()
    blue = worlds.ippool(network)
    worlds.entry(blue, mac(1), "10.0.0.11/24", vm="one", namespace="blue", note="was here")
    of = drafts.draft(network, row("uno", mac(1), "10.0.0.21"), row("two", mac(2), "10.0.0.12"))
    return network, import_drafts.IMPORTS.commit(of.pk, author=BY)


def _places() -> set[tuple[str, str]]:
    return {(str(address), vm) for address, vm in IndexEntry.objects.values_list("address", "vm")}


def test_undone_is_what_was_before() -> None:
    _, of = _changed()
    assert _places() == {("10.0.0.21", "uno"), ("10.0.0.12", "two")}
    assert import_drafts.IMPORTS.undo(of.pk, author=BY).status == Status.UNDONE
    (entry,) = Entry.objects.all()
    assert (entry.mac, entry.vm, entry.note) == (mac(1), "one", "was here")
    assert entry.ips == ["10.0.0.11/24"]
    assert _places() == {("10.0.0.11", "one")}
    with pytest.raises(errors.ImportState):
        import_drafts.IMPORTS.undo(of.pk, author=BY)


def test_what_is_used_or_was_changed_is_not_undone() -> None:
    network, of = _changed()
    workload = worlds.workload(network, "two", mac(2), "10.0.0.12")
    with pytest.raises(errors.ImportInUse, match="runs"):
        import_drafts.IMPORTS.undo(of.pk, author=BY)
    workload.delete()
    entry = Entry.objects.get(mac=mac(2))
    entries.change(entry.pk, entries.EntrySpec(mac(2), ("10.0.0.13/24",)), author=BY)
    with pytest.raises(errors.ImportInUse, match="changed"):
        import_drafts.IMPORTS.undo(of.pk, author=BY)
    entries.delete([entry.pk], author=BY)
    assert import_drafts.IMPORTS.undo(of.pk, author=BY).status == Status.UNDONE


def test_claims_are_made_changed_and_taken_back(network: Network) -> None:
    worlds.claim(network, "old", namespace="blue", name="old.cluster.udn.blue", mac=mac(5))
    rows = [row("one", mac(1), "10.0.0.11"), row("old", mac(6)), row("any", mac(7))]
    of = drafts.draft(network, *rows, target="ipamclaims")
    assert drafts.counts(of) == {"new": 2, "changed": 1}
    import_drafts.IMPORTS.commit(of.pk, author=BY)
    values = IPAMClaim.objects.order_by("vm").values_list("name", "mac", "ips_requested")
    assert list(values) == [
        ("any.cluster.udn.blue", mac(7), []),
        ("old.cluster.udn.blue", mac(6), []),
        ("one.cluster.udn.blue", mac(1), ["10.0.0.11/24"]),
    ]
    again = drafts.draft(network, *rows, target="ipamclaims")
    assert drafts.counts(again) == {"unchanged": 3}
    import_drafts.IMPORTS.undo(of.pk, author=BY)
    assert list(IPAMClaim.objects.values_list("vm", "mac")) == [("old", mac(5))]


def test_a_claim_that_was_granted_is_neither_changed_nor_taken_back(network: Network) -> None:
    of = drafts.draft(network, row("one", mac(1), "10.0.0.11"), target="ipamclaims")
    import_drafts.IMPORTS.commit(of.pk, author=BY)
    IPAMClaim.objects.update(ips=["10.0.0.11/24"])
    again = drafts.draft(network, row("one", mac(1), "10.0.0.12"), target="ipamclaims")
    assert drafts.statuses(again) == {1: ("conflict", {"claim_fixed"})}
    same = drafts.draft(network, row("one", mac(1), "10.0.0.11"), target="ipamclaims")
    assert drafts.counts(same) == {"unchanged": 1}
    with pytest.raises(errors.ImportInUse):
        import_drafts.IMPORTS.undo(of.pk, author=BY)


def test_the_status_of_each_vm(network: Network) -> None:
    of = drafts.draft(network, *(row(f"vm-{n}", mac(n), f"10.0.0.{n + 10}") for n in range(1, 5)))
    import_drafts.IMPORTS.commit(of.pk, author=BY)
    worlds.workload(network, "vm-1", mac(1), "10.0.0.11")
    worlds.workload(network, "vm-2", mac(2), "10.0.0.99")
    entries.delete([Entry.objects.get(mac=mac(3)).pk], author=BY)
    statuses = ["running", "differing", "gone", "provisioned"]
    assert [*manifests.row_statuses(of, [1, 2, 3, 4]).values()] == statuses
    assert manifests.status_counts(of)["running"] == 1


@pytest.mark.exhaustive
def test_an_export_of_entries_is_unchanged_as_an_import(browser: Client) -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    of = worlds.ippool(network)
    entry = {"namespace": "blue", "note": "=1+1"}
    worlds.entry(of, "00:1a:4b:00:00:0a", "10.0.0.5/24", vm="web", **entry)
    worlds.entry(of, "00:1a:4b:00:00:0b", "10.0.0.6/24", "fd00::6/64", vm="db", **entry)
    text = browser.get("/admin/claims/entry/export/").getvalue()
    assert b"'=1+1" in text  # no formula for a spreadsheet
    draft = drafts.of_file(network, text)
    assert drafts.counts(draft) == {"unchanged": 2}
