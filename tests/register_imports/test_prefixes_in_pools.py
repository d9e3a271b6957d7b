"""A prefix that a source adds inside a CIDR of a pool is in conflict, with what to do by hand; nobody gets its addresses."""

from typing import Any

import pytest

from pools.models import Block, Container, Pool, PoolCIDR, ReservedRange
from pools.register.checks import compare_free_space
from tests import factories
from tests.register_imports import sources
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import counts, exported, rows_of, table
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(server: NetBox) -> NetBox:
    server.prefix("10.0.1.0/24", description="Servers")
    server.address("10.0.1.5/24", dns_name="five.example")
    return server


def state() -> dict[str, list[Any]]:
    for cidr in PoolCIDR.objects.select_related("pool"):
        assert not any(compare_free_space(cidr).values()), cidr
    return {
        "pools": list(Pool.objects.order_by("name").values_list("name", "description")),
        "cidrs": list(PoolCIDR.objects.order_by("cidr").values_list("cidr", "pool__name")),
        "containers": list(Container.objects.values_list("cidr", flat=True)),
        "held": list(
            Block.objects.filter(state="held").order_by("cidr").values_list("cidr", "holder_id")
        ),
    }


def withheld() -> list[str]:
    return [str(row.span) for row in ReservedRange.objects.order_by("first")]


def test_it_names_the_pool_and_what_to_do_and_the_mirror_goes_on(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    before = state()
    child = server.prefix("10.0.1.64/26", description="Lab")
    server.address("10.0.1.70/26", dns_name="lab.example")
    server.prefix("10.0.2.0/24")
    second = run(mirror)
    assert counts(second) == {"new": 3, "conflict": 1, "unchanged": 2}
    row = next(row for row in rows_of(second) if row.status == "conflict")
    pool = Pool.objects.get(name="10.0.1.0-24")
    assert row.reasons == [{
        "code": "cidr_overlap",
        "message": f"10.0.1.64/26 lies in 10.0.1.0/24 of the pool {pool}, and one CIDR cannot be in another: replace"
        " 10.0.1.0/24 in the pool by CIDRs beside 10.0.1.64/26 and import again, or leave this row out",
    }]  # fmt: skip
    assert withheld() == ["10.0.1.64-10.0.1.127"]
    assert ReservedRange.objects.get().reason == "in use, not imported: Lab"
    assert Block.objects.get(holder_id="lab.example").pool == pool
    after = state()
    assert set(counts(run(mirror))) == {"unchanged", "conflict"}
    assert (state(), withheld()) == (after, ["10.0.1.64-10.0.1.127"])
    sources.undo(second)
    assert (state(), withheld()) == (before, [])
    run(mirror)
    server.objects["prefixes"].remove(child)
    assert counts(run(mirror))["released"] == 1
    assert (state(), withheld()) == (after, [])


def test_nobody_gets_an_address_of_it() -> None:
    cluster = factories.cluster()
    pool = factories.pool("10.0.1.0/29", name="ours", within=cluster, mask=32)
    files = (
        table(("prefix",), [("10.0.1.4/30",)]),
        table(("address", "holder"), [("10.0.1.5", "a")]),
    )
    draft = sources.draft(*files, cluster=cluster)
    assert counts(draft) == {"new": 2, "conflict": 1}
    sources.commit(draft, skip_bad=True)
    assert sorted(factories.drain(pool)) == ["10.0.1.1/32", "10.0.1.2/32", "10.0.1.3/32"]
    again = sources.draft(*files, cluster=cluster)
    assert counts(again) == {"unchanged": 2, "conflict": 1}
    assert "10.0.1.4" not in str(exported("ip-ranges"))  # NetBox has the prefix itself


def test_the_registered_cidr_and_its_status_in_the_file() -> None:
    cluster = factories.cluster()
    parent = table(sources.IMPORT_PREFIX, [("10.0.1.0/24", "active", "", "", "", "Servers")])
    sources.commit(sources.draft(parent, cluster=cluster))
    child = table(sources.IMPORT_PREFIX, [("10.0.1.64/26", "active"), ("10.0.1.64/28", "active")])
    draft = sources.draft(parent, child, cluster=cluster)
    assert [(str(row.first), row.status) for row in rows_of(draft)] == [
        ("10.0.1.0", "unchanged"), ("10.0.1.64", "conflict"), ("10.0.1.64", "conflict"), ("10.0.1.64", "new"),
    ]  # fmt: skip
    container = sources.draft(
        table(sources.IMPORT_PREFIX, [("10.0.1.0/24", "container")]), cluster=cluster
    )
    (row,) = rows_of(container)
    assert (row.status, row.reasons[0]["code"]) == ("conflict", "registered_as_pool")
    assert "remove it from the pool" in row.reasons[0]["message"]


def test_an_aggregate_or_the_heading_of_a_table_withholds_nothing(server: NetBox) -> None:
    mirror = source(server)
    run(mirror)
    heading = b"10.0.1.64/26 - Lab,,\nip address,hostname,description\n10.0.1.70,lab,\n"
    draft = sources.draft(heading, cluster=mirror.cluster)
    assert counts(draft) == {"new": 1, "conflict": 1}


def test_reserved_ranges_that_are_there_stay_as_they_are(server: NetBox) -> None:
    server.range("10.0.1.60/24", "10.0.1.69/24", "reserved")
    mirror = source(server)
    run(mirror)
    server.prefix("10.0.1.64/26")
    second = run(mirror)
    assert withheld() == ["10.0.1.60-10.0.1.69", "10.0.1.70-10.0.1.127"]
    assert set(counts(run(mirror))) == {"unchanged", "conflict"}
    sources.undo(second)
    assert withheld() == ["10.0.1.60-10.0.1.69"]
