"""A cluster with both of Cilium's kinds, passed over as an installation does it."""

from typing import Any

from pools.cilium.ciliumpodippools import CiliumPodIPPools
from pools.models import Pool, SyncRun, Trigger
from tests.handlers import fleet
from tests.handlers.node_world import World
from tests.kube.fake import FakeCluster
from tests.reconcile.registered import Open

POOLS, NODES = "ciliumpodippools", "ciliumnodes"


class CiliumWorld(World):
    """Pools live in the cluster and are followed; with `managed_resource` nodes are served."""

    def __init__(self, fake: FakeCluster, *, managed_resource: bool = False) -> None:
        super().__init__(fake, managed_resource=managed_resource)
        self.pools = CiliumPodIPPools()

    def cidrs(self, name: str, *cidrs: str, **spec: Any) -> dict[str, Any]:
        """A pool of the cluster with /24 blocks."""
        return self.fake.put(fleet.manifest(name, *cidrs, **spec), manager="kubectl")

    def run(self, *, dry: bool = False, open_client: Open | None = None) -> SyncRun:
        trigger = Trigger.DRY_RUN if dry else Trigger.SCHEDULE
        return self.sync(self.pools, self.handler, trigger=trigger, open_client=open_client)

    def names(self) -> list[str]:
        """Of the register's pools of this cluster."""
        rows = Pool.objects.filter(cluster=self.cluster, orphaned_at=None).order_by("name")
        return list(rows.values_list("name", flat=True))

    def listed(self) -> dict[str, str]:
        """Who lists each CIDR in the cluster; a CIDR that two nodes list fails."""
        result: dict[str, str] = {}
        for node in self.fake.objects(NODES):
            for entry in node["spec"]["ipam"].get("pools", {}).get("allocated", []):
                for cidr in entry["cidrs"]:
                    name = node["metadata"]["name"]
                    assert cidr not in result, f"{cidr} of {result[cidr]} and {name}"
                    result[cidr] = name
        return result
