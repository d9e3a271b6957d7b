"""Any sequence of edits in the cluster, edits in the register, and passes: rule `reconcile-converges`.

When it is quiet, two passes bring both to one another and a third one writes nothing, neither to the
cluster nor to the register. Whoever holds a block keeps it all the way, and no address has two holders.
"""

from __future__ import annotations

import contextlib
import itertools
from ipaddress import ip_network
from typing import Any

import hypothesis
import pytest
from django.db import transaction
from hypothesis import stateful, strategies as st

from pools.clusters import drift
from pools.core import errors
from pools.core.cilium import podippool
from pools.models import Block, Event, ManagedResource, ObservedObject, Pool
from pools.register import pools
from tests import factories
from tests.handlers.conftest import SHIPPED
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

NAMES = ["a", "b", "c"]
PLACES = [f"10.{number}.0.0/22" for number in range(4)] + ["10.0.0.0/21"]
MANAGERS = ["kubectl", "cadastre"]
_names = st.sampled_from(NAMES)
_cidrs = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)


class World(stateful.RuleBasedStateMachine):
    managed_resources: tuple[ManagedResource, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(transaction.atomic())
        self.stack.callback(transaction.set_rollback, True)
        server = self.stack.enter_context(FakeCluster())
        server.crds(SHIPPED)
        self.fleet, self.clock = Fleet(server), Clock()
        self.fleet.manage(*self.managed_resources)
        self.held: dict[str, str] = {}  # CIDR by holder
        self.holders = 0

    def teardown(self) -> None:
        self.stack.close()

    # --- in the cluster ---------------------------------------------------------------------------

    @stateful.rule(
        name=_names, cidrs=_cidrs, ranges=st.booleans(), manager=st.sampled_from(MANAGERS)
    )
    def put(self, name: str, cidrs: list[str], ranges: bool, manager: str) -> None:
        network = ip_network(cidrs[0])
        part = [reserved(cidrs[0], (str(network[0]), str(network[9])))] if ranges else None
        self.fleet.put(manifest(name, *cidrs, pool=part), manager=manager)

    @stateful.rule(name=_names, mask=st.sampled_from([24, 25]))
    def make_again(self, name: str, mask: int) -> None:
        self.remove(name)
        self.fleet.put(manifest(name, PLACES[0], mask=mask))

    @stateful.rule(name=_names)
    def remove(self, name: str) -> None:
        if name in self.fleet.there():
            self.fleet.remove(name)

    # --- in the register --------------------------------------------------------------------------

    @stateful.rule(name=_names, cidrs=_cidrs)
    def bring(self, name: str, cidrs: list[str]) -> None:
        with contextlib.suppress(errors.IpamError), transaction.atomic():
            pool = self.pool(name)
            if pool is None:
                self.fleet.make(name, *cidrs)
                return
            families = factories.families(*cidrs, mask=24)
            pools.change(pool.pk, pools.PoolChange(families=families), author=factories.BY)

    @stateful.rule(name=_names, place=st.sampled_from(PLACES))
    def reserve(self, name: str, place: str) -> None:
        pool = self.pool(name)
        result = pool and pool.cidrs.filter(cidr=place).first()
        if result:
            with contextlib.suppress(errors.IpamError), transaction.atomic():
                span = factories.addresses.parse_range(f"{ip_network(place)[0]}/30")
                pools.reserve(result.pk, span, author=factories.BY)

    @stateful.rule(name=_names)
    def delete(self, name: str) -> None:
        if pool := self.pool(name):
            with contextlib.suppress(errors.PoolInUse), transaction.atomic():
                pools.delete(pool.pk, author=factories.BY)

    @stateful.rule(name=_names, which=st.sampled_from([drift.apply, drift.adopt]))
    def decide(self, name: str, which: Any) -> None:
        target = drift.ClusterObject(self.fleet.cluster, podippool.KIND, name)
        with contextlib.suppress(errors.IpamError), transaction.atomic():
            which(target, author=factories.BY)

    @stateful.rule(name=_names)
    def take(self, name: str) -> None:
        if pool := self.pool(name):
            self.holders += 1
            holder = f"n{self.holders}"
            with contextlib.suppress(errors.PoolExhausted):
                block = factories.take(pool, factories.holder(holder, kind="node"))
                self.held[holder] = block["cidr"]

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(sorted(self.held)))
        row = Block.objects.get(holder_id=holder, state="held")
        block: Any = {"id": row.pk, "holder": {"kind": "node", "id": holder, "uid": ""}}
        factories.give_back(block)
        del self.held[holder]

    def pool(self, name: str) -> Pool | None:
        return Pool.objects.filter(cluster=self.fleet.cluster, name=name).first()

    # --- passes -----------------------------------------------------------------------------------

    @stateful.rule()
    def context(self) -> None:
        self.fleet.passed()
        self.clock.advance(40)

    @stateful.rule()
    def quiet(self) -> None:
        for _ in range(2):
            self.context()
        before = self.state()
        assert self.fleet.counted()["written"] == 0
        assert self.state() == before
        for name, object_ in self.fleet.there().items():
            self.agrees(name, object_)

    def state(self) -> Any:
        rows = Pool.objects.filter(cluster=self.fleet.cluster).order_by("pk")
        objects = ObservedObject.objects.order_by("pk").values()
        result = (self.fleet.findings(), self.fleet.drift(), self.fleet.problems())
        return list(rows.values()), list(objects), result, Event.objects.count(), self.fleet.there()

    def agrees(self, name: str, object_: dict[str, Any]) -> None:
        """Where they differ, somebody is told."""
        reported = {subject.split()[0] for _, subject in self.fleet.findings()}
        reported |= {name for name, _ in self.fleet.drift()} | set(self.fleet.problems())
        if name not in reported:
            assert self.fleet.cidrs(name) == object_["spec"]["ipv4"]["cidrs"]

    @stateful.invariant()
    def nothing_is_lost_or_given_twice(self) -> None:
        rows = Block.objects.filter(space__cluster=self.fleet.cluster, state="held")
        assert {row.holder_id: str(row.cidr) for row in rows} == self.held
        networks = sorted(ip_network(cidr) for cidr in self.held.values())
        assert not any(first.overlaps(other) for first, other in itertools.pairwise(networks))


class Managed(World):
    managed_resources = (ManagedResource.POOLS,)


class Elsewhere(World):
    """Managed, but not its pools."""

    managed_resources = (ManagedResource.POD_CIDRS,)


@pytest.mark.property
@pytest.mark.parametrize("machine", [World, Managed, Elsewhere])
def test_any_sequence_converges(machine: type[World]) -> None:
    settings = hypothesis.settings(
        max_examples=min(8, hypothesis.settings.default.max_examples // 12),
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    stateful.run_state_machine_as_test(machine, settings=settings)
