"""A CIDR in use that another one replaces gives it its blocks (rule `replaced-cidr-keeps-its-blocks`)."""

from ipaddress import ip_network

import pytest

from pools.core import errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Block, Pool, ReservedRange
from pools.register import pool_cidrs, pools
from tests import factories
from tests.checks.conftest import check, wrong

pytestmark = pytest.mark.django_db


def _replace(pool: Pool, *cidrs: str) -> None:
    family = ip_network(cidrs[0]).version
    part = Family(tuple(map(factories.entry, cidrs)), pool.mask_size(family) or 0)
    pools.change(pool.pk, pools.PoolChange(families={family: part}), author=factories.BY)


def _cidrs(pool: Pool) -> list[str]:
    return [str(row.cidr) for row in pool.cidrs.order_by("position")]


def _held(pool: Pool) -> dict[str, str]:
    rows = Block.objects.filter(pool=pool, state="held")
    return {str(row.cidr): row.holder_id for row in rows}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "after", "mask"),
    [
        (["10.130.0.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.1.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.0.0/24", "10.130.1.0/24"], ["10.130.0.0/23"], 32),
        (["10.130.0.0/23"], ["10.130.0.0/24", "10.130.1.0/24"], 32),
        (["10.130.0.0/23"], ["10.130.1.0/24", "10.130.0.0/24"], 32),
        (["10.130.0.0/23"], ["10.130.0.0/24"], 32),
        (["10.130.0.0/24", "10.140.0.0/24"], ["10.140.0.0/24", "10.130.0.0/22"], 28),
        (["fd00:0:0:2::/64"], ["fd00:0:0:2::/63"], 128),
        (["fd00:0:0:2::/63"], ["fd00:0:0:2::/64"], 80),
    ],
)
def test_growth_merge_split_and_narrowing(before: list[str], after: list[str], mask: int) -> None:
    pool = factories.pool(*before, mask=mask, category="vm")
    factories.ask(pool, *factories.holders(3))
    held = _held(pool)
    _replace(pool, *after)
    assert _cidrs(pool) == after
    assert _held(pool) == held
    cidrs = {block["cidr"] for block in factories.ask(pool, *factories.holders(2)).blocks}
    assert len(cidrs | held.keys()) == 5
    assert wrong(check()) == {}


def test_what_would_lose_its_cidr_is_refused_with_its_holder() -> None:
    pool = factories.pool("10.130.0.0/23", mask=24, category="vm")
    factories.ask(pool, *factories.holders(2))
    (outside,) = (holder for cidr, holder in _held(pool).items() if cidr == "10.130.1.0/24")
    with pytest.raises(errors.CIDRInUse) as caught:
        _replace(pool, "10.130.0.0/24")
    assert caught.value.message.startswith("10.130.1.0/24 has 1 held or cooling block:")
    assert outside in caught.value.message
    assert _cidrs(pool) == ["10.130.0.0/23"]
    assert len(_held(pool)) == 2


def test_the_new_size_is_validated_like_a_new_cidr() -> None:
    pool = factories.pool("10.130.0.0/24", mask=28, category="vm", name="one")
    factories.take(pool)
    factories.pool("10.130.1.0/24", mask=28, category="vm", within=pool.cluster, name="two")
    with pytest.raises(errors.CIDROverlap, match=r"of the pool .*two"):
        _replace(pool, "10.130.0.0/23")
    with pytest.raises(errors.CIDROverlap, match="of the same pool"):
        _replace(pool, "10.130.0.0/25", "10.130.0.0/26")
    with pytest.raises(errors.InvalidInput):
        _replace(pool, "10.130.0.0/29")
    with pytest.raises(errors.CIDROverlap, match="replace it in the list"):
        pools.add_cidr(pool.pk, factories.entry("10.130.0.0/25"), author=factories.BY)


def test_reserved_ranges_keep_their_reasons_and_cooling_blocks_cool_on() -> None:
    pool = factories.pool("10.130.0.0/24", mask=32, category="vm", cooldown=600)
    block = factories.take(pool)
    factories.give_back(block)
    cidr = pool.cidrs.get()
    span = factories.entry("10.130.0.0/24", "10.130.0.9-10.130.0.10").reserved[0]
    pools.reserve(cidr.pk, span, author=factories.BY, reason="printers")
    part = Family((CidrEntry(ip_network("10.130.0.0/23"), (span,)),), 32)
    pools.change(pool.pk, pools.PoolChange(families={4: part}), author=factories.BY)
    assert ReservedRange.objects.get(pool=pool).reason == "printers"
    assert factories.row(block).state == "cooling"
    assert pool_cidrs.families(pool)[4].cidrs == part.cidrs
