"""Rule `nothing-enumerates-a-network`, also where statistics are out of date.

The planner last looked at empty tables, and twenty thousand blocks came since; each statement runs
so often that PostgreSQL may settle on a plan that fits no particular values.
"""

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from pools.models import Pool
from pools.register.allocator import requests
from pools.register.history import addresses
from tests import factories, stale

HELD = 20_000
ROWS = 1_000  # that one act may read; a window has 512
TIMES = 12


@pytest.fixture
def crowded(sql: Callable[..., list[tuple[object, ...]]]) -> Pool:
    """A pool of many holders, of a kind of which each has one."""
    pool = factories.pool("10.0.0.0/15", category="instance")
    sql("ANALYZE pools_block, pools_blockevent, pools_freespan, pools_window")
    for start in range(0, HELD, 10_000):
        who = [factories.holder(f"i-{start + n}", kind="instance") for n in range(10_000)]
        factories.ask(pool, *who)
    return pool


def _read() -> int:
    """Rows of the register that this transaction has read so far."""
    return sum(stale.read().values())


def _one(pool: Pool, number: int) -> None:
    factories.ask(pool, factories.holder(f"new-{number}", kind="instance"))


def _again(pool: Pool, number: int) -> None:
    factories.ask(pool, factories.holder(f"i-{number}", kind="instance"))


def _several(pool: Pool, number: int) -> None:
    who = [factories.holder(f"{name}-{number}", kind="instance") for name in ("i", "a", "b")]
    factories.ask(pool, *who)


def _exact(pool: Pool, number: int) -> None:
    factories.ask(
        pool, factories.holder(f"exact-{number}", kind="instance"), cidr=f"10.1.200.{number}/32"
    )


def _released(pool: Pool, number: int) -> None:
    factories.give_back(
        factories.ask(pool, factories.holder(f"i-{number}", kind="instance")).blocks[0]
    )


def _tidied(_pool: Pool, _number: int) -> None:
    requests.end_cooldowns()


def _reserved(pool: Pool, number: int) -> None:
    factories.reserve(pool, f"10.1.250.{number}-10.1.250.{number}")


def _asked(_pool: Pool, number: int) -> None:
    addresses.find_holders(ip_address(f"10.0.9.{number}"))


def _retried(pool: Pool, _number: int) -> None:
    requests.retry(pool.pk)


ACTS = [_one, _again, _several, _exact, _released, _tidied, _reserved, _asked, _retried]


@pytest.mark.sample(3)
@pytest.mark.parametrize("act", ACTS)
def test_rows_read(crowded: Pool, act: Callable[[Pool, int], None]) -> None:
    read = []
    for number in range(1, TIMES):
        before = _read()
        act(crowded, number)
        read.append(_read() - before)
    assert max(read) < ROWS, read


def test_who_had_an_address_where_another_had_all_events(
    sql: Callable[..., list[tuple[object, ...]]],
) -> None:
    """The planner thinks then that any address has most of them."""
    pool = factories.pool("10.0.0.0/15", category="instance")
    other = factories.pool("10.0.0.0/24", category="vm", cooldown=0)
    for number in range(6):
        holder = factories.holder(f"vm-{number}", kind="vm")
        factories.give_back(factories.ask(other, holder, cidr="10.0.0.7/32").blocks[0])
    sql("ANALYZE pools_blockevent")
    factories.ask(pool, *(factories.holder(f"i-{n}", kind="instance") for n in range(8000)))
    for number in range(1, TIMES):
        before = _read()
        _asked(pool, number)
        assert _read() - before < ROWS
