"""An answer of a webhook names nothing of other namespaces; the log of decisions has the full text."""

from __future__ import annotations

import pytest

from claims.models import Decision, IPPool
from pools.models import Block
from pools.webhooks import register
from tests import factories
from tests.claims import worlds
from tests.claims.webhooks.doors import Door, see, world
from tests.core.vm_world import MAC, Manifest, pod, vm_manifest

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool() -> IPPool:
    """With an entry for a VM of another namespace."""
    found = world()
    worlds.entry(found, MAC, "10.0.0.5/16", vm="ledger", namespace="bank")
    return found


def warnings(answer: Manifest) -> str:
    return " ".join(answer["warnings"])


def test_an_entry_of_another_namespace_names_nobody(pool: IPPool) -> None:
    door = Door(pool.cluster)
    see(door.cluster, vm_manifest())
    answer = warnings(door.ask(pod()))
    assert f"the entry of {MAC} belongs to another VM, not to blue/vm-server" in answer
    assert "bank" not in answer
    assert "ledger" not in answer
    decision = Decision.objects.latest("pk")
    assert decision.code == "entry_of_another_vm"
    assert "belongs to bank/ledger" in decision.message


def test_a_vm_that_is_made_names_nobody(pool: IPPool) -> None:
    answer = warnings(Door(pool.cluster, "mutate-vms").ask(vm_manifest()))
    assert "another VM" in answer
    assert "bank" not in answer


def test_an_entry_of_the_same_namespace_is_named(pool: IPPool) -> None:
    pool.entries.update(namespace="blue", vm="other")
    door = Door(pool.cluster)
    see(door.cluster, vm_manifest())
    assert "belongs to blue/other" in warnings(door.ask(pod()))


def test_holders_with_a_namespace_are_not_named() -> None:
    made = factories.pool("10.9.0.0/24", category="vm")
    factories.take(made)
    Block.objects.filter(pool_id=made.pk, state="held").update(holder_id="bank/ledger")
    registered = register.find_pool(made.cluster_id, made.name)
    assert registered is not None
    ((_, _, used),) = register.find_used_blocks(registered.whole_cidrs)
    assert "bank" not in str(used)
    assert str(used).startswith("1 held or cooling block: vm (")
