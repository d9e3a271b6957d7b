"""Whoever waits for the lock of a pool has locked no row yet: those who have the lock may need it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.imports.drafts import IMPORTS
from claims.models import NAD, Entry, IndexEntry, IPAMClaim, IPPool, Network, VMImport, Workload
from claims.workloads import adoption
from pools.models import AllocationRequest, Block, Pool
from pools.register.allocator import requests, window
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.networks import ovn
from tests.claims.workloads import kubevirt
from tests.claims.workloads.kubevirt import KubeVirt
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ROWS: tuple[Any, ...] = (
    Network, NAD, IPPool, Entry, IPAMClaim, Workload, IndexEntry, Pool, Block, AllocationRequest,
)  # fmt: skip


def wait_without_rows(work: Callable[[], object]) -> None:
    """Nobody else has locked a row while the work waits for the pools' locks."""

    def lock_pools() -> None:
        window.lock(*Pool.objects.values_list("pk", flat=True))

    with threads.waiting(work, behind=lock_pools):
        for model in ROWS:
            list(model.objects.select_for_update(nowait=True, no_key=True))


@dataclass(frozen=True)
class Place:
    """A network with an entry, of which a VM has the MAC, and what an import has written."""

    network: Network
    ippool: IPPool
    entry: Entry
    written: VMImport


@pytest.fixture
def place(transactional_db: None) -> Place:
    network = worlds.network()
    ippool = worlds.ippool(network)
    entry = worlds.entry(ippool, A, "10.0.0.5/24")
    worlds.workload(network, "db", B, "10.0.0.6/24")
    draft = drafts.draft(network, drafts.row("web", drafts.mac(7), "10.0.0.7"))
    return Place(network, ippool, entry, IMPORTS.commit(draft.pk, author=worlds.BY))


def _add(place: Place) -> None:
    entries.add(place.ippool.pk, [EntrySpec(A, ("10.0.0.5/24",))], source="hand", author=worlds.BY)


def _change(place: Place) -> None:
    entries.change(place.entry.pk, EntrySpec(B, ("10.0.0.6/24",)), author=worlds.BY)


def _delete(place: Place) -> None:
    entries.delete([place.entry.pk], author=worlds.BY)


def _delete_ippool(place: Place) -> None:
    ippools.delete(place.ippool.pk, author=worlds.BY)


def _adopt(place: Place) -> None:
    adoption.adopt(place.network, result="unknown", author=worlds.BY)


def _commit(place: Place) -> None:
    draft = drafts.draft(place.network, drafts.row("new", A, "10.0.0.5"))
    IMPORTS.commit(draft.pk, skip_bad=True, author=worlds.BY)


def _undo(place: Place) -> None:
    IMPORTS.undo(place.written.pk, author=worlds.BY)


@pytest.mark.parametrize("work", [_add, _change, _delete, _delete_ippool, _adopt, _commit, _undo])
def test_a_change_of_entries(place: Place, work: Callable[[Place], None]) -> None:
    wait_without_rows(partial(work, place))


def test_a_request_that_is_tried_again() -> None:
    """With several holders, or when the window has no block left, it needs the pool's lock."""
    pool = factories.pool("10.0.0.0/30", cooldown=0)
    blocks = factories.ask(pool, *factories.holders(2)).blocks
    requests.allocate(
        pool.pk, factories.demand(*factories.holders(2)), author=factories.BY, wait=True
    )
    for block in blocks:
        factories.give_back(block)
    wait_without_rows(lambda: requests.retry(pool.pk))
    assert AllocationRequest.objects.get().state == "fulfilled"


@pytest.fixture
def definitions() -> tuple[str, ...]:
    return kubevirt.CRDS


@pytest.fixture
def cluster(server: Any, transactional_db: None) -> KubeVirt:
    """A cluster whose VM is known."""
    virt = KubeVirt(server)
    virt.put(ovn.nad())
    virt.launcher("launcher", virt.vmi(virt.vm("db"), "10.0.0.5"), "10.0.0.5/24")
    virt.passed()
    return virt


def _vm_moves(virt: KubeVirt) -> None:
    virt.launcher("launcher", virt.vmi(virt.vm("db"), "10.0.0.6"), "10.0.0.6/24")


def _vm_goes(virt: KubeVirt) -> None:
    virt.remove("virtualmachineinstances", "db")
    virt.remove("pods", "launcher")


def _network_changes(virt: KubeVirt) -> None:
    virt.put(ovn.nad(subnets="10.0.0.0/23"))


def _network_goes(virt: KubeVirt) -> None:
    virt.remove("network-attachment-definitions", "prod")


@pytest.mark.parametrize("change", [_vm_moves, _vm_goes, _network_changes, _network_goes])
def test_what_a_sync_run_stores(cluster: KubeVirt, change: Callable[[KubeVirt], None]) -> None:
    change(cluster)
    wait_without_rows(cluster.twice)
