"""One cluster with IPPools, and passes over it."""

from __future__ import annotations

from typing import Any

from claims.core.entries import EntrySpec
from claims.core.resources import IPPOOL
from claims.entries import entries, ippools
from claims.entries.ippool_handler import IPPoolHandler
from claims.models import Entry, IPPool, Network
from pools.clusters.reconcile import leases, sync
from pools.models import Cluster, Connection, Drift, Finding, ObservedObject, SyncRun
from pools.models.connections import ManagedResource, Mode
from pools.models.fields import Now
from pools.models.observed import Trigger
from tests.claims import worlds
from tests.kube import api, gateways

Manifest = dict[str, Any]


class Fleet:
    def __init__(self, server: api.Cluster) -> None:
        self.server = server
        self.cluster: Cluster = worlds.cluster("fleet")
        self.network = worlds.network("prod-network", of=self.cluster)
        self.connection = Connection.objects.create(
            cluster=self.cluster, server=server.url, due_at=Now()
        )

    def manage(self, *managed_resources: ManagedResource) -> None:
        """From now on these managed resources; none: observed."""
        mode = Mode.MANAGED if managed_resources else Mode.OBSERVED
        Connection.objects.filter(pk=self.connection.pk).update(
            mode=mode, managed_resources=list(managed_resources)
        )

    def passed(self, *, trigger: Trigger = Trigger.SCHEDULE) -> SyncRun:
        lease = leases.take(self.connection.pk, "test")
        assert lease is not None
        return sync.run(
            lease,
            [IPPoolHandler()],
            trigger=trigger,
            open_client=lambda _: gateways.to(self.server),
        )

    def counted(self) -> dict[str, Any]:
        run = self.passed()
        assert not run.error_code, (run.error_code, run.error)
        counts: dict[str, Any] = run.kinds["IPPool"]
        assert not counts.get("code"), counts
        return counts

    def settled(self) -> None:
        """Two passes bring it home, a third one writes nothing."""
        self.counted()
        self.counted()
        assert self.counted()["written"] == 0

    # --- the cluster ------------------------------------------------------------------------------

    def put(self, name: str, written: Manifest, *, network: str = "prod-network") -> Manifest:
        return self.server.put(manifest(name, written, network=network), manager="kubectl")

    def there(self, name: str = "prod") -> Manifest:
        with gateways.to(self.server) as gateway:
            return gateway.get(IPPOOL, name)

    def written(self, name: str = "prod") -> Manifest:
        result: Manifest = self.there(name)["spec"].get("entries") or {}
        return result

    def conditions(self, name: str = "prod") -> dict[str, str]:
        return {
            condition["type"]: condition["status"]
            for condition in self.there(name)["status"]["conditions"]
        }

    # --- the register -----------------------------------------------------------------------------

    def ippool(self, name: str = "prod") -> IPPool:
        return IPPool.objects.get(cluster=self.cluster, name=name)

    def make(self, name: str = "prod", *specs: EntrySpec, network: Network | None = None) -> IPPool:
        target = network or self.network
        ippool = ippools.create(self.cluster, name, target.name, author=worlds.BY)
        self.add(ippool, *specs)
        return ippool

    def add(self, ippool: IPPool, *specs: EntrySpec) -> list[Entry]:
        return entries.add(ippool.pk, specs, source="hand", author=worlds.BY)

    def entries(self, name: str = "prod") -> dict[str, list[str]]:
        rows = Entry.objects.filter(ippool__cluster=self.cluster, ippool__name=name)
        return dict(rows.order_by("mac", "pk").values_list("mac", "ips"))

    def findings(self) -> list[tuple[str, str]]:
        rows = Finding.objects.filter(cluster=self.cluster).order_by("code", "subject")
        return list(rows.values_list("code", "subject"))

    def problems(self) -> dict[str, str]:
        rows = ObservedObject.objects.filter(cluster=self.cluster).exclude(problem_code="")
        return dict(rows.values_list("name", "problem_code"))

    def drift(self) -> list[tuple[str, str]]:
        rows = Drift.objects.filter(cluster=self.cluster).order_by("name", "path")
        return list(rows.values_list("name", "path"))


def manifest(name: str, written: Manifest, *, network: str = "prod-network") -> Manifest:
    return {
        "apiVersion": "ippool.k8s.cni.cncf.io/v1alpha",
        "kind": "IPPool",
        "metadata": {"name": name},
        "spec": {"network-name": network, "entries": written},
    }
