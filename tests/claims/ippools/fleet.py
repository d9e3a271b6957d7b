"""One cluster with IPPools, and passes over it."""

from typing import Any

from claims.core.entries import EntrySpec
from claims.core.resources import IPPOOL
from claims.entries import entries, ippools
from claims.entries.ippool_handler import IPPoolHandler
from claims.models import Entry, IPPool, Network
from pools.models import SyncRun, Trigger
from tests.claims import worlds
from tests.kube import api, gateways
from tests.kube.manifests import Manifest, build
from tests.reconcile.registered import RegisteredCluster


class Fleet(RegisteredCluster):
    def __init__(self, server: api.Cluster) -> None:
        super().__init__(server, worlds.cluster("fleet"))
        self.network = worlds.network("prod-network", of=self.cluster)

    def passed(self, *, trigger: Trigger = Trigger.SCHEDULE) -> SyncRun:
        return self.sync(IPPoolHandler(), trigger=trigger)

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

    def follow(self, name: str, written: Manifest, *, network: str = "prod-network") -> None:
        """Put it in the cluster, and pass over it until nothing changes."""
        self.put(name, written, network=network)
        self.settled()

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


def manifest(name: str, written: Manifest, *, network: str = "prod-network") -> Manifest:
    spec = {"network-name": network, "entries": written}
    return build("ippool.k8s.cni.cncf.io/v1alpha", "IPPool", name, spec=spec)
