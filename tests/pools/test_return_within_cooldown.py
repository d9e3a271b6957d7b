"""A holder that returns within its cooldown gets its former block back."""

import pytest

from pools.core import errors
from tests import clock as database_clock, factories

POOLS = [("node", "fd00::/64"), ("instance", "fd00::/64"), ("ipv4", "10.0.0.0/24"),
         ("vm", "10.0.0.0/24"), ("pod", "10.0.0.0/24")]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize(("category", "cidr"), POOLS)
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "in a batch"])
def test_the_former_block(category: str, cidr: str, batch: bool) -> None:
    pool = factories.pool(cidr, category=category, cooldown=3600)
    who = factories.holder()
    factories.take(pool)
    former = factories.take(pool, who)
    factories.give_back(former)
    other = factories.take(pool)
    answer = factories.ask(pool, *([factories.holder()] * batch), who)
    assert answer.status == 201
    assert former["cidr"] in {block["cidr"] for block in answer.blocks}
    assert former["cidr"] != other["cidr"]
    assert factories.row(former).holder_id == who.id


def test_the_newest_of_several() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    who = factories.holder()
    first, second = factories.ask(pool, who, count=2).blocks
    factories.give_back(second)
    factories.give_back(first)
    got = {factories.take(pool, who)["cidr"], factories.take(pool, who)["cidr"]}
    assert got == {first["cidr"], second["cidr"]}


def test_after_its_cooldown_it_is_like_everybody_else(clock) -> None:
    pool = factories.pool("10.0.0.0/30", cooldown=60)
    who = factories.holder()
    former = factories.take(pool, who)
    factories.give_back(former)
    clock.advance(61)
    assert factories.take(pool, who)["cidr"] == "10.0.0.2/32"


def test_another_uid_is_another_holder() -> None:
    pool = factories.pool("fd00::/64", category="node")
    former = factories.take(pool, factories.holder("n", kind="node", uid="u1"))
    factories.give_back(former)
    got = factories.take(pool, factories.holder("n", kind="node", uid="u2"))
    assert got["cidr"] != former["cidr"]


@pytest.mark.parametrize("uid", ["u1", ""], ids=["same uid", "uid not said"])
def test_the_same_uid_is_the_same_holder(uid: str) -> None:
    pool = factories.pool("fd00::/64", category="node")
    former = factories.take(pool, factories.holder("n", kind="node", uid="u1"))
    factories.give_back(former)
    got = factories.take(pool, factories.holder("n", kind="node", uid=uid))
    assert got["cidr"] == former["cidr"]


def test_the_exact_former_block_too_but_not_for_others() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    who = factories.holder()
    former = factories.take(pool, who, cidr="10.0.0.9/32")
    factories.give_back(former)
    end, before = factories.row(former).available_from, database_clock.moment()
    with pytest.raises(errors.CoolingDown, match="is in cooldown until") as caught:
        factories.take(pool, cidr="10.0.0.9/32")
    least, most = ((end - item).total_seconds() for item in (database_clock.moment(), before))
    assert least <= caught.value.retry_after <= most <= 60
    assert factories.take(pool, who, cidr="10.0.0.9/32")["id"] == former["id"]


def test_the_end_of_the_cooldown_is_forgotten(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    who = factories.holder()
    factories.give_back(factories.take(pool, who))
    back = factories.take(pool, who)
    assert (back["state"], back["cooldown_until"], back["released_at"]) == ("held", None, None)
    clock.advance(3600)
    assert factories.row(back).state == "held"


def test_each_family_of_a_dual_stack_pool() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    former = factories.ask(pool, who).blocks
    factories.give_back(former[1])
    factories.take(pool, factories.holder(kind="node"), family=6)
    again = factories.ask(pool, who)
    assert [block["cidr"] for block in again.blocks] == [block["cidr"] for block in former]
