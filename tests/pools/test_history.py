"""Who held an address at a time."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from pools.core import addresses
from pools.models import Block
from pools.register import pools, retention
from pools.register.allocator import allocation, requests
from pools.register.history import addresses as history_addresses
from tests import factories


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ipam_now()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def _who(address: str, moment: datetime | None = None, **settings: Any) -> list[tuple[str, str]]:
    matches, _ = history_addresses.find_holders(
        addresses.parse_address(address), at=moment, **settings
    )
    return [(match.holder["id"], match.state) for match in matches]


def test_one_holder_after_another(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    start = _now()
    clock.advance(10)
    first = factories.take(pool, factories.holder("a"))
    clock.advance(10)
    factories.give_back(first)
    clock.advance(100)
    factories.take(pool, factories.holder("b"))
    expected = [(5, []), (10, [("a", "held")]), (19, [("a", "held")]), (20, [("a", "cooling")]),
        (79, [("a", "cooling")]), (80, []), (119, []), (120, [("b", "held")]),
        (999, [("b", "held")])]  # fmt: skip
    result = [(s, _who("10.0.0.0", start + timedelta(seconds=s))) for s, _ in expected]
    assert result == expected
    assert _who("10.0.0.0") == [("b", "held")]


def test_the_tenures_newest_first(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool, factories.holder("a", uid="u"), org="o", env="e")
    clock.advance(10)
    factories.give_back(first)
    _, tenures = history_addresses.find_holders(addresses.parse_address("10.0.0.0"))
    assert [tenure.state for tenure in tenures] == ["cooling", "held"]
    assert tenures[0].since == tenures[1].until
    assert tenures[0].until == tenures[0].since + timedelta(seconds=60)
    held = tenures[1].as_json()
    assert held["holder"] == {"kind": "vm", "id": "a", "uid": "u"}
    assert (held["org"], held["env"], held["block"]) == ("o", "e", "10.0.0.0/32")
    assert (held["pool"], held["cluster"]) == (pool.name, pool.cluster.name)
    assert held["since"].endswith("Z")


def test_now_is_told_by_the_clock_even_when_nothing_was_tidied(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    factories.give_back(factories.take(pool, factories.holder("a")))
    assert _who("10.0.0.0") == [("a", "cooling")]
    clock.advance(61)
    assert _who("10.0.0.0") == []
    requests.end_cooldowns()
    assert _who("10.0.0.0") == []


def test_a_cooldown_that_was_skipped_ended_then(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    block = factories.take(pool, factories.holder("a"))
    factories.give_back(block)
    clock.advance(10)
    allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    assert _who("10.0.0.0") == []
    assert _who("10.0.0.0", _now() - timedelta(seconds=1)) == [("a", "cooling")]


@pytest.mark.parametrize("mask", [120, 128])
def test_ipv6(mask: int) -> None:
    pool = factories.pool("fd00::/104", mask=mask)
    block = factories.take(pool, factories.holder("a"))
    assert _who(block["cidr"].partition("/")[0]) == [("a", "held")]


def test_of_a_pool_that_is_gone(clock) -> None:
    pool = factories.pool("10.0.0.0/32", name="old")
    block = factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    factories.give_back(block)
    pools.delete(pool.pk, author=factories.BY)
    factories.pool("10.0.0.0/24", within=pool.cluster)
    matches, _ = history_addresses.find_holders(addresses.parse_address("10.0.0.0"), at=moment)
    assert [(match.pool, match.holder["id"]) for match in matches] == [("old", "a")]


def test_even_when_no_pool_has_blocks_of_that_size_any_more(clock) -> None:
    pool = factories.pool("10.20.0.0/16", mask=24)
    block = factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    factories.give_back(block)
    pools.delete(pool.pk, author=factories.BY)
    assert _who("10.20.0.5", moment) == [("a", "held")]


def test_a_change_by_hand_begins_a_tenure_then(clock) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool, factories.holder("a"))
    moment = _now()
    clock.advance(10)
    Block.objects.filter(state="held").update(holder_id="b")
    assert _who("10.0.0.0", moment) == [("a", "held")]
    assert _who("10.0.0.0") == [("b", "held")]


def test_who_holds_it_now_is_known_however_short_events_are_kept(clock) -> None:
    factories.take(factories.pool("10.0.0.0/32"), factories.holder("a"))
    clock.advance(40 * 86400)
    retention.purge_events(30)
    assert _who("10.0.0.0") == [("a", "held")]
