"""One cluster of the register with OVN-Kubernetes, and passes over it."""

import json
from typing import Any

from claims.core import resources
from claims.models import NAD, Network
from claims.networks.handlers import NetworkAttachmentDefinitions, UserDefinedNetworks
from pools.models import Connection, Mode, PoolCIDR, ReservedRange, SyncRun
from tests.kube import gateways
from tests.kube.manifests import Manifest, build
from tests.pools.conftest import Clock
from tests.reconcile.registered import RegisteredCluster

SUBNET = "10.0.0.0/16"


class Ovn(RegisteredCluster):
    def write_networks(self) -> None:
        """Networks that are made here are written from now on."""
        Connection.objects.filter(pk=self.connection.pk).update(mode=Mode.MANAGED)

    def observe(self) -> None:
        Connection.objects.filter(pk=self.connection.pk).update(mode=Mode.OBSERVED)

    def passed(self) -> SyncRun:
        """A full pass, as a worker makes it."""
        udns = [UserDefinedNetworks(kind) for kind in (resources.CLUSTER_UDN, resources.UDN)]
        run = self.sync(*udns, NetworkAttachmentDefinitions())
        assert not run.error_code, (run.error_code, run.error)
        return run

    def counted(self) -> dict[str, int]:
        """Objects changed and written in a pass, of all kinds."""
        kinds, names = self.passed().kinds.values(), ("changed", "written", "failed")
        return {name: sum(kind[name] for kind in kinds) for name in names}

    # --- the cluster ------------------------------------------------------------------------------

    def put(self, manifest: Manifest, *, manager: str = "kubectl") -> Manifest:
        stored: Manifest = self.server.put(manifest, manager=manager)
        return stored

    def follow(self, *manifests: Manifest) -> None:
        """Put them in the cluster, and pass over it."""
        for manifest in manifests:
            self.put(manifest)
        self.passed()

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        self.server.remove(plural, name, namespace)

    def lose(self, clock: Clock, plural: str, name: str = "prod", namespace: str = "") -> None:
        """It is gone from the cluster, and two lists lack it."""
        self.remove(plural, name, namespace)
        self.passed()
        clock.advance(40)
        self.passed()

    def there(self, name: str) -> Manifest:
        with gateways.to(self.server) as gateway:
            result: Manifest = gateway.get(resources.CLUSTER_UDN, name)
        return result

    # --- the register -----------------------------------------------------------------------------

    def network(self, name: str = "cluster_udn_prod") -> Network:
        return Network.objects.get(cluster=self.cluster, name=name)

    def names(self) -> list[str]:
        rows = Network.objects.filter(cluster=self.cluster).order_by("name")
        return list(rows.values_list("name", flat=True))

    def nads(self, name: str = "cluster_udn_prod") -> list[str]:
        return [str(nad) for nad in NAD.objects.filter(network=self.network(name))]

    def subnets(self, name: str = "cluster_udn_prod", *, orphaned: bool = False) -> list[str]:
        rows = PoolCIDR.objects.filter(pool=self.network(name).pool)
        return [str(row) for row in rows.filter(orphaned_at__isnull=not orphaned)]

    def ranges(self, name: str = "cluster_udn_prod") -> list[tuple[str, str]]:
        rows = ReservedRange.objects.filter(pool=self.network(name).pool).order_by("first")
        return [(str(row), row.reason.split()[0]) for row in rows]


def cudn(name: str = "prod", *subnets: str, status: Any = None, **layer2: Any) -> Manifest:
    """A primary layer2 network with persistent IPs."""
    part = {"role": "Primary", "subnets": list(subnets or (SUBNET,))}
    part |= {"ipam": {"lifecycle": "Persistent"}} | layer2
    network = {"topology": "Layer2", "layer2": {k: v for k, v in part.items() if v is not None}}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
    spec = {"namespaceSelector": selector, "network": network}
    parts = {"status": status} if status else {}
    return build("k8s.ovn.org/v1", "ClusterUserDefinedNetwork", name, spec=spec, **parts)


def udn(name: str = "net", namespace: str = "default", *subnets: str) -> Manifest:
    part = {"role": "Primary", "subnets": list(subnets or (SUBNET,))}
    spec = {"topology": "Layer2", "layer2": part}
    return build("k8s.ovn.org/v1", "UserDefinedNetwork", name, namespace, spec=spec)


def nad(nad_name: str = "prod", namespace: str = "default", /, **config: Any) -> Manifest:
    """As OVN-Kubernetes makes it of `cudn()`; `type` names another plugin."""
    defaults = {
        "cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": "cluster_udn_prod",
        "netAttachDefName": f"{namespace}/{nad_name}", "topology": "layer2", "role": "primary",
        "subnets": SUBNET, "allowPersistentIPs": True, **config,
    }  # fmt: skip
    text = config.get("config") or json.dumps({k: v for k, v in defaults.items() if v is not None})
    kind = "NetworkAttachmentDefinition"
    return build("k8s.cni.cncf.io/v1", kind, nad_name, namespace, spec={"config": text})
