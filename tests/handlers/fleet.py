"""One cluster of the register, its API server, and passes over it."""

from collections.abc import Sequence
from typing import Any

from pools.cilium.ciliumpodippools import CiliumPodIPPools
from pools.core.cilium import podippool
from pools.models import Pool, SyncRun, Trigger
from pools.register import pool_cidrs
from tests import factories
from tests.kube import gateways
from tests.kube.manifests import Manifest, build
from tests.reconcile.registered import RegisteredCluster


class Fleet(RegisteredCluster):
    def passed(self, *, trigger: Trigger = Trigger.SCHEDULE) -> SyncRun:
        """A full pass, as a worker makes it."""
        return self.sync(CiliumPodIPPools(), trigger=trigger)

    def counted(self, **how: Any) -> dict[str, Any]:
        """What a full pass says of pools."""
        run = self.passed(**how)
        assert not run.error_code, (run.error_code, run.error)
        counts: dict[str, Any] = run.kinds[podippool.KIND]
        return counts

    # --- the cluster ------------------------------------------------------------------------------

    def put(self, manifest: Manifest, *, manager: str = "kubectl") -> Manifest:
        return self.server.put(manifest, manager=manager)

    def follow(self, *manifests: Manifest) -> None:
        """Put them in the cluster, and pass over it."""
        for manifest in manifests:
            self.put(manifest)
        self.passed()

    def there(self) -> dict[str, Manifest]:
        """Through the version that is read."""
        with gateways.to(self.server) as gateway:
            (read,) = sorted(gateway.served([gateways.POOLS, gateways.OLD_POOLS]))[:1]
            return {item["metadata"]["name"]: item for item in gateway.list(read).items}

    def remove(self, name: str) -> None:
        self.server.remove("ciliumpodippools", name)

    # --- the register -----------------------------------------------------------------------------

    def pool(self, name: str) -> Pool:
        return Pool.objects.get(cluster=self.cluster, name=name)

    def names(self) -> list[str]:
        return sorted(Pool.objects.filter(cluster=self.cluster).values_list("name", flat=True))

    def cidrs(self, name: str, family: int = 4) -> list[str]:
        """Without orphans."""
        return [str(entry.cidr) for entry in pool_cidrs.families(self.pool(name))[family].cidrs]

    def ranges(self, name: str) -> list[str]:
        entries = pool_cidrs.families(self.pool(name))[4].cidrs
        return [str(span) for entry in entries for span in entry.reserved]

    def make(self, name: str, *cidrs: str, **settings: Any) -> Pool:
        settings |= {"category": "pod", "mask": 24}
        return factories.pool(*cidrs, name=name, within=self.cluster, **settings)


def manifest(name: str, *cidrs: str, mask: int = 24, version: str = "v2", **spec: Any) -> Manifest:
    """A CiliumPodIPPool of IPv4; `pool` is that of its ipv4."""
    pool: Sequence[Any] | None = spec.pop("pool", None)
    metadata = spec.pop("metadata", {})
    ipv4: Manifest = {"cidrs": list(cidrs), "maskSize": mask}
    if pool is not None:
        ipv4["pool"] = pool
    spec = {"ipv4": ipv4, **spec}
    return build(f"cilium.io/{version}", "CiliumPodIPPool", name, metadata=metadata, spec=spec)


def reserved(cidr: str, *spans: tuple[str, str]) -> Manifest:
    """An entry of the shipped `pool`."""
    return {"cidr": cidr, "reservedRanges": [{"start": a, "end": b} for a, b in spans]}
