"""A released block is handed out again only when its pool has no fresh one left (docs/reference/allocation.md).

Any sequence of requests, releases and changes of the pool (hypothesis), with cooldowns of 0 and longer,
networks that run dry and networks that never do, and several CIDRs.
"""

from __future__ import annotations

from ipaddress import ip_network

import hypothesis
import pytest
from django.db import connection, transaction
from hypothesis import strategies as st

from pools.core import errors
from pools.core.block_fields import BlockAnswer
from pools.models import Pool, Window
from pools.register import pools as pool_services
from pools.register.allocator import requests, window
from tests import factories
from tests.pools.conftest import Clock

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
