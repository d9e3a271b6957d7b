"""The undo of a mirror run brings back what the run released, unless somebody else has it by then."""

from typing import Any

import pytest

from pools import models
from pools.core import errors
from pools.platform.imports import worker
from pools.register import pools
from pools.register.allocator import window
from pools.register.imports import sources, vanished
from tests import factories, people
from tests.edges import api as apis
from tests.register_imports.netbox_server import NetBox, nested
from tests.register_imports.sources import BY, counts, undo
from tests.register_imports.test_netbox_mirror import confirm, fill, filled, held, run, source

pytestmark = pytest.mark.django_db(transaction=True)


def state() -> dict[str, Any]:
    """Return what a mirror brings, with what its source says about it."""
    ranges = models.ReservedRange.objects.values_list("first", "last", "reason", "pool_cidr__cidr")
    records = models.RegisterRecord.objects.values_list(
        *("space__name", "target", "first", "last", "holder_id", "description", "details"),
        *("source_id", "external_id"),
    )
    containers = models.Container.objects.values_list("space__name", "cidr", "description")
    cidrs = models.PoolCIDR.objects.values_list("pool__name", "cidr", "pool__cooldown_seconds")
    tables: dict[str, Any] = {
        "ranges": ranges, "records": records, "containers": containers, "cidrs": cidrs
    }  # fmt: skip
    return {name: sorted(map(str, rows)) for name, rows in tables.items()} | {"held": held()}


def bad_rows(made: models.RegisterImport) -> list[tuple[str, str, str]]:
    """Return (address, status, code) for each reason of the rows."""
    rows = sorted(made.rows.all(), key=lambda row: int(row.first))
    return [(str(row.first), row.status, why["code"]) for row in rows for why in row.reasons]


def released(
    server: NetBox, *, cooldown: int = 0
) -> tuple[models.NetBoxSource, models.RegisterImport]:
    """Return a mirror and its second run, which has released 10.1.1.5 and two reserved ranges."""
    mirror = filled(server, cooldown_seconds=cooldown)
    del server.objects["ip-addresses"][0], server.objects["ip-addresses"][1]
    server.objects["ip-ranges"].clear()
    second = confirm(run(mirror))
    assert counts(second) == {"unchanged": 4, "released": 3}
    return mirror, second


@pytest.mark.exhaustive
def test_everything_comes_back(server: NetBox) -> None:
    fill(server)
    server.prefix("10.1.2.0/24", description="unused")
    server.prefix("10.1.2.0/24", vrf=nested("Blue"))
    server.address("10.1.1.9/24", "dhcp", dns_name="nine.example")
    mirror = source(server, cooldown_seconds=3600)
    run(mirror)
    before = state()
    server.objects["aggregates"].clear()
    del server.objects["prefixes"][2:]
    server.objects["ip-ranges"].clear()
    del server.objects["ip-addresses"][1:]
    server.address("10.1.1.77/24", dns_name="new.example")
    second = confirm(run(mirror))
    assert counts(second) == {"new": 1, "unchanged": 3, "released": 7}
    rows = second.rows.filter(status="released")
    assert sorted(f"{row.target} {row.first}" for row in rows) == [
        "address 10.1.1.6", "address 10.1.1.9", "container 10.0.0.0", "pool 10.1.2.0", "pool 10.1.2.0",
        "reserved 10.1.1.200", "reserved 10.1.1.7",
    ]  # fmt: skip
    assert not models.Pool.objects.filter(cidrs__cidr="10.1.2.0/24").exists()
    # Events name their cluster by it.
    assert models.AddressSpace.objects.filter(name="Blue").exists()
    undone = undo(second)
    assert (undone.status, counts(undone)) == ("undone", {"new": 1, "unchanged": 3, "released": 7})
    assert state() == before
    with pytest.raises(errors.ImportState):
        undo(second)
    assert state() == before
    assert counts(confirm(run(mirror))) == counts(second)  # the source still has none of it


def test_what_somebody_else_has_by_then_stays(server: NetBox) -> None:
    fill(server)
    for number in (8, 9):
        server.address(f"10.1.1.{number}/24", dns_name=f"h{number}.example")
    mirror = source(server, cooldown_seconds=0)
    run(mirror)
    del server.objects["ip-addresses"][:]
    server.objects["ip-ranges"].clear()
    second = confirm(run(mirror))
    pool = models.Pool.objects.get()
    factories.take(pool, factories.holder("vm-1"), cidr="10.1.1.5/32")
    models.Pool.objects.update(cooldown_seconds=3600)
    factories.take(pool, factories.holder("vm-2"), cidr="10.1.1.8/32")
    window.release_blocks([models.Block.objects.get(holder_id="vm-2").pk])
    factories.reserve(pool, "10.1.1.190-10.1.1.205")
    undone = undo(second)
    assert undone.status == "undone"
    assert counts(undone) == {"unchanged": 3, "conflict": 3, "released": 3}
    assert held() == {"10.1.1.5/32": ("vm-1", ""), "10.1.1.6/32": ("sw-1", ""),
                      "10.1.1.9/32": ("h9.example", "")}  # fmt: skip
    assert bad_rows(second) == [
        ("10.1.1.5", "conflict", "already_allocated"),
        ("10.1.1.8", "conflict", "cooling_down"),
        ("10.1.1.200", "conflict", "ranges_overlap"),
    ]
    row = second.rows.get(values__first="10.1.1.5")
    assert row.reasons[0]["message"] == "10.1.1.5 is held by vm vm-1"


def test_what_a_later_run_brought_back_stays(server: NetBox) -> None:
    mirror = filled(server, cooldown_seconds=0)
    aggregates, addresses = server.objects["aggregates"][:], server.objects["ip-addresses"][:]
    server.objects["aggregates"].clear()
    del server.objects["ip-addresses"][:2]
    second = confirm(run(mirror))
    server.objects |= {"aggregates": aggregates, "ip-addresses": addresses}
    aggregates[0]["description"] = "private"
    addresses[0] |= {"dns_name": "www.example", "tenant": None}
    assert counts(run(mirror)) == {"new": 3, "unchanged": 4}
    before = state()
    undone = undo(second)
    assert counts(undone) == {"unchanged": 6, "conflict": 1}
    assert bad_rows(second) == [("10.1.1.5", "conflict", "already_allocated")]
    assert state() == before


def test_a_pool_that_is_gone_refuses_its_addresses(server: NetBox) -> None:
    _, second = released(server)
    window.release_blocks(models.Block.objects.filter(state="held").values_list("pk", flat=True))
    pools.delete(models.Pool.objects.get().pk, author=BY)
    assert counts(undo(second)) == {"unchanged": 4, "invalid": 3}
    pairs = {(status, code) for _, status, code in bad_rows(second)}
    assert pairs == {("invalid", "outside_every_prefix")}


def test_a_cidr_that_is_being_removed_gets_nothing_back(server: NetBox) -> None:
    _, second = released(server)
    pools.set_pending(models.PoolCIDR.objects.get().pk, "removal", author=BY)
    assert counts(undo(second)) == {"unchanged": 4, "conflict": 3}
    assert {code for _, _, code in bad_rows(second)} == {"cidr_closed"}


def test_a_run_that_is_queued_asks_again(server: NetBox) -> None:
    mirror, second = released(server)
    queued = sources.start(mirror.pk, mirror=True, author=BY)
    undo(second)
    assert len(held()) == 2
    worker.process_import(queued.pk)
    third = models.RegisterImport.objects.get(pk=queued.pk)
    assert (counts(third), len(held())) == ({"unchanged": 4, "vanished": 3}, 2)
    assert counts(confirm(third)) == counts(second)
    undo(third)
    assert len(held()) == 2


def crash(*_: object, **__: object) -> None:
    raise RuntimeError("crash")


def test_a_release_that_crashes_releases_nothing(server: NetBox, monkeypatch: Any) -> None:
    mirror = filled(server)
    before = state()
    server.objects["aggregates"].clear()
    del server.objects["ip-addresses"][0]
    second = run(mirror)
    with monkeypatch.context() as broken:
        broken.setattr(vanished, "_remove_cidrs", crash)  # after addresses were released
        with pytest.raises(RuntimeError, match="crash"):
            confirm(second)
    assert not models.RegisterRow.objects.filter(status="released").exists()
    assert state() == before


@pytest.mark.exhaustive
def test_pages_and_rest_show_what_was_released(server: NetBox) -> None:
    mirror, second = released(server)
    url = f"/admin/pools/import/{second.pk}/change/"
    page = people.browser().get(url).content.decode()
    assert "?ask=undo" in page  # although the run wrote nothing
    assert "10.1.1.200-10.1.1.210" in page
    question = people.browser().get(f"{url}?ask=undo").content.decode()
    assert "3 released objects are restored" in question
    assert "switch off its schedule first" in question
    sources.change(mirror.pk, {"every_minutes": None}, author=BY)
    question = people.browser().get(f"{url}?ask=undo").content.decode()
    assert "switch off its schedule first" not in question
    api = apis.Api()
    path = f"imports/{second.pk}/"
    rows = api("GET", f"{path}rows/?status=released&q=10.1.1.5").json()["results"]
    assert [(row["holder"], row["org"]) for row in rows] == [("web.example", "Acme")]
    answer = api("POST", f"{path}undo/", {}).json()
    assert (answer["status"], answer["counts"]["released"]) == ("undone", 3)


@pytest.mark.exhaustive
def test_what_an_undo_has_made_anew_belongs_to_the_import_that_brought_it(server: NetBox) -> None:
    cluster = factories.cluster()
    factories.pool("10.7.0.0/24", name="ours", within=cluster)
    before = state()
    mirror = source(server, cluster=cluster, cooldown_seconds=0)
    server.prefix("10.8.0.0/16", "container")
    server.prefix("10.8.1.0/24")
    server.range("10.7.0.100/24", "10.7.0.109/24", "reserved")
    server.address("10.7.0.5/24", dns_name="five.example")
    first = run(mirror)
    for objects in server.objects.values():
        objects.clear()
    second = confirm(run(mirror))
    assert counts(second) == {"released": 4}
    models.Block.objects.filter(state="cooling").update(state="available")  # as the sweep does
    models.Block.objects.filter(state="available").delete()
    undo(second)
    undo(first)
    assert state() == before
    assert not models.ReservedRange.objects.exists()
