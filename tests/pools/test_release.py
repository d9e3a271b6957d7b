"""Release by id and holder: compare-and-set, so a late or doubled one frees nobody else's block."""

import pytest

from pools.core import errors
from pools.register.allocator import allocation, requests
from tests import factories

OTHERS = [
    pytest.param({"name": "other"}, id="another id"),
    pytest.param({"name": "h", "kind": "pod"}, id="another kind"),
    pytest.param({"name": "h", "uid": "u2"}, id="another uid"),
]


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("state", ["held", "cooling"])
def test_only_by_its_holder(who: dict[str, str], state: str) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool, factories.holder("h", uid="u1"))
    if state == "cooling":
        factories.give_back(block)
    before = factories.row(block)
    with pytest.raises(errors.HolderChanged):
        allocation.release(block["id"], factories.holder(**who), author=factories.BY)
    assert factories.row(block).__dict__.items() >= {
        (name, value) for name, value in before.__dict__.items() if name != "_state"
    }


def test_a_late_one_does_not_free_the_next_holders_block(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool)
    factories.give_back(first)
    clock.advance(61)
    second = factories.take(pool)
    assert second["id"] == first["id"]
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)
    assert factories.row(second).state == "held"


@pytest.mark.parametrize("cooldown", [0, 60])
def test_a_late_one_for_a_block_that_was_anothers_since_is_told_so(cooldown: int, clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=cooldown)
    first = factories.take(pool)
    factories.give_back(first)
    clock.advance(61)
    second = factories.take(pool, factories.holder("next"))
    factories.give_back(second)
    clock.advance(61)
    requests.end_cooldowns()  # the block is available again, and `next` was its last holder
    before = factories.row(second)
    assert before.state == "available"
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)
    assert factories.give_back(second).repeated
    assert factories.row(second).available_from == before.available_from


def test_of_the_same_name_with_another_uid_neither(clock) -> None:
    pool = factories.pool("10.0.0.0/32", cooldown=60)
    first = factories.take(pool, factories.holder("h", uid="u1"))
    factories.give_back(first)
    clock.advance(61)
    factories.take(pool, factories.holder("h", uid="u2"))
    with pytest.raises(errors.HolderChanged):
        factories.give_back(first)


@pytest.mark.parametrize("uid", ["", "u1"])
def test_a_uid_that_was_never_said_is_any(uid: str) -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool, factories.holder("h"))
    assert not allocation.release(
        block["id"], factories.holder("h", uid=uid), author=factories.BY
    ).repeated


def test_what_is_not_there_cannot_be_released() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    window = allocation.Block.objects.filter(state="available").values_list("pk", flat=True)
    for block_id in (0, 1 << 62, window[0]):
        for force in (False, True):
            with pytest.raises(errors.NotFound):
                allocation.release(
                    block_id, factories.holder("h"), author=factories.WITH_REASON, force=force
                )
