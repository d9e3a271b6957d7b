"""Any life of nodes: what the handler writes is what Cilium's operator writes, error texts too.

The operator is tests/core/cilium_operator.py, itself held to recorded answers. Cooldown 0, one process;
pool `a` has CIDRs of 8 and 4 blocks of /30 (two addresses each), pool `b` one of 4. After each step
every node is served, in the order in which the nodes were first seen. What the handler does otherwise
on purpose is in other tests: it never takes from a node what no other node lists, it hands out at
most so much at once, and a block that was written to no node yet is not released.
"""

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, example, given, settings, strategies as st

from pools.cilium.ciliumnodes import CiliumNodes
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import SyncContext
from pools.core import addresses
from pools.core.cilium import ciliumnode
from pools.core.kubernetes import resources
from pools.models import Connection, Mode, Now, Pool
from pools.register import manifests, pools
from tests import factories
from tests.core import cilium_operator
from tests.handlers.node_world import MANAGED_RESOURCES, manifest

CIDRS = {"a": ["10.0.1.0/27", "10.0.0.0/28"], "b": ["10.1.0.0/28"]}
NODES = st.sampled_from(["n1", "n2", "n3"])
POOLS = st.sampled_from(["a", "b", "none"])
STEPS = st.one_of(
    st.tuples(st.just("ask"), NODES, POOLS, st.integers(0, 20)),
    st.tuples(st.just("give back"), NODES, POOLS, st.integers(0, 3)),
    st.tuples(st.just("list"), NODES, POOLS, st.integers(0, 15)),
    st.tuples(st.just("go"), NODES, st.just(""), st.just(0)),
    st.tuples(st.just("reserve"), st.just(""), st.sampled_from(["a", "b"]), st.integers(0, 15)),
    st.tuples(st.just("unreserve"), st.just(""), st.sampled_from(["a", "b"]), st.just(0)),
)


class Both:
    """One cluster, served by the handler and by the operator."""

    def __init__(self) -> None:
        self.cluster = factories.cluster()
        managed = {"mode": Mode.MANAGED, "managed_resources": MANAGED_RESOURCES}
        self.connection = Connection.objects.create(cluster=self.cluster, due_at=Now(), **managed)
        self.handler = CiliumNodes()
        self.operator = cilium_operator.Operator()
        self.operator.finish_restore()
        self.nodes: dict[str, dict[str, Any]] = {}
        self.version = 0
        for name, cidrs in CIDRS.items():
            factories.pool(*cidrs, mask=30, category="pod", within=self.cluster, name=name)
            self.change(name)

    def change(self, name: str) -> None:
        pool = Pool.objects.get(cluster=self.cluster, name=name)
        self.operator.upsert_pool(manifests.to_manifest(pool))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        yield

    def context(self) -> SyncContext:
        return SyncContext(
            cluster=self.cluster,
            connection=self.connection,
            client=None,  # type: ignore[arg-type]  # a full pass asks the cluster for nothing more
            author=factories.BY,
            transaction=self.transaction,
            served={ciliumnode.KIND: resources.CILIUM_NODE},
            complete={ciliumnode.KIND},
        )

    def put(self, node: dict[str, Any]) -> None:
        self.version += 1
        name = node["metadata"]["name"]
        node["metadata"].update(uid=f"uid-{name}", resourceVersion=str(self.version))
        self.nodes[name] = node
        ingest.ingest(self.context(), self.handler, resources.CILIUM_NODE, [copy.deepcopy(node)])

    def go(self, name: str) -> None:
        if self.nodes.pop(name, None) is None:
            return
        ids = [row.pk for row in self.cluster.objects_seen.filter(name=name)]
        ingest.forget(self.context(), self.handler, ids)
        self.operator.release_node(name)

    def serve(self) -> dict[str, str]:
        """All nodes, by both; the operator's error of each."""
        for write in list(self.handler.desired(self.context())):
            expected = write.make(copy.deepcopy(self.nodes[write.name]))
            if expected is not None:
                self.put(expected)
        names = self.cluster.objects_seen.order_by("id").values_list("name", flat=True)
        demands = [ciliumnode.parse(self.before[name]) for name in names]
        for demand in demands:
            self.operator.allocate_to_node(replace(demand, requested={}))
        outcomes = {demand.name: self.operator.allocate_to_node(demand) for demand in demands}
        return {name: ciliumnode.error_text(outcome.errors) for name, outcome in outcomes.items()}

    def step(self, verb: str, name: str, pool: str, number: int) -> None:
        if verb in {"reserve", "unreserve"}:
            self.reserve(pool, number, free=verb == "unreserve")
        elif verb == "go":
            self.go(name)
        else:
            self.put(self.edited(verb, name, pool, number))
        self.before = copy.deepcopy(self.nodes)
        errors = self.serve()
        for node in self.nodes.values():
            demand = ciliumnode.parse(node)
            lists = {pool: sorted(cidrs) for pool, cidrs in demand.held_cidrs().items()}
            expected = self.operator.allocated(demand.name)
            assert lists == {pool: sorted(cidrs) for pool, cidrs in expected.items() if cidrs}
            assert demand.operator_error == errors[demand.name]

    def edited(self, verb: str, name: str, pool: str, number: int) -> dict[str, Any]:
        node = copy.deepcopy(self.nodes.get(name) or manifest(name))
        demand = ciliumnode.parse(node)
        demands = {pool_name: dict(needed) for pool_name, needed in demand.requested.items()}
        lists = {item: [str(cidr) for cidr in cidrs] for item, cidrs in demand.held_cidrs().items()}
        if verb == "ask":
            demands[pool] = {4: number}
        elif verb == "give back":
            lists[pool] = lists.get(pool, [])[number:]
        elif (block := _block(pool, number)) not in lists.setdefault(pool, []):
            lists[pool].append(block)
        lists = {pool_name: cidrs for pool_name, cidrs in lists.items() if cidrs}
        return node | {"spec": manifest(name, demands=demands, lists=lists)["spec"]}

    def reserve(self, name: str, number: int, *, free: bool) -> None:
        pool = Pool.objects.get(cluster=self.cluster, name=name)
        if free:
            for reserved_range in pool.reserved_ranges.all():
                pools.unreserve(reserved_range.pk, author=factories.BY)
        elif not pool.reserved_ranges.exists():
            parent = factories.cidr(pool)
            first = parent.cidr[number]
            span = addresses.AddressRange(first, parent.cidr[min(number + 5, 15)])
            pools.reserve(parent.pk, span, author=factories.BY)
        self.change(name)


def _block(pool: str, number: int) -> str:
    base = {"a": "10.0.1.", "b": "10.1.0."}.get(pool, "10.9.0.")
    return f"{base}{number % 8 * 4}/30"


# In the order of their addresses, not of their texts.
@example([("ask", "n1", "a", 15), ("go", "n1", "", 0), ("ask", "n3", "a", 12)])
@given(st.lists(STEPS, max_size=14))
@settings(
    max_examples=min(25, settings.default.max_examples // 5),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_same_blocks_and_the_same_errors(steps: list[Any]) -> None:
    both = Both()
    for step in steps:
        both.step(*step)
