"""A cluster with both of Cilium's kinds, passed over as an installation does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pools.cilium.ciliumpodippools import CiliumPodIPPools
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import leases, sync
from pools.models import Connection, ObservedObject, Pool, SyncRun
from pools.models.observed import Trigger
from tests.handlers import fleet
from tests.handlers.node_world import World
from tests.kube import gateways
from tests.kube.fake import FakeCluster

POOLS, NODES = "ciliumpodippools", "ciliumnodes"
Open = Callable[[Connection], ClusterClient]


class CiliumWorld(World):
    """Pools live in the cluster and are followed; with `managed_resource` nodes are served."""

    def __init__(self, fake: FakeCluster, *, managed_resource: bool = False) -> None:
        super().__init__(fake, managed_resource=managed_resource)
        self.pools = CiliumPodIPPools()

    def cidrs(self, name: str, *cidrs: str, **spec: Any) -> dict[str, Any]:
        """A pool of the cluster with /24 blocks."""
        return self.fake.put(fleet.manifest(name, *cidrs, **spec), manager="kubectl")

    def run(self, *, dry: bool = False, open_client: Open | None = None) -> SyncRun:
        lease = leases.take(self.connection.pk, "tester")
        assert lease is not None
        reached = open_client or (lambda _: gateways.to(self.fake))
        trigger = Trigger.DRY_RUN if dry else Trigger.SCHEDULE
        handlers = [self.pools, self.handler]
        return sync.run(lease, handlers, trigger=trigger, open_client=reached)

    def names(self) -> list[str]:
        """Of the register's pools of this cluster."""
        rows = Pool.objects.filter(cluster=self.cluster, orphaned_at=None).order_by("name")
        return list(rows.values_list("name", flat=True))

    def problems(self) -> dict[str, str]:
        rows = ObservedObject.objects.filter(cluster=self.cluster).exclude(problem_code="")
        return dict(rows.values_list("name", "problem_code"))

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
