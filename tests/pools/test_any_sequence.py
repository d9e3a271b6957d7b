"""Any sequence of changes, held against a plain model in Python (hypothesis, both families).

The model knows the blocks of the CIDRs by brute force, who holds or cools what, and the reserved
ranges. After each step the register must agree with it: nothing handed out that may not be,
nothing lost, the numbers exact. Networks are tiny so that pools run dry all the time.
"""

from __future__ import annotations

import itertools
from ipaddress import ip_network
from typing import Any

import hypothesis
import pytest
from django.db import connection, transaction
from hypothesis import stateful, strategies as st

from pools.core import addresses, errors
from pools.models import Block, FreeSpan, PoolCIDR
from pools.register import pools, usage
from pools.register.allocator import allocation, requests
from tests import factories
from tests.pools.conftest import Clock

COOLDOWN = 6_000  # and waits of 100 and more: how long a sequence itself takes must not matter
PLACES = {4: [f"10.0.{n}.0/29" for n in range(3)], 6: [f"fd00::{n}:0/125" for n in range(3)]}
SIZE = 8
_places = st.integers(0, 2)
_spans = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(sorted)
_holders = st.integers(0, 5)


class Register(stateful.RuleBasedStateMachine):
    """`cidrs` are the places in use; `held` and `cooling` map a block to its holder (and its end)."""

    family = 4
    mask = 32

    def __init__(self) -> None:
        super().__init__()
        self.outer = transaction.atomic()
        self.outer.__enter__()
        self.clock, self.now = Clock(), 0
        self.cidrs = {0}
        self.ranges: dict[int, tuple[int, set[str]]] = {}
        self.held: dict[str, str] = {}
        self.cooling: dict[str, tuple[str, int]] = {}
        first = PLACES[self.family][0]
        self.pool = factories.pool(first, mask=self.mask, cooldown=COOLDOWN)

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.outer.__exit__(None, None, None)

    # --- the plain model --------------------------------------------------------------------------

    def blocks(self, place: int) -> list[str]:
        network = ip_network(PLACES[self.family][place])
        result = [str(block) for block in network.subnets(new_prefix=self.mask)]
        if self.mask < 32 or self.mask == 127:
            return result
        return result[1:-1] if self.family == 4 else result[1:]

    def touched(self, place: int, span: list[int]) -> set[str]:
        base = int(ip_network(PLACES[self.family][place]).network_address)
        low, high = base + span[0], base + span[1]
        return {
            block
            for block in self.blocks(place)
            if int(ip_network(block)[0]) <= high and int(ip_network(block)[-1]) >= low
        }

    @property
    def capacity(self) -> list[str]:
        return list(itertools.chain.from_iterable(self.blocks(place) for place in self.cidrs))

    @property
    def withheld(self) -> set[str]:
        return set().union(*(touched for _, touched in self.ranges.values()))

    @property
    def cools(self) -> dict[str, str]:
        return {block: who for block, (who, end) in self.cooling.items() if end > self.now}

    @property
    def free(self) -> set[str]:
        return set(self.capacity) - self.withheld - set(self.held) - set(self.cools)

    def give(self, block: str, who: str) -> None:
        self.cooling.pop(block, None)
        self.held[block] = who

    # --- steps ------------------------------------------------------------------------------------

    @stateful.rule(who=_holders)
    def allocate(self, who: int) -> None:
        former = {b for b, holder in self.cools.items() if holder == f"h{who}"} - self.withheld
        try:
            block = factories.take(self.pool, factories.holder(f"h{who}"))["cidr"]
        except errors.PoolExhausted:
            assert not self.free
            assert not former
            return
        assert block in (former or self.free)
        self.give(block, f"h{who}")

    @stateful.rule(who=_holders, count=st.integers(2, 5))
    def allocate_many(self, who: int, count: int) -> None:
        try:
            blocks = factories.ask(self.pool, factories.holder(f"h{who}"), count=count).blocks
        except errors.PoolExhausted:
            assert len(self.free) < count
            return
        got = {block["cidr"] for block in blocks}
        assert len(got) == count
        assert got <= self.free
        for block in got:
            self.give(block, f"h{who}")

    @stateful.rule(who=_holders, place=_places, index=st.integers(0, SIZE - 1))
    def allocate_exactly(self, who: int, place: int, index: int) -> None:
        network = ip_network(PLACES[self.family][place])
        block = list(network.subnets(new_prefix=self.mask))
        cidr = str(block[index % len(block)])
        holds = self.held.get(cidr) == f"h{who}"
        mine = self.cools.get(cidr) == f"h{who}" and cidr not in self.withheld
        try:
            answer = factories.ask(self.pool, factories.holder(f"h{who}"), cidr=cidr)
        except errors.IpamError:
            assert not holds
            assert not mine
            assert cidr not in self.free
            return
        assert answer.status == (200 if holds else 201)
        assert holds or mine or cidr in self.free
        self.give(cidr, f"h{who}")

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data(), stranger=st.booleans())
    def release(self, data: st.DataObject, stranger: bool) -> None:
        cidr = data.draw(st.sampled_from(sorted(self.held)))
        row = Block.objects.get(space=self.pool.space_id, cidr=cidr)
        who = factories.holder("stranger" if stranger else self.held[cidr])
        try:
            done = allocation.release(row.pk, who, author=factories.BY)
        except errors.HolderChanged:
            assert stranger
            return
        assert not stranger
        assert not done.repeated
        self.cooling[cidr] = (self.held.pop(cidr), self.now + COOLDOWN)

    @stateful.rule(seconds=st.sampled_from([100, 3_000, 6_100]), tidy=st.booleans())
    def wait(self, seconds: int, tidy: bool) -> None:
        self.now += seconds
        self.clock.advance(seconds)
        if tidy:
            requests.end_cooldowns()

    @stateful.precondition(lambda self: self.cidrs)
    @stateful.rule(data=st.data(), span=_spans)
    def reserve(self, data: st.DataObject, span: list[int]) -> None:
        place = data.draw(st.sampled_from(sorted(self.cidrs)))
        network = ip_network(PLACES[self.family][place])
        expected = addresses.AddressRange(network[span[0]], network[span[1]])
        parent = factories.cidr(self.pool, str(network))
        try:
            with transaction.atomic():
                reserved_range = pools.reserve(parent.pk, expected, author=factories.BY)
        except errors.RangesOverlap:
            return
        self.ranges[reserved_range.pk] = (place, self.touched(place, span))

    @stateful.precondition(lambda self: self.ranges)
    @stateful.rule(data=st.data())
    def unreserve(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(sorted(self.ranges)))
        pools.unreserve(chosen, author=factories.BY)
        del self.ranges[chosen]

    @stateful.rule(place=_places)
    def add_or_remove(self, place: int) -> None:
        text = PLACES[self.family][place]
        if place not in self.cidrs:
            pools.add_cidr(self.pool.pk, factories.entry(text), author=factories.BY)
            self.cidrs.add(place)
            return
        blocks = set(self.blocks(place))
        try:
            with transaction.atomic():
                pools.remove_cidr(factories.cidr(self.pool, text).pk, author=factories.BY)
        except errors.CIDRInUse:
            assert blocks & (set(self.held) | set(self.cools))
            return
        assert not blocks & (set(self.held) | set(self.cools))
        self.cidrs.remove(place)
        self.ranges = {pk: result for pk, result in self.ranges.items() if result[0] != place}

    # --- what must always be so -------------------------------------------------------------------

    @stateful.invariant()
    def holders_are_the_same(self) -> None:
        rows = Block.objects.filter(space=self.pool.space_id, state="held")
        assert {str(row.cidr): row.holder_id for row in rows} == self.held

    @stateful.invariant()
    def numbers_are_exact(self) -> None:
        used = usage.pool_usage(self.pool)[self.family]
        in_use = set(self.held) | set(self.cools)
        assert used.capacity == len(self.capacity)
        assert (used.held, used.cooling) == (len(self.held), len(self.cools))
        assert used.reserved == len((self.withheld & set(self.capacity)) - in_use)
        assert used.free == len(self.free)

    @stateful.invariant()
    def rows_and_spans_make_up_what_is_free(self) -> None:
        result: list[str] = []
        for span in FreeSpan.objects.filter(pool_cidr__pool=self.pool).select_related("pool_cidr"):
            result += _blocks(span.pool_cidr, self.mask)[int(span.first) : int(span.last) + 1]
        rows: Any = Block.objects.filter(space=self.pool.space_id, withheld=False)
        for row in rows.exclude(state="held"):
            if str(row.cidr) not in self.cools:
                result.append(str(row.cidr))
        assert sorted(result) == sorted(self.free)


def _blocks(cidr: PoolCIDR, mask: int) -> list[str]:
    return [str(block) for block in cidr.cidr.subnets(new_prefix=mask)]


class IPv6Register(Register):
    family, mask = 6, 128


class BlockRegister(Register):
    """Blocks of two addresses: ranges touch them in part, first and last ones count."""

    family, mask = 6, 127


def _run(machine: type[Register]) -> None:
    settings = hypothesis.settings(
        max_examples=min(12, hypothesis.settings.default.max_examples // 8),
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        # Shrinking a sequence takes minutes; add hypothesis.Phase.shrink to look into a failure.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    stateful.run_state_machine_as_test(machine, settings=settings)
    connection.check_constraints()


@pytest.mark.property
def test_ipv4_addresses() -> None:
    _run(Register)


@pytest.mark.property
def test_ipv6_addresses() -> None:
    _run(IPv6Register)


@pytest.mark.property
def test_ipv6_blocks() -> None:
    _run(BlockRegister)
