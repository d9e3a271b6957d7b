"""One live block of each family per holder in node, instance and env pools."""

import pytest

from pools.core import errors
from pools.models import Block
from tests import factories

SINGLE = [("node", "node"), ("instance", "instance"), ("ipv4", "env")]
CIDR = {"node": "fd00::/64", "instance": "fd00::/64", "ipv4": "203.0.113.0/24"}
single = pytest.mark.parametrize(("category", "kind"), SINGLE)


@single
def test_asking_again_gives_the_same_block(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    who = factories.holder(kind=kind)
    first, second = factories.ask(pool, who), factories.ask(pool, who)
    assert (first.status, second.status) == (201, 200)
    assert second.blocks == first.blocks


@single
def test_not_of_another_pool_of_the_category(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    other = factories.pool(
        CIDR[category].replace("fd00", "fd01").replace("203.0", "198.51"),
        category=category,
        within=pool.cluster,
    )
    who = factories.holder(kind=kind)
    held = factories.take(pool, who)
    with pytest.raises(errors.OnePerHolder, match=f"holds {held['cidr']} of another pool"):
        factories.take(other, who)
    with pytest.raises(errors.OnePerHolder):
        factories.ask(other, who, factories.holder(kind=kind))


@single
def test_not_a_second_exact_one_nor_two(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    who = factories.holder(kind=kind)
    held = factories.take(pool, who)
    exact = held["cidr"].replace("::1/", "::9/").replace(".1/", ".9/")
    with pytest.raises(errors.OnePerHolder, match=f"holds {held['cidr']} already"):
        factories.take(pool, who, cidr=exact)
    with pytest.raises(errors.OnePerHolder):
        factories.ask(pool, factories.holder(kind=kind), count=2)


@single
def test_the_database_holds_it(category: str, kind: str, breaks) -> None:
    pool = factories.pool(CIDR[category], category=category)
    first, second = (factories.take(pool, factories.holder(kind=kind)) for _ in range(2))
    with breaks("one_block_per_environment" if kind == "env" else "one_block_per_holder"):
        Block.objects.filter(pk=second["id"]).update(holder_id=first["holder"]["id"])


def test_named_twice_in_one_request_is_one_holder() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    who = factories.holder(kind="instance")
    blocks = factories.ask(pool, who, who).blocks
    assert {block["cidr"] for block in blocks} == {"fd00::1/128"}


def test_one_of_each_family() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    assert [b["family"] for b in factories.ask(pool, who).blocks] == [4, 6]
    assert factories.ask(pool, who).status == 200


def test_another_kind_or_cluster_or_category_is_another_holder() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    node_pool = factories.pool("fd01::/64", category="node", within=pool.cluster)
    other = factories.pool("fd00::/64", category="instance")
    instance, node = factories.holder("x", kind="instance"), factories.holder("x", kind="node")
    got = [
        factories.take(pool, instance),
        factories.take(pool, node),
        factories.take(node_pool, node),
        factories.take(other, instance),
    ]
    assert len({block["id"] for block in got}) == 4


@pytest.mark.parametrize("category", ["pod", "vm"])
def test_elsewhere_a_holder_has_as_many_as_it_likes(category: str) -> None:
    pool = factories.pool("10.0.0.0/24", category=category)
    who = factories.holder()
    assert len({factories.take(pool, who)["cidr"] for _ in range(3)}) == 3
    assert len(factories.ask(pool, who, count=3).blocks) == 3


def test_the_same_name_with_another_uid_is_refused_until_released() -> None:
    pool = factories.pool("fd00::/64", category="node")
    old, new = (factories.holder("n", kind="node", uid=uid) for uid in ("u1", "u2"))
    factories.take(pool, old)
    for ask in ({}, {"cidr": "fd00::1/128"}):
        with pytest.raises(errors.HolderChanged, match="under another uid"):
            factories.take(pool, new, **ask)
    assert factories.ask(pool, factories.holder("n", kind="node")).status == 200
