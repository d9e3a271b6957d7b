"""Several who reclaim the same leaks at once: each block is taken back once, and nobody waits in a circle."""

from typing import Any

import pytest

from pools.models import Block, Event
from pools.register.allocator import allocation
from pools.register.leaks import reclaim, references
from pools.register.leaks.references import ReferenceReport
from tests import factories
from tests.concurrent import threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
BLOCKS = 40


@pytest.fixture
def leaked(settings: Any) -> list[reclaim.ReclaimTarget]:
    """As two complete reports found them."""
    settings.IPAM_LEAK_GRACE_SECONDS = 0
    cluster = factories.cluster()
    pool = factories.pool("10.0.0.0/24", within=cluster, cooldown=600)
    factories.ask(pool, *factories.holders(BLOCKS, kind="instance"))
    for sequence in (1, 2):
        references.ingest_report(
            ReferenceReport(cluster, "instance", sequence, True, ()), author=factories.BY
        )
    return [
        reclaim.ReclaimTarget(block.pk, block.holder_kind, block.holder_id, block.holder_uid, "", block.allocated_at)
        for block in Block.objects.filter(state="held").order_by("pk")
    ]  # fmt: skip


def _reclaim(targets: list[reclaim.ReclaimTarget]) -> list[reclaim.ReclaimResult]:
    return list(reclaim.reclaim_all(targets, author=factories.WITH_REASON))


def test_each_block_is_taken_back_once(leaked: list[reclaim.ReclaimTarget]) -> None:
    works = [lambda: _reclaim(leaked), lambda: _reclaim(leaked[::-1]), lambda: _reclaim(leaked)]
    results = threads.together(works)
    assert not threads.failures(results)
    outcomes = [item for result in results if isinstance(result, list) for item in result]
    assert not [item.error for item in outcomes if item.error]
    assert sum(not item.repeated for item in outcomes) == BLOCKS
    assert Event.objects.filter(type="reclaimed").count() == BLOCKS


def test_a_holder_that_returns_meanwhile_keeps_its_new_block(
    leaked: list[reclaim.ReclaimTarget],
) -> None:
    """It released, and was given the block again, while the reclaim waited for the row."""
    target = leaked[0]
    holder = allocation.Holder(target.kind, target.id)

    def return_() -> None:
        allocation.release(target.block_id, holder, author=factories.BY)
        factories.take(Block.objects.get(pk=target.block_id).pool, holder)

    first = threads.in_passing(return_, commit=True)
    results = threads.together([first, threads.meanwhile(lambda: _reclaim([target]))])
    assert not threads.failures(results)
    block = Block.objects.get(pk=target.block_id)
    assert block.state == "held"
    (result,) = results[1]  # type: ignore[misc]
    assert result.error is not None
    assert result.error.code in {"holder_changed", "not_leaked"}
