"""Each check of VM networks: the address index, flags of duplicates, blocks of addresses."""

from collections.abc import Callable

import pytest
from django.db import connection

from claims import tasks as claims_tasks
from claims.models import Entry, IndexEntry, IPAMClaim, Workload
from pools.models import Block
from tests.checks.conftest import check, check_rows, texts, wrong

Psql = Callable[..., None]


@pytest.fixture(scope="module", autouse=True)
def _fleet(demo_fleet: None) -> None:
    """Its reserved ranges are as old as it is said to be."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_reservedrangeevent DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE pools_reservedrangeevent SET pgh_created_at = pgh_created_at - interval '1 hour'"
        )
        cursor.execute("ALTER TABLE pools_reservedrangeevent ENABLE TRIGGER USER")


def _seen(code: str, count: int) -> None:
    run = check_rows()
    assert wrong(run) == {code: count}, texts(run)


@pytest.mark.exhaustive
@pytest.mark.parametrize("column", ["entry", "claim", "workload"])
def test_a_row_that_the_index_has_not(psql: Psql, column: str) -> None:
    index_entry = IndexEntry.objects.filter(
        **{f"{column}__isnull": False}, duplicate_mac=False, duplicate_ip=False
    ).order_by("pk")[0]
    psql("DELETE FROM claims_indexentry WHERE id = %s", index_entry.pk)
    _seen("index_entries", 1)


@pytest.mark.exhaustive
def test_a_place_that_nobody_names(psql: Psql) -> None:
    index_entry = IndexEntry.objects.filter(
        entry__isnull=False, address__isnull=False, duplicate_mac=False, duplicate_ip=False
    ).order_by("pk")[0]
    psql(
        "INSERT INTO claims_indexentry (network_id, entry_id, address, mac, namespace, vm, holds)"
        " VALUES (%s, %s, %s, %s, %s, %s, false)",
        index_entry.network_id, index_entry.entry_id, "203.0.113.77", index_entry.mac, index_entry.namespace, index_entry.vm,
    )  # fmt: skip
    _seen("index_entries", 1)


@pytest.mark.exhaustive
def test_an_entry_changed_past_the_services(psql: Psql) -> None:
    index_entry = IndexEntry.objects.filter(
        entry__isnull=False, duplicate_mac=False, duplicate_ip=False
    ).order_by("pk")[0]
    psql("UPDATE claims_entry SET mac = '02:99:99:99:99:99' WHERE id = %s", index_entry.entry_id)
    rows = IndexEntry.objects.filter(entry=index_entry.entry_id).count()
    _seen("index_entries", 2 * rows)


@pytest.mark.exhaustive
def test_flags(psql: Psql) -> None:
    index_entry = IndexEntry.objects.filter(
        address__isnull=False, duplicate_ip=False, duplicate_mac=False, entry=None
    ).order_by("pk")[0]
    psql("UPDATE claims_indexentry SET duplicate_ip = true WHERE id = %s", index_entry.pk)
    _seen("duplicates", 1)
    assert claims_tasks.recheck_duplicates() == 1
    assert wrong(check_rows()) == {}
    flagged = IndexEntry.objects.filter(duplicate_mac=True).order_by("pk")[0]
    psql("UPDATE claims_indexentry SET duplicate_mac = false WHERE id = %s", flagged.pk)
    assert "is a duplicate MAC" in texts(check("duplicates"))
    psql("UPDATE claims_ippool SET duplicate_ips = 7 WHERE duplicate_ips > 0")
    assert "the duplicate counts of its IPPool are wrong" in texts(check("duplicates"))
    claims_tasks.recheck_duplicates()
    assert wrong(check_rows()) == {}


@pytest.mark.exhaustive
def test_an_address_that_nobody_holds(psql: Psql) -> None:
    index_entry = IndexEntry.objects.filter(
        address__isnull=False, holds=True, network__pool__isnull=False, duplicate_ip=False
    ).order_by("pk")[0]
    block = Block.objects.get(
        space=index_entry.network.pool.space, cidr=f"{index_entry.address}/32"
    )
    psql("DELETE FROM pools_block WHERE id = %s", block.pk)
    run = check("network_blocks")
    assert wrong(run) == {"network_blocks": 1}
    assert f"Address {index_entry.address} of" in texts(run)


def test_there_is_something_of_everything() -> None:
    assert Entry.objects.exists()
    assert IPAMClaim.objects.exists()
    assert Workload.objects.exists()
