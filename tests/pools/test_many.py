"""Many at once, for one holder or one for each, of one or both families: rule `all-or-nothing`."""

import pytest

from pools.core import errors
from pools.models import Block, BlockEvent, FreeSpan
from tests import factories


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
