"""Which blocks are handed out: their order, pools of every size, exact blocks, several at once, both families."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pools.core import errors
from pools.models import Block, BlockEvent, FreeSpan
from pools.register import pools, usage
from pools.register.allocator import allocation
from tests import factories

ORDER = [
    pytest.param(("10.0.0.0/29",), None, ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"], id="v4"),
    pytest.param(("fd00::/120",), None, ["fd00::1/128", "fd00::2/128", "fd00::3/128"], id="v6"),
    pytest.param(("10.20.0.0/16",), 24, ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"], id="pod"),
    pytest.param(("10.9.0.0/31", "10.1.0.0/30"), None,
        ["10.9.0.0/32", "10.9.0.1/32", "10.1.0.1/32"], id="second CIDR"),
    pytest.param(("10.9.0.0/24", "10.1.0.0/24"), 24,
        ["10.9.0.0/24", "10.1.0.0/24"], id="one block each"),
]  # fmt: skip


@pytest.mark.parametrize(("cidrs", "mask", "expected"), ORDER)
def test_fresh_blocks_come_in_address_order(
    cidrs: tuple[str, ...], mask: int | None, expected: list[str]
) -> None:
    pool = factories.pool(*cidrs, mask=mask)
    assert factories.cidrs(pool, len(expected)) == expected


def test_order_goes_on_over_the_end_of_a_window() -> None:
    pool = factories.pool("10.0.0.0/16", cooldown=3600)
    expected = [f"10.0.{n >> 8}.{n & 255}/32" for n in range(1, 1001)]
    assert factories.cidrs(pool, 300) == expected[:300]
    batch = factories.ask(pool, *factories.holders(700)).blocks
    assert [block["cidr"] for block in batch] == expected[300:]


def test_what_was_released_comes_after_what_is_fresh_in_the_window(clock) -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=0)
    first = factories.take(pool)
    clock.advance(1)
    factories.give_back(first)
    assert factories.drain(pool) == [f"10.0.0.{n}/32" for n in (2, 3, 4, 5, 6, 1)]


def test_a_cidr_that_was_added_comes_last() -> None:
    pool = factories.pool("10.5.0.0/31")
    pools.add_cidr(pool.pk, factories.entry("10.1.0.0/31"), author=factories.BY)
    pools.add_cidr(pool.pk, factories.entry("10.3.0.0/31"), author=factories.BY)
    assert factories.drain(pool) == [
        "10.5.0.0/32", "10.5.0.1/32", "10.1.0.0/32", "10.1.0.1/32", "10.3.0.0/32", "10.3.0.1/32",
    ]  # fmt: skip


# --- Pools of every size: tiny ones, whole blocks, IPv6 by rule `nothing-enumerates-a-network` ----
TINY = [
    ("10.0.0.6/31", ["10.0.0.6/32", "10.0.0.7/32"]),
    ("10.0.0.6/32", ["10.0.0.6/32"]),
    ("fd00::6/127", ["fd00::6/128", "fd00::7/128"]),
    ("fd00::6/128", ["fd00::6/128"]),
    ("10.0.0.4/30", ["10.0.0.5/32", "10.0.0.6/32"]),
    ("fd00::4/126", ["fd00::5/128", "fd00::6/128", "fd00::7/128"]),
    ("10.20.0.0/23", ["10.20.0.0/24", "10.20.1.0/24"]),  # the network's addresses are blocks, too
    ("10.0.0.0/24", ["10.0.0.0/24"]),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("cidr", "expected"), TINY)
@pytest.mark.parametrize("batch", [False, True], ids=["one by one", "together"])
def test_tiny_pools(cidr: str, expected: list[str], batch: bool) -> None:
    pool = factories.pool(cidr, mask=int(expected[0].partition("/")[2]))
    if batch:
        got = [b["cidr"] for b in factories.ask(pool, *factories.holders(len(expected))).blocks]
    else:
        got = factories.drain(pool)
    assert got == expected
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool)
    assert usage.pool_usage(pool)[6 if ":" in cidr else 4].capacity == len(expected)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["10.0.0.1/32", "10.0.0.2/32"]),
        ({"allow_first_ip": True}, ["10.0.0.0/32", "10.0.0.1/32", "10.0.0.2/32"]),
        ({"allow_last_ip": True}, ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"]),
    ],
)
def test_first_and_last_address_are_a_setting(
    settings: dict[str, bool], expected: list[str]
) -> None:
    assert factories.drain(factories.pool("10.0.0.0/30", **settings)) == expected


HUGE = [
    ("2001:db8:10::/48", 128, ["2001:db8:10::1/128", "2001:db8:10::2/128"], 2**80 - 1),
    ("fd00::/8", 120, ["fd00::/120", "fd00::100/120"], 2**112),
    ("10.0.0.0/8", 32, ["10.0.0.1/32", "10.0.0.2/32"], 2**24 - 2),
]


@pytest.mark.parametrize(("cidr", "mask", "expected", "capacity"), HUGE)
def test_huge_pools_are_not_enumerated(
    cidr: str, mask: int, expected: list[str], capacity: int
) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        pool = factories.pool(cidr, mask=mask)
        assert factories.cidrs(pool, 2) == expected
        middle = {
            "2001:db8:10::/48": "2001:db8:10:8000::1/128",
            "fd00::/8": "fdff:ffff::/120",
            "10.0.0.0/8": "10.128.0.0/32",
        }[cidr]
        assert factories.take(pool, cidr=middle)["cidr"] == middle
        factories.reserve(pool, str(factories.cidr(pool).cidr[1000]) + "-" + _last(pool))
    assert len(queries) < 100
    assert Block.objects.count() < 1000
    (used,) = usage.pool_usage(pool).values()
    assert used.capacity == capacity
    assert used.held + used.cooling + used.reserved + used.free == capacity


def _last(pool) -> str:
    return str(factories.cidr(pool).cidr[-1])


@pytest.mark.parametrize(("cidr", "mask"), [("10.0.0.0/24", 23), ("fd00::/64", 63)])
def test_a_cidr_smaller_than_a_block_is_refused(cidr: str, mask: int, breaks) -> None:
    from pools.models import PoolCIDR

    with pytest.raises(errors.InvalidInput):
        factories.pool(cidr, mask=mask)
    pool = factories.pool("10.8.0.0/13", "fd08::/16", mask={4: 23, 6: 63})
    with breaks("cidr_holds_a_block"):
        PoolCIDR.objects.bulk_create([PoolCIDR(pool=pool, space=pool.space, cidr=cidr)])


# --- An exact block or address --------------------------------------------------------------------
@pytest.mark.sample(5)
@pytest.mark.parametrize("window", [False, True], ids=["untouched", "window there"])
@pytest.mark.parametrize(
    ("cidr", "mask", "requested"),
    [
        ("10.0.0.0/24", None, "10.0.0.3/32"),
        ("10.0.0.0/24", None, "10.0.0.254/32"),
        ("10.20.0.0/16", 24, "10.20.200.0/24"),
        ("fd00::/64", None, "fd00::dead:beef/128"),
        ("fd00::/48", 64, "fd00:0:0:7::/64"),
    ],
)
def test_it_is_given_once(cidr: str, mask: int | None, requested: str, window: bool) -> None:
    pool = factories.pool(cidr, mask=mask)
    if window:
        factories.take(pool)
    block = factories.take(pool, cidr=requested)
    assert block["cidr"] == requested
    with pytest.raises(errors.AlreadyAllocated, match="held by another holder"):
        factories.take(pool, cidr=requested)
    rest = factories.ask(pool, *factories.holders(200)).blocks
    assert requested not in {item["cidr"] for item in rest}


def test_asking_for_ones_own_is_200() -> None:
    pool, who = factories.pool("10.0.0.0/24"), factories.holder()
    first = factories.ask(pool, who, cidr="10.0.0.9/32")
    second = factories.ask(pool, who, cidr="10.0.0.9/32")
    assert (first.status, second.status) == (201, 200)
    assert second.blocks == first.blocks


def test_of_another_uid_is_not_ones_own() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool, factories.holder("h", uid="u1"), cidr="10.0.0.9/32")
    with pytest.raises(errors.Conflict):
        factories.take(pool, factories.holder("h", uid="u2"), cidr="10.0.0.9/32")


REFUSED: list[Any] = [
    pytest.param(
        {"cidr": "10.0.1.1/32"}, errors.InvalidInput, "is not in any CIDR", id="of another pool"
    ),
    pytest.param({"cidr": "10.0.0.0/31"}, errors.InvalidInput, "not one of", id="wrong size"),
    pytest.param({"cidr": "fd00::1/128"}, errors.InvalidInput, "is not in any", id="other family"),
    pytest.param({"cidr": "10.0.0.0/32"}, errors.ReservedAddress, "first or last", id="network"),
    pytest.param({"cidr": "10.0.0.255/32"}, errors.ReservedAddress, "first or last", id="last"),
    pytest.param({"cidr": "10.0.0.50/32"}, errors.ReservedAddress, "reserved range", id="range"),
    pytest.param(
        {"cidr": "10.0.0.9/32", "count": 2}, errors.InvalidInput, "one holder", id="twice"
    ),
    pytest.param(
        {"cidr": "10.0.0.9/32", "family": 6},
        errors.InvalidInput,
        "not of the requested family",
        id="mixed",
    ),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("ask", "error", "message"), REFUSED)
def test_refused(ask: dict[str, Any], error: type[errors.IpamError], message: str) -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.50-10.0.0.59"])
    factories.pool("10.0.1.0/24", within=pool.cluster)
    with pytest.raises(error, match=message):
        factories.take(pool, **ask)
    assert not Block.objects.filter(state="held").exists()


def test_allowed_first_and_last_addresses() -> None:
    pool = factories.pool("10.0.0.0/24", allow_first_ip=True, allow_last_ip=True)
    for address in ("10.0.0.0/32", "10.0.0.255/32"):
        assert factories.take(pool, cidr=address)["cidr"] == address


def test_released_and_cooled_down_it_may_be_asked_for_again(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    first = factories.take(pool, cidr="10.0.0.9/32")
    factories.give_back(first)
    with pytest.raises(errors.CoolingDown):
        factories.take(pool, cidr="10.0.0.9/32")
    clock.advance(61)
    assert factories.take(pool, cidr="10.0.0.9/32")["id"] == first["id"]


# --- Many at once, for one holder or one for each, of one or both families: rule `all-or-nothing`
def test_several_for_each() -> None:
    pool, who = factories.pool("10.0.0.0/24"), factories.holders(3)
    blocks = factories.ask(pool, *who, count=2).blocks
    assert len({block["cidr"] for block in blocks}) == 6
    for holder in who:
        assert sum(block["holder"]["id"] == holder.id for block in blocks) == 2


@pytest.mark.parametrize("warm", [False, True], ids=["untouched", "window there"])
def test_one_too_many_gives_none(warm: bool) -> None:
    pool = factories.pool("10.0.0.0/22")
    if warm:
        factories.give_back(factories.take(pool))
    spans = list(FreeSpan.objects.values_list("first", "last"))
    with pytest.raises(errors.PoolExhausted, match="1022 blocks left, 1023 were requested"):
        factories.ask(pool, *factories.holders(1023))
    assert not Block.objects.filter(state="held").exists()
    assert list(FreeSpan.objects.values_list("first", "last")) == spans
    assert len(factories.ask(pool, *factories.holders(1022)).blocks) == 1022


def test_one_holder_in_the_way_gives_none() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    other = factories.pool("fd01::/64", category="instance", within=pool.cluster)
    *who, busy = factories.holders(5, kind="instance")
    factories.take(other, busy)
    with pytest.raises(errors.OnePerHolder):
        factories.ask(pool, *who, busy)
    assert Block.objects.filter(state="held").count() == 1


def test_who_has_one_keeps_it() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    who = factories.holders(4, kind="instance")
    stored = [factories.take(pool, item) for item in who[1:3]]
    answer = factories.ask(pool, *who)
    assert answer.status == 201
    by_holder = {block["holder"]["id"]: block["id"] for block in answer.blocks}
    assert set(by_holder) == {item.id for item in who}
    assert all(by_holder[block["holder"]["id"]] == block["id"] for block in stored)
    assert factories.ask(pool, *who).status == 200


def test_cooled_down_ones_are_used_too(clock) -> None:
    pool = factories.pool("10.0.0.0/28", cooldown=60)
    for block in factories.ask(pool, *factories.holders(14)).blocks:
        factories.give_back(block)
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool, *factories.holders(2))
    clock.advance(61)
    assert len(factories.ask(pool, *factories.holders(14)).blocks) == 14


@pytest.mark.parametrize("count", [1, 1000])
def test_every_block_has_its_event(count: int) -> None:
    pool = factories.pool("10.0.0.0/16")
    blocks = factories.ask(pool, *factories.holders(count), org="o").blocks
    rows = BlockEvent.objects.filter(pgh_label="allocated").values_list("pgh_obj_id", "holder_id")
    assert sorted(rows) == sorted((block["id"], block["holder"]["id"]) for block in blocks)


def test_the_answer_is_what_is_stored() -> None:
    from pools.core import block_fields

    pool = factories.pool("10.0.0.0/24")
    for block in factories.ask(pool, *factories.holders(3), org="o", env="e").blocks:
        stored = Block.objects.filter(pk=block["id"]).values().get()
        block_answer = block_fields.block_answer(stored, pool=pool.name, cluster=pool.cluster.name)
        assert block_answer == block


# --- Dual-stack in one go: a block of each family, or none ----------------------------------------
def test_one_of_each_family() -> None:
    pool = factories.pool("10.20.0.0/16", "fd00::/104", mask={4: 24, 6: 120}, category="pod")
    blocks = factories.ask(pool, factories.holder(kind="node")).blocks
    assert [block["cidr"] for block in blocks] == ["10.20.0.0/24", "fd00::/120"]
    assert [block["address"] for block in blocks] == [None, None]


@pytest.mark.parametrize("short", [4, 6])
def test_none_when_one_family_is_exhausted(short: int) -> None:
    cidrs = ("10.0.0.0/32", "fd00::/64") if short == 4 else ("10.0.0.0/24", "fd00::/128")
    pool = factories.pool(*cidrs)
    factories.take(pool, family=short)
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool)
    assert Block.objects.filter(state="held").count() == 1


@pytest.mark.parametrize("family", [4, 6])
def test_one_family_alone(family: int) -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64")
    assert factories.take(pool, family=family)["family"] == family


def test_both_named() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64")
    demand = allocation.BlockDemand(factories.holders(2), families=(4, 6))
    blocks = allocation.allocate(pool.pk, demand, author=factories.BY).blocks
    assert [block["family"] for block in blocks] == [4, 4, 6, 6]


def test_a_node_that_has_one_family_gets_the_other() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    held = factories.take(pool, who, family=6)
    answer = factories.ask(pool, who)
    assert answer.status == 201
    assert [b["cidr"] for b in answer.blocks] == ["10.0.0.1/32", held["cidr"]]
