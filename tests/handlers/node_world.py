"""A registered cluster with its fake API server, and its nodes in few words."""

from typing import Any

from pools.cilium.ciliumnodes import CiliumNodes
from pools.models import Block, Mode, ObservedObject, Pool, SyncRun, Trigger
from pools.register import pools
from tests import factories
from tests.kube.fake import FakeCluster
from tests.kube.manifests import build
from tests.reconcile.registered import RegisteredCluster

MANAGED_RESOURCES = ["pod-cidrs"]


class World(RegisteredCluster):
    """`managed_resource` hands out PodCIDRs; without it the cluster's own operator does, and we record."""

    def __init__(self, fake: FakeCluster, *, managed_resource: bool = False) -> None:
        mode = Mode.MANAGED if managed_resource else Mode.OBSERVED
        resources = MANAGED_RESOURCES if managed_resource else []
        super().__init__(fake, sealed="-", mode=mode, managed_resources=resources)
        self.fake = fake
        self.handler = CiliumNodes()

    def pool(self, name: str, *cidrs: str, mask: int | dict[int, int] = 24, **more: Any) -> Pool:
        more |= {"mask": mask, "category": "pod", "within": self.cluster}
        return factories.pool(*cidrs, name=name, **more)

    def add_cidr(self, cidr: str, pool: str = "a") -> None:
        """In the register."""
        parent = self.cluster.pools.get(name=pool).pk
        pools.add_cidr(parent, factories.entry(cidr), author=factories.BY)

    def node(self, name: str = "n1", **more: Any) -> dict[str, Any]:
        return self.fake.put(manifest(name, **more), manager="cilium-agent")

    def lists(self, name: str = "n1", pool: str = "a") -> list[str]:
        """What the cluster has allocated to a node."""
        pools = self.fake.object("ciliumnodes", name)["spec"]["ipam"].get("pools", {})
        entries = {entry["pool"]: entry["cidrs"] for entry in pools.get("allocated", [])}
        return list(entries.get(pool, []))

    def error(self, name: str = "n1") -> str:
        """What the operator says of a node in its status."""
        status = self.fake.object("ciliumnodes", name).get("status") or {}
        return str(status.get("ipam", {}).get("operator-status", {}).get("error", ""))

    def run(self, *, dry: bool = False) -> SyncRun:
        return self.sync(self.handler, trigger=Trigger.DRY_RUN if dry else Trigger.SCHEDULE)

    def passed(self) -> None:
        """A pass without any trouble."""
        record = self.run()
        assert record.succeeded, (record.error, record.kinds)

    def follow_node(self, name: str = "n1", **more: Any) -> None:
        """A node of the cluster, and a pass without any trouble."""
        self.node(name, **more)
        self.passed()

    def tell(self, *events: tuple[str, dict[str, Any]]) -> SyncRun:
        """What a watch told since the last list."""
        return self.ingest(CiliumNodes.kind, [self.handler], *events)

    def restarted(self) -> None:
        """Another process: nothing is remembered but what the register has."""
        self.handler = CiliumNodes()

    def held(self) -> dict[str, str]:
        """The held blocks of the register and who holds them."""
        rows = Block.objects.filter(pool__cluster=self.cluster, state="held").order_by("cidr")
        return {str(row.cidr): row.holder_id for row in rows}

    def observed_node(self, name: str = "n1") -> ObservedObject:
        return ObservedObject.objects.get(cluster=self.cluster, name=name)


def manifest(name: str = "n1", *, demands: Any = None, lists: Any = None) -> dict[str, Any]:
    """`demands` are IPv4 addresses by pool (or a dict by family); what is not parts is empty."""
    parts: dict[str, Any] = {}
    if demands:
        asks = demands.items()
        parts["requested"] = [{"pool": pool, "needed": _needed(count)} for pool, count in asks]
    if lists:
        parts["allocated"] = [{"pool": pool, "cidrs": cidrs} for pool, cidrs in lists.items()]
    return build("cilium.io/v2", "CiliumNode", name, spec={"ipam": {"pools": parts}})


def _needed(count: int | dict[int, int]) -> dict[str, int]:
    numbers = count if isinstance(count, dict) else {4: count}
    return {f"ipv{family}-addrs": number for family, number in numbers.items()}
