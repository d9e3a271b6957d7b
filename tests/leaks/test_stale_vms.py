"""Rule `nothing-enumerates-a-network` of VMs, whatever the planner knows of their cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import stale
from tests.kube.fake import FakeCluster
from tests.leaks.vm_world import CRDS, Machines
from tests.pools.conftest import Clock

VMS = 800
TIMES = 80  # that a row may be read: of VMs, claims, their index entries and blocks


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
def test_first_and_later_passes(machines: Machines) -> None:
    for gone in (False, True):
        for n in range(0, VMS * gone, 2):
            machines.fake.remove("virtualmachines", f"vm{n}", "blue")
        for turn in range(3):
            before = stale.read()
            machines.times(1, 3600)
            read = stale.since(before)
            assert sum(read.values()) < TIMES * VMS, (gone, turn, read)
    assert len(machines.leaked()) == VMS // 2
