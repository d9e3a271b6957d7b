"""The window of free blocks: fresh ones first, the hint of the oldest, the note of the pool."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network

import hypothesis
import pytest
from django.db import connection, transaction
from hypothesis import strategies as st

from pools.core import errors
from pools.core.block_fields import BlockAnswer
from pools.models import Cluster, Pool, Window
from pools.register import pools, pools as pool_services
from pools.register.allocator import requests, window
from tests import factories
from tests.pools.conftest import Clock

# A released block is handed out again only when its pool has no fresh one left
# (docs/reference/allocation.md)
#
# Any sequence of requests, releases and changes of the pool (hypothesis), with cooldowns of 0 and longer,
# networks that run dry and networks that never do, and several CIDRs.


_SHAPES = {
    "small IPv4": (["10.0.0.0/29", "10.0.1.0/30", "10.0.2.0/29"], 32),
    "small IPv6": (["fd00::/125", "fd00::1:0/126", "fd00::2:0/125"], 128),
    "more than a window": (["10.0.0.0/22", "10.0.4.0/29", "10.0.5.0/29"], 32),
    "huge": (["fd00::/48", "fd00:1::/64", "fd00:2::/64"], 128),
    "huge, of blocks": (["fd00::/40", "fd00:100::/56", "fd00:200::/56"], 64),
}
_steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["one", "one", "many", "all", "exact", "release", "release", "wait", "cooldown",
             "reserve", "unreserve", "cidr", "refill"]
        ),
        st.integers(0, 40),
    ),
    min_size=10,
    max_size=40,
)  # fmt: skip


class _Register:
    """`released` are the blocks that somebody has had, as far as the register remembers it."""

    def __init__(self, cidrs: list[str], mask: int) -> None:
        self.cidrs, self.mask = cidrs, mask
        self.pool: Pool = factories.pool(*cidrs[:2], mask=mask, cooldown=0)
        self.held: list[BlockAnswer] = []
        self.released: set[str] = set()
        self.ranges: list[int] = []
        self.clock = Clock()

    def took(self, blocks: list[BlockAnswer]) -> None:
        self.held += blocks
        again = [block["cidr"] for block in blocks if block["cidr"] in self.released]
        if again:
            assert self.fresh() == 0, f"{again} were released, and fresh blocks are free"

    def fresh(self) -> int:
        """How many blocks nobody has had and somebody could have, counted apart from the allocator."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM pools_block WHERE pool_id = %s AND allocated_at IS NULL"
                " AND NOT withheld) + (SELECT COALESCE(sum(s.last - s.first + 1), 0)"
                " FROM pools_freespan s JOIN pools_poolcidr c ON c.id = s.pool_cidr_id"
                " WHERE c.pool_id = %s)",
                [self.pool.pk, self.pool.pk],
            )
            return int(cursor.fetchone()[0])

    def one(self, _n: int) -> None:
        self.many(0)

    def many(self, n: int) -> None:
        self.took(factories.ask(self.pool, *factories.holders(n % 5 + 1)).blocks)

    def all(self, n: int) -> None:
        """More than a window has, and some of a window."""
        self.took(factories.ask(self.pool, *factories.holders(500 + n)).blocks)

    def exact(self, n: int) -> None:
        network = ip_network(self.cidrs[n % 2])
        size = 1 << (network.max_prefixlen - self.mask)
        address = network[(n * 37 * size) % network.num_addresses]
        self.held += factories.ask(self.pool, cidr=f"{address}/{self.mask}").blocks

    def release(self, n: int) -> None:
        for _ in range(min(len(self.held), n % 7 + 1)):
            block = self.held.pop(n % len(self.held))
            factories.give_back(block)
            self.released.add(block["cidr"])

    def wait(self, n: int) -> None:
        self.clock.advance(n * 10)
        if n % 2:
            requests.end_cooldowns()

    def cooldown(self, n: int) -> None:
        Pool.objects.filter(pk=self.pool.pk).update(cooldown_seconds=[0, 60, 0][n % 3])

    def reserve(self, n: int) -> None:
        network = ip_network(self.cidrs[n % 2])
        first = network[n % 4]
        self.ranges.append(factories.reserve(self.pool, f"{first}-{first + 1}"))

    def unreserve(self, n: int) -> None:
        if self.ranges:
            pool_services.unreserve(self.ranges.pop(n % len(self.ranges)), author=factories.BY)
        # What was withheld is forgotten with its row.
        rows = self.pool.blocks.filter(allocated_at__isnull=False).values_list("cidr", flat=True)
        self.released &= {str(cidr) for cidr in rows}

    def cidr(self, _n: int) -> None:
        pool_services.add_cidr(self.pool.pk, factories.entry(self.cidrs[2]), author=factories.BY)

    def refill(self, _n: int) -> None:
        window.top_up(self.pool.pk, ip_network(self.cidrs[0]).version)


@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", _SHAPES)
def test_no_released_block_while_a_fresh_one_is_free(shape: str) -> None:
    @hypothesis.settings(
        max_examples=min(10, hypothesis.settings.default.max_examples // 8),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(steps=_steps)
    def run(steps: list[tuple[str, int]]) -> None:
        with transaction.atomic():
            register = _Register(*_SHAPES[shape])
            for step, n in steps:
                try:
                    with transaction.atomic():
                        getattr(register, step)(n)
                except errors.IpamError:
                    continue  # none left, in use, overlapping: nothing was changed
            transaction.set_rollback(True)

    run()


@pytest.mark.parametrize("cooldown", [0, 60])
def test_a_window_that_was_used_up_is_drawn_anew(clock: Clock, cooldown: int) -> None:
    pool = factories.pool("fd00::/64", cooldown=cooldown)
    blocks = factories.ask(pool, *factories.holders(window.WINDOW)).blocks
    factories.give_back(blocks[0])
    clock.advance(61)
    assert factories.take(pool)["cidr"] == f"fd00::{window.WINDOW + 1:x}/128"
    exact = factories.take(pool, cidr="fd00::ffff/128")
    factories.give_back(exact)
    clock.advance(61)
    assert len(set(factories.cidrs(pool, 3)) - {exact["cidr"], blocks[0]["cidr"]}) == 3


def test_a_released_block_is_found_by_the_hint_when_all_are_drawn() -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=0)
    first = factories.take(pool)
    assert Window.objects.get(pool=pool).all_drawn
    factories.drain(pool)
    factories.give_back(first)
    assert factories.take(pool)["cidr"] == first["cidr"]
    pool_services.add_cidr(pool.pk, factories.entry("10.0.1.0/29"), author=factories.BY)
    assert not Window.objects.get(pool=pool).all_drawn


# --- Where the allocator looks for the oldest block keeps up with what was handed out, also where
# the window is never low, because as many blocks come back as go
@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_the_hint_keeps_up_where_blocks_come_and_go() -> None:
    pool = factories.pool("10.0.0.0/23", cooldown=0)
    factories.give_back(factories.take(pool))
    first = Window.objects.get(pool=pool).since
    for _ in range(2 * 510):  # each block twice, oldest first
        factories.give_back(factories.take(pool))
    assert Window.objects.get(pool=pool).since > first


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
def test_it_is_filled_up_before_it_is_empty(within: bool) -> None:
    pool = factories.pool("10.0.0.0/16")
    assert window.refill(pool.pk, 4)
    count = window.WINDOW - window.LOW
    factories.ask(pool, *(factories.holder() for _ in range(count)))
    _top_up(pool.pk, within=within)
    assert pool.blocks.filter(state="available").count() == window.LOW
    factories.take(pool)
    _top_up(pool.pk, within=within)
    assert pool.blocks.filter(state="available").count() == window.WINDOW + window.LOW - 1


def _top_up(pool_id: int, *, within: bool) -> None:
    if within:
        with transaction.atomic():
            window.top_up(pool_id, 4)
    else:
        window.top_up(pool_id, 4)


# --- The allocator's note of a pool (models.Window) repeats what pool and cluster say: it goes
# when that changes, and without it blocks are handed out all the same
def _noted(pool: Pool) -> bool:
    return Window.objects.filter(pool=pool, pool_name__isnull=False).exists()


def _used(*cidrs: str, **settings: object) -> Pool:
    pool = factories.pool(*(cidrs or ("10.0.0.0/24",)), **settings)
    factories.take(pool)
    assert _noted(pool)
    return pool


def test_another_name_of_the_pool() -> None:
    pool, other = _used(), _used()
    Pool.objects.filter(pk=pool.pk).update(name="renamed")
    assert not _noted(pool)
    assert _noted(other)
    assert factories.take(pool)["pool"] == "renamed"


def test_another_name_of_the_cluster() -> None:
    pool = _used()
    other = _used("10.1.0.0/24", within=pool.cluster)
    Cluster.objects.filter(pk=pool.cluster_id).update(name="renamed")
    assert not _noted(pool)
    assert not _noted(other)
    assert [factories.take(item)["cluster"] for item in (pool, other)] == ["renamed"] * 2


def test_what_it_does_not_repeat_leaves_it() -> None:
    pool = _used()
    Pool.objects.filter(pk=pool.pk).update(description="for the shop", cooldown_seconds=7)
    Cluster.objects.filter(pk=pool.cluster_id).update(description="in Zürich")
    assert _noted(pool)


def test_a_second_family() -> None:
    pool = _used()
    assert len(factories.ask(pool).blocks) == 1
    pools.change(
        pool.pk, pools.PoolChange(families=factories.families("fd00::/112")), author=factories.BY
    )
    assert sorted(block["family"] for block in factories.ask(pool).blocks) == [4, 6]


def test_a_family_that_the_pool_has_beside_another_is_asked_for_by_name() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/112")
    for _ in range(2):
        assert factories.take(pool, family=4)["family"] == 4
        assert factories.take(pool, family=6)["family"] == 6
    assert Window.objects.filter(pool=pool, only_family=False).count() == 2
    assert len(factories.ask(pool).blocks) == 2


def test_without_a_note_blocks_go_out_in_order_and_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One allocation in STEP writes the note; which one depends on the numbers that blocks got before.
    monkeypatch.setattr(window, "STEP", 2**62)
    pool = _used("10.0.0.0/22")
    Window.objects.filter(pool=pool).delete()
    assert factories.cidrs(pool, 3) == ["10.0.0.2/32", "10.0.0.3/32", "10.0.0.4/32"]
    assert not _noted(pool)
    window.top_up(pool.pk, 4)
    assert _noted(pool)
    assert factories.cidrs(pool, 1) == ["10.0.0.5/32"]


def test_what_an_older_version_has_written(sql: Callable[..., list[tuple[object, ...]]]) -> None:
    pool = _used()
    sql("DELETE FROM pools_window WHERE pool_id = %s", pool.pk)
    sql("INSERT INTO pools_window (pool_id, family, since) VALUES (%s, 4, now())", pool.pk)
    assert factories.take(pool, family=4)["pool"] == pool.name
    window.top_up(pool.pk, 4)
    assert Window.objects.filter(pool=pool).count() == 1
    assert _noted(pool)
    assert factories.take(pool)["cluster"] == pool.cluster.name


def test_the_environment_of_a_holder_is_served(
    sql: Callable[..., list[tuple[object, ...]]],
) -> None:
    """The note knows the cluster: an environment of another cluster is not the one asked for."""
    pool, other = _used(category="instance"), _used(category="instance")
    for item in (pool, other):
        factories.take(item, factories.holder(kind="instance"), org="o", env="e")
    sql(
        "UPDATE pools_environment SET degraded_since = now(), reason = 'ipam_exhausted' WHERE cluster_id = %s",
        pool.cluster_id,
    )
    factories.take(other, factories.holder(kind="instance"), org="o", env="e")
    degraded = "SELECT count(*) FROM pools_environment WHERE degraded_since IS NOT NULL"
    assert sql(degraded) == [(1,)]
    factories.take(pool, factories.holder(kind="instance"), org="o", env="e")
    assert sql(degraded) == [(0,)]
