"""Each check of pools, CIDRs, ranges, free space, marks, counts and windows, one after the other."""

from collections.abc import Callable

import pytest

from pools.core import addresses
from pools.models import Block, FreeSpan, Pool
from pools.register import pools
from tests import factories
from tests.checks.conftest import check, check_rows, texts, wrong

Psql = Callable[..., None]

# ruff: noqa: S608  # our own values
pytestmark = pytest.mark.django_db


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


# --- free space -----------------------------------------------------------------------------------


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
def test_a_lost_row_of_the_window(psql: Psql) -> None:
    pool = _pool()
    fresh = Block.objects.filter(pool=pool, state="available").order_by("cidr")
    psql("DELETE FROM pools_block WHERE id IN (%s, %s)", fresh[3].pk, fresh[100].pk)
    _seen("free_space", 2)


def test_a_span_that_is_drawn_twice(psql: Psql) -> None:
    cidr = factories.cidr(_pool())
    psql("INSERT INTO pools_freespan (pool_cidr_id, first, last) VALUES (%s, 2, 5)", cidr.pk)
    _seen("free_space", says="4 blocks from 10.0.0.2/32 to 10.0.0.5/32 could be allocated twice")


def test_a_span_over_another(psql: Psql) -> None:
    span = FreeSpan.objects.get(pool_cidr=factories.cidr(_pool()))
    psql(
        "INSERT INTO pools_freespan (pool_cidr_id, first, last) VALUES (%s, %s, %s)",
        span.pool_cidr_id,
        span.last - 3,
        span.last,
    )
    _seen("free_space", says="could be allocated twice")


def test_a_span_in_a_reserved_range_and_beyond_the_end(psql: Psql) -> None:
    cidr = factories.cidr(_pool())
    psql("INSERT INTO pools_freespan (pool_cidr_id, first, last) VALUES (%s, 11, 11)", cidr.pk)
    psql("INSERT INTO pools_freespan (pool_cidr_id, first, last) VALUES (%s, 2000, 2001)", cidr.pk)
    assert "blocks beyond its end" in texts(check("free_space"))
    _seen("free_space", 2)


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


# --- marks ----------------------------------------------------------------------------------------


def test_a_reserved_range_written_past_the_triggers(psql: Psql) -> None:
    pool = _pool()
    psql(
        "UPDATE pools_reservedrange SET first = '10.0.0.5', last = '10.0.0.20' WHERE pool_id = %s",
        pool.pk,
    )
    # 5-9 and 13-14 are held, 15-20 in the window; 10-12 had been reserved before.
    _seen("reserved_blocks", 13)


def test_a_mark_that_nothing_asks_for(psql: Psql) -> None:
    pool = _pool()
    held = Block.objects.filter(pool=pool, state="held")[0]
    psql("UPDATE pools_block SET withheld = true WHERE id = %s", held.pk)
    _seen("reserved_blocks", 1)


# --- counts and windows ---------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("held", "counted", "family"),
    [(300, "now()", 4), (11, "now() - interval '2 hours'", 4), (0, "now()", 6)],
    ids=["wrong", "old", "of no family"],
)
def test_stored_counts(psql: Psql, held: int, counted: str, family: int) -> None:
    psql(
        "INSERT INTO pools_poolusage (pool_id, family, held, cooling, withheld, counted_at)"
        f" VALUES (%s, %s, %s, 0, 0, {counted})", _pool().pk, family, held,
    )  # fmt: skip
    _seen("stored_counts", 1)


def test_a_count_may_be_as_far_off_as_what_happened_since(psql: Psql) -> None:
    psql(
        "INSERT INTO pools_poolusage (pool_id, family, held, cooling, withheld, counted_at)"
        " VALUES (%s, 4, 1, 0, 0, now())", _pool().pk,
    )  # fmt: skip
    assert check("stored_counts", "counts") == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "values", ["6, now()", "4, now() + interval '1 day'"], ids=["orphan", "ahead"]
)
def test_windows(psql: Psql, values: str) -> None:
    pool = _pool()
    psql("DELETE FROM pools_window WHERE pool_id = %s", pool.pk)
    psql(f"INSERT INTO pools_window (pool_id, family, since) VALUES (%s, {values})", pool.pk)
    _seen("windows", 1)
    psql("DELETE FROM pools_window WHERE pool_id = %s", pool.pk)
    factories.take(pool)
    assert wrong(check_rows()) == {}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "wrong",
    [
        "pool_name = 'x'",
        "cluster_name = 'x'",
        "only_family = false",
        "category = 'pod'",
        "space_id = 0",
        "cluster_id = 0",
    ],
)
def test_notes_that_say_otherwise(psql: Psql, wrong: str) -> None:
    pool = _pool()
    psql(f"UPDATE pools_window SET {wrong} WHERE pool_id = %s", pool.pk)
    _seen("windows", 1)


# --- CIDRs, ranges, holders -----------------------------------------------------------------------


def test_cidrs_that_overlap(psql: Psql) -> None:
    pool = factories.pool("10.0.0.0/24")
    psql("ALTER TABLE pools_poolcidr DROP CONSTRAINT cidrs_of_a_space_never_overlap")
    other = factories.pool("10.1.0.0/24", within=pool.cluster)
    psql("UPDATE pools_poolcidr SET cidr = '10.0.0.128/25' WHERE pool_id = %s", other.pk)
    psql("UPDATE pools_freespan SET last = 126 WHERE pool_cidr_id = %s", factories.cidr(other).pk)
    _seen("cidrs", says="it overlaps 10.0.0.128/25")


def test_a_cidr_in_anothers_space(psql: Psql) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.0.0.0/24")
    psql(
        "UPDATE pools_poolcidr SET cidr = '10.9.0.0/24', space_id = %s WHERE pool_id = %s",
        other.space_id,
        pool.pk,
    )
    _seen("cidrs", says="another address space than its pool")


def test_a_pool_in_anothers_space(psql: Psql) -> None:
    pool, other = factories.pool("10.0.0.0/24"), factories.pool("10.1.0.0/24")
    psql("UPDATE pools_poolcidr SET space_id = %s WHERE pool_id = %s", other.space_id, pool.pk)
    psql("UPDATE pools_pool SET space_id = %s WHERE id = %s", other.space_id, pool.pk)
    _seen("cidrs", says="the address space of another cluster")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("'10.0.1.1', '10.0.1.2'", "outside its CIDR"),
        ("'10.0.0.9', '10.0.0.7'", "before its beginning"),
        ("'10.0.0.12', '10.0.0.13'", "it overlaps the range that begins at 10.0.0.12"),
        ("'10.0.0.64/27', '10.0.0.95/27'", "its ends are not single addresses"),
    ],
)
def test_reserved_ranges(psql: Psql, values: str, says: str) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.10-10.0.0.12"])
    psql("ALTER TABLE pools_reservedrange DROP CONSTRAINT ranges_of_a_cidr_never_overlap")
    psql(
        "INSERT INTO pools_reservedrange (pool_id, pool_cidr_id, first, last, reason, created_at)"
        f" VALUES (%s, %s, {values}, '', now())", pool.pk, factories.cidr(pool).pk,
    )  # fmt: skip
    run = check("reserved_ranges")
    assert wrong(run) == {"reserved_ranges": 1}
    assert says in texts(run)


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
