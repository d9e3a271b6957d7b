"""Rule `nothing-enumerates-a-network`, whatever the planner knows of nodes, holders and VMs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pools.models import Block, Leak
from pools.register.leaks import detection, reclaim, reports
from tests import factories, stale
from tests.kube.fake import FakeCluster
from tests.leaks.feeds import Feed
from tests.leaks.vm_world import CRDS, Machines
from tests.pools.conftest import Clock

HELD = 4000
TIMES = 30  # that a row may be read, of the register's tables and of a report's


@pytest.fixture
def feed(clock: Clock) -> Feed:
    """Very many holders, of whom nothing was known when the tables were looked at."""
    feed = Feed(clock)
    pool = factories.pool("10.16.0.0/16", within=feed.cluster)
    stale.sql("ANALYZE pools_block, pools_leak, pools_reference, pools_observedobject")
    factories.ask(pool, *(factories.holder(f"i-{n}", kind="instance") for n in range(HELD)))
    return feed


def _read() -> int:
    return sum(stale.read().values())


def test_the_reports(feed: Feed) -> None:
    before = _read()
    feed.twice(*(f"i-{n}" for n in range(0, HELD, 2)))
    assert detection.confirmed_leaks().count() == HELD // 2
    assert _read() - before < TIMES * HELD


@pytest.mark.exhaustive
def test_the_list_and_taking_them_back(feed: Feed) -> None:
    feed.twice("i-0")
    before = _read()
    listed = list(reports.iterate_leaks(detection.confirmed_leaks()))
    assert len(listed) == HELD - 1
    assert _read() - before < TIMES * HELD
    batch = listed[: reclaim.BATCH]
    expected = [reclaim.ReclaimTarget(item.block_id, "instance", item.holder_id) for item in batch]
    before = _read()
    done = reclaim.reclaim_all(expected, author=factories.WITH_REASON)
    assert not any(result.error for result in done)
    assert _read() - before < TIMES * HELD
    assert Block.objects.filter(state="cooling").count() == len(batch)


@pytest.mark.exhaustive
def test_who_is_seen_again(feed: Feed) -> None:
    feed.twice("i-0")
    before = _read()
    feed.report(*(f"i-{n}" for n in range(HELD)), complete=False)
    assert not Leak.objects.exists()
    assert _read() - before < TIMES * HELD


# --- Rule `nothing-enumerates-a-network` of VMs, whatever the planner knows of their cluster ------
VMS = 800
TIMES_OF_VMS = 80  # that a row may be read: of VMs, claims, their index entries and blocks


@pytest.fixture
def machines(clock: Clock) -> Iterator[Machines]:
    stale.another_cluster("VirtualMachine", "VirtualMachineInstance", "IPAMClaim", "Pod")
    with FakeCluster() as running:
        running.crds(*CRDS)
        world = Machines(running, clock, ("10.0.0.0/16",))
        for n in range(VMS):
            world.vm_with_claim(f"10.0.{n // 250}.{n % 250 + 2}/16", vm=f"vm{n}")
        yield world


@pytest.mark.exhaustive
def test_first_and_later_passes_over_vms(machines: Machines) -> None:
    for gone in (False, True):
        for n in range(0, VMS * gone, 2):
            machines.fake.remove("virtualmachines", f"vm{n}", "blue")
        for turn in range(3):
            before = stale.read()
            machines.times(1, 3600)
            read = stale.since(before)
            assert sum(read.values()) < TIMES_OF_VMS * VMS, (gone, turn, read)
    assert len(machines.leaked()) == VMS // 2
