"""Each check of pools, CIDRs, ranges, free space, marks, counts and windows, one after the other."""

from collections.abc import Callable

import pytest

from pools.core import addresses
from pools.models import Block, FreeSpan, Pool
from pools.register import pools
from tests import factories
from tests.checks.conftest import check, check_rows, texts, wrong

Psql = Callable[..., None]

# our own values


def _seen(code: str, count: int = 1, says: str = "") -> None:
    """By that check alone."""
    run = check_rows()
    assert wrong(run) == {code: count}, texts(run)
    assert says in texts(run)


def _pool() -> Pool:
    """Ten of 254 addresses are held, three reserved, the window is full."""
    pool = factories.pool("10.0.0.0/22", reserved=["10.0.0.10-10.0.0.12"], cooldown=600)
    factories.ask(pool, *factories.holders(10))
    factories.take(pool)
    return pool


NOTE = "UPDATE pools_window SET {} WHERE pool_id = {{pool}}"
SPAN = "INSERT INTO pools_freespan (pool_cidr_id, first, last) VALUES ({{cidr}}, {})"
WINDOW = (
    "DELETE FROM pools_window WHERE pool_id = {{pool}};"
    "INSERT INTO pools_window (pool_id, family, since) VALUES ({{pool}}, {})"
)
COUNTS = (
    "INSERT INTO pools_poolusage (pool_id, held, counted_at, family, cooling, withheld)"
    " VALUES ({{pool}}, {}, 0, 0)"
)
RANGE = (
    "ALTER TABLE pools_reservedrange DROP CONSTRAINT ranges_of_a_cidr_never_overlap;"
    "INSERT INTO pools_reservedrange (pool_id, pool_cidr_id, first, last, reason, created_at)"
    " VALUES ({{pool}}, {{cidr}}, {}, '', now())"
)
# What is done to a register, and what the check of that name alone says of it how often.
BREAKS = {
    "rows of the window lost": ("DELETE FROM pools_block WHERE id IN ({fresh}, {later})", "free_space", 2, ""),
    "span drawn twice": (
        SPAN.format("2, 5"), "free_space", 1, "4 blocks from 10.0.0.2/32 to 10.0.0.5/32 could be allocated twice",
    ),
    "span over another": (SPAN.format("{last} - 3, {last}"), "free_space", 1, "could be allocated twice"),
    "spans in a reserved range and beyond the end": (
        f"{SPAN.format('11, 11')};{SPAN.format('2000, 2001')}", "free_space", 2, "blocks beyond its end",
    ),
    # 5-9 and 13-14 are held, 15-20 in the window; 10-12 had been reserved before.
    "range written past the triggers": (
        "UPDATE pools_reservedrange SET first = '10.0.0.5', last = '10.0.0.20' WHERE pool_id = {pool}",
        "reserved_blocks", 13, "",
    ),
    "mark for nothing": ("UPDATE pools_block SET withheld = true WHERE id = {held}", "reserved_blocks", 1, ""),
    "wrong count": (COUNTS.format("300, now(), 4"), "stored_counts", 1, ""),
    "old count": (COUNTS.format("11, now() - interval '2 hours', 4"), "stored_counts", 1, ""),
    "count of no family": (COUNTS.format("0, now(), 6"), "stored_counts", 1, ""),
    "window of no family": (WINDOW.format("6, now()"), "windows", 1, ""),
    "window ahead of its time": (WINDOW.format("4, now() + interval '1 day'"), "windows", 1, ""),
    "note of another name": (NOTE.format("pool_name = 'x'"), "windows", 1, ""),
    "note of another cluster name": (NOTE.format("cluster_name = 'x'"), "windows", 1, ""),
    "note of another family": (NOTE.format("only_family = false"), "windows", 1, ""),
    "note of another category": (NOTE.format("category = 'pod'"), "windows", 1, ""),
    "note of another space": (NOTE.format("space_id = 0"), "windows", 1, ""),
    "note of another cluster": (NOTE.format("cluster_id = 0"), "windows", 1, ""),
    "CIDRs that overlap": (
        "ALTER TABLE pools_poolcidr DROP CONSTRAINT cidrs_of_a_space_never_overlap;"
        "UPDATE pools_poolcidr SET cidr = '10.2.0.128/25' WHERE pool_id = {neighbour};"
        "UPDATE pools_freespan SET last = 126 WHERE pool_cidr_id = {neighbour_cidr}",
        "cidrs", 1, "it overlaps 10.2.0.128/25",
    ),
    "CIDR in another's space": (
        "UPDATE pools_poolcidr SET cidr = '10.9.0.0/24', space_id = {space} WHERE pool_id = {empty}",
        "cidrs", 1, "another address space than its pool",
    ),
    "pool in another's space": (
        "UPDATE pools_poolcidr SET space_id = {space} WHERE pool_id = {empty};"
        "UPDATE pools_pool SET space_id = {space} WHERE id = {empty}",
        "cidrs", 1, "the address space of another cluster",
    ),
    "range outside": (RANGE.format("'10.0.4.1', '10.0.4.2'"), "reserved_ranges", 1, "outside its CIDR"),
    "range backwards": (RANGE.format("'10.0.0.9', '10.0.0.7'"), "reserved_ranges", 1, "before its beginning"),
    "ranges that overlap": (
        RANGE.format("'10.0.0.12', '10.0.0.13'"), "reserved_ranges", 1, "it overlaps the range that begins at 10.0.0.12",
    ),
    "range of networks": (
        RANGE.format("'10.0.0.64/27', '10.0.0.95/27'"), "reserved_ranges", 1, "its ends are not single addresses",
    ),
}  # fmt: skip


def _ids() -> dict[str, int]:
    pool = _pool()
    cidr = factories.cidr(pool)
    blocks = Block.objects.filter(pool=pool).order_by("cidr")
    fresh = blocks.filter(state="available")
    empty, other = factories.pool("10.2.0.0/24"), factories.pool("10.1.0.0/24")
    neighbour = factories.pool("10.3.0.0/24", within=empty.cluster)
    return {
        "pool": pool.pk,
        "cidr": cidr.pk,
        "last": FreeSpan.objects.get(pool_cidr=cidr).last,
        "held": blocks.filter(state="held")[0].pk,
        "fresh": fresh[3].pk,
        "later": fresh[100].pk,
        "empty": empty.pk,
        "neighbour": neighbour.pk,
        "neighbour_cidr": factories.cidr(neighbour).pk,
        "space": other.space_id,
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize(("statements", "code", "count", "says"), BREAKS.values(), ids=BREAKS)
def test_what_is_broken_is_seen(
    psql: Psql, statements: str, code: str, count: int, says: str
) -> None:
    ids = _ids()
    for statement in statements.split(";"):
        psql(statement.format(**ids))
    # A range past the triggers of blocks contradicts their marks too.
    run = check(code) if code == "reserved_ranges" else check_rows()
    assert wrong(run) == {code: count}, texts(run)
    assert says in texts(run)


def test_a_lost_free_span_comes_back_with_a_reservation_that_ends(psql: Psql) -> None:
    cidr = factories.cidr(_pool())
    span = FreeSpan.objects.get(pool_cidr=cidr)
    psql("DELETE FROM pools_freespan WHERE pool_cidr_id = %s", cidr.pk)
    _seen("free_space", says="blocks from 10.0.")
    reserved = pools.reserve(
        cidr.pk, addresses.parse_range("10.0.1.0-10.0.3.254"), author=factories.BY
    )
    pools.unreserve(reserved.pk, author=factories.BY)
    assert wrong(check_rows()) == {}
    assert FreeSpan.objects.get(pool_cidr=cidr).last == span.last


@pytest.mark.exhaustive
def test_both_families_and_huge_pools(psql: Psql) -> None:
    pool = factories.pool("10.0.0.0/28", "2001:db8::/48")
    factories.take(pool, family=6)
    assert wrong(check_rows()) == {}
    psql(
        "DELETE FROM pools_freespan WHERE pool_cidr_id = %s",
        factories.cidr(pool, "2001:db8::/48").pk,
    )
    _seen("free_space", 1)


def test_a_count_may_be_as_far_off_as_what_happened_since(psql: Psql) -> None:
    psql(
        "INSERT INTO pools_poolusage (pool_id, family, held, cooling, withheld, counted_at)"
        " VALUES (%s, 4, 1, 0, 0, now())", _pool().pk,
    )  # fmt: skip
    assert check("stored_counts", "counts") == []


@pytest.mark.exhaustive
def test_a_window_that_was_lost_comes_back(psql: Psql) -> None:
    pool = _pool()
    psql("DELETE FROM pools_window WHERE pool_id = %s", pool.pk)
    factories.take(pool)
    assert wrong(check_rows()) == {}


@pytest.mark.parametrize("cidr", ["10.0.0.1/32", "10.0.0.0/30"])
def test_two_blocks_of_one_address(psql: Psql, cidr: str) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    other = factories.take(pool)
    psql("ALTER TABLE pools_block DROP CONSTRAINT block_unique")
    psql("UPDATE pools_block SET cidr = %s WHERE id = %s", cidr, other["id"])
    psql("UPDATE pools_blockevent SET cidr = %s WHERE pgh_obj_id = %s", cidr, other["id"])
    run = check_rows()
    assert wrong(run)["one_block_per_address"] == 1
    assert "overlaps block" in texts(run)


def test_two_blocks_of_one_node(psql: Psql) -> None:
    pool = factories.pool("fd00::/112", category="node")
    first, second = (factories.take(pool, factories.holder(kind="node")) for _ in range(2))
    psql(
        "DROP INDEX one_block_per_holder; UPDATE pools_block SET holder_id = %s WHERE id = %s",
        first["holder"]["id"],
        second["id"],
    )
    psql(
        "UPDATE pools_blockevent SET holder_id = %s WHERE pgh_obj_id = %s",
        first["holder"]["id"],
        second["id"],
    )
    _seen("one_block_per_holder", says="holds 2 node blocks: ")


def test_two_organisations_may_have_an_environment_of_one_name() -> None:
    pool = factories.pool("203.0.113.0/24", category="ipv4")
    for org in ("acme", "globex"):
        factories.take(pool, factories.holder("prod", kind="env"), org=org)
    assert wrong(check_rows()) == {}
