"""Each check of blocks: what contradicts it is seen by it alone.

Statements run as somebody with psql who has switched the triggers off. Constraints that would stand in
the way are dropped first, which the check of constraints sees too: it is left out here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pools.models import Block
from tests import factories
from tests.checks.conftest import check_rows, texts, wrong

DROP = "ALTER TABLE pools_block DROP CONSTRAINT "


@dataclass(frozen=True)
class Break:
    """What is done to a held block of a pool 10.0.0.0/24, and which check tells of it."""

    statement: str
    code: str
    says: str
    first: str = ""  # a rule that is dropped before


BREAKS = {
    "pool gone": Break("UPDATE pools_block SET pool_id = 999999 WHERE id = {held}", "block_place", "its pool does not exist"),
    "space": Break(
        "UPDATE pools_block SET space_id = (SELECT max(id) FROM pools_addressspace) WHERE id = {held}",
        "block_place", "another address space",
    ),
    "category": Break("UPDATE pools_block SET category = 'ipv4' WHERE id = {held}", "block_place", "its category differs"),
    "family": Break("UPDATE pools_block SET family = 6 WHERE id = {held}", "block_place", "its family"),
    "held in the window": Break(
        "UPDATE pools_block SET available_from = now() WHERE id = {held}", "block_state",
        "it is held, but could be allocated again", DROP + "block_state",
    ),
    "no holder": Break(
        "UPDATE pools_block SET holder_id = '' WHERE id = {cooled}; UPDATE pools_block SET state = 'held', available_from = NULL WHERE id = {cooled}",
        "block_state", "it has no holder", DROP + "block_state",
    ),
    "no such state": Break("UPDATE pools_block SET state = 'lent' WHERE id = {fresh}", "block_state", "its state is unknown", DROP + "block_state"),
    "cooldown before release": Break(
        "UPDATE pools_block SET released_at = available_from + interval '1 hour' WHERE id = {cooled}",
        "block_state", "ends before its release",
    ),
    "withheld in the window": Break("UPDATE pools_block SET withheld = true WHERE id = {fresh}", "block_state", "it is withheld, but in the window"),
    "no event": Break("DELETE FROM pools_blockevent WHERE pgh_obj_id = {held}", "history", "it has no event"),
    "another holder": Break("UPDATE pools_block SET holder_id = 'thief' WHERE id = {held}", "history", "(held, vm thief): its last event names vm vm-held"),
    "another tenant": Break("UPDATE pools_block SET org = 'thief' WHERE id = {held}", "history", "its last event names"),
    "another time": Break("UPDATE pools_block SET allocated_at = now() - interval '1 day' WHERE id = {held}", "history", "another time of allocation"),
    "released behind the history": Break(
        "UPDATE pools_block SET state = 'cooling', released_at = now(), available_from = now() + interval '1 hour' WHERE id = {held}",
        "history", "its last event says held",
    ),
    "shortened cooldown": Break(
        "UPDATE pools_block SET available_from = available_from - interval '1 minute' WHERE id = {cooled}",
        "history", "its cooldown ends earlier than in its last event",
    ),
}  # fmt: skip


def _ids() -> dict[str, int]:
    factories.cluster()
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    held = factories.take(pool, factories.holder("vm-held"))
    cooled = factories.take(pool, factories.holder("vm-cooled"))
    factories.give_back(cooled)
    fresh = Block.objects.filter(pool=pool, state="available").order_by("id")[0].pk
    factories.cluster()  # its address space is the last
    return {"held": held["id"], "cooled": cooled["id"], "fresh": fresh}


@pytest.mark.sample(16)
@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_a_broken_block_is_seen(broken: Break, psql: Callable[..., None]) -> None:
    ids = _ids()
    if broken.first:
        psql(broken.first)
    for statement in broken.statement.split(";"):
        psql(statement.format(**ids))
    run = check_rows()
    observed = wrong(run)
    assert broken.code in observed, (observed, texts(run))
    assert broken.says in texts(run)
    # What changes a row against its rules contradicts its history too, or leaves its place free.
    assert set(observed) - {broken.code} <= _ALSO.get(broken.says, set()), texts(run)


_ALSO = {"another address space": {"free_space"}, "it has no holder": {"history"}}


def test_blocks_outside_every_cidr_are_seen(psql: Callable[..., None]) -> None:
    pool = factories.pool("10.0.0.0/28", "10.1.0.0/28")
    factories.take(pool, cidr="10.1.0.1/32")
    factories.take(pool)
    psql(
        "DELETE FROM pools_freespan WHERE pool_cidr_id = %s", factories.cidr(pool, "10.1.0.0/28").pk
    )
    psql("DELETE FROM pools_poolcidr WHERE id = %s", factories.cidr(pool, "10.1.0.0/28").pk)
    outside = Block.objects.filter(pool=pool, cidr__startswith="10.1.0.")
    assert outside.count() > 1
    run = check_rows()
    assert wrong(run) == {"block_place": outside.count()}
    assert "it is not in exactly one CIDR" in texts(run)
