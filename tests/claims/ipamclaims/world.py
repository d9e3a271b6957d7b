"""A cluster with VM networks and its API server, passed over as an installation does it."""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from unittest import mock

from claims.core.resources import IPAM_CLAIM, VM
from claims.ipamclaims.handler import IPAMClaimHandler
from claims.models import IPAMClaim, Network
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Resource
from pools.models import Block, ManagedResource, Mode, SyncRun, Trigger
from pools.platform import events
from pools.platform.outbound import faults
from pools.register import pools
from tests import factories
from tests.claims import worlds
from tests.kube.api import MERGE, Api, Cluster
from tests.kube.fake import FakeCluster
from tests.kube.manifests import Manifest, build
from tests.reconcile.registered import RegisteredCluster

SHIPPED = "k8s.cni.cncf.io_ipamclaims"
PROPOSED = "k8s.cni.cncf.io_ipamclaims.proposal"
MACHINES = "kubevirt.io_virtualmachines"
NADS = "k8s.cni.cncf.io_network-attachment-definitions"  # VMs are read where these are
BLUE = "cluster_udn_blue"
MAC, OTHER_MAC = "02:03:04:05:06:07", "02:03:04:05:06:08"
BY = events.Author(actor="tester", source="command")


class Machines(Handler):
    """VirtualMachines are read, and nothing is made of them."""

    kind = VM.kind
    resources = (VM,)

    def parse(self, manifest: Manifest) -> Manifest:
        return manifest


class World(RegisteredCluster):
    """`managed_resource`: the register answers; without it, it records. One network with two free addresses."""

    def __init__(self, server: Cluster, *, managed_resource: bool = True) -> None:
        for name in ("blue", "green"):
            server.put(build("v1", "Namespace", name))
        super().__init__(server, sealed="-")
        self.handler: Any = IPAMClaimHandler()
        self.manage_claims(managed_resource=managed_resource)

    def manage_claims(self, *, managed_resource: bool) -> None:
        mode = Mode.MANAGED if managed_resource else Mode.OBSERVED
        self.connection.managed_resources = [ManagedResource.CLAIMS] if managed_resource else []
        self.connection.mode = mode
        self.connection.save(update_fields=["managed_resources", "mode"])

    def network(self, *subnets: str, name: str = BLUE, cooldown: int = 0, **more: Any) -> Network:
        """With the gateway reserved, as networks that are taken in have it."""
        created = worlds.network(name, subnets=subnets or ("10.0.0.0/24",), of=self.cluster, **more)
        assert created.pool is not None
        pools.change(created.pool.pk, pools.PoolChange(cooldown_seconds=cooldown), author=BY)
        for cidr in created.pool.cidrs.all():
            factories.reserve(created.pool, f"{cidr.cidr[1]}-{cidr.cidr[1]}")
        return created

    # --- the cluster ------------------------------------------------------------------------------

    def claim(self, vm: str = "vm1", **more: Any) -> Manifest:
        return self.server.put(manifest(vm, **more), manager="ipam-extensions")

    def machine(
        self,
        vm: str = "vm1",
        *,
        namespace: str = "blue",
        networks: tuple[str, ...] = ("podnet",),
        mac: str = "",
    ) -> str:
        """A VirtualMachine of the cluster; its uid."""
        nics = [{"name": network} | ({"macAddress": mac} if mac else {}) for network in networks]
        listed = [{"name": network, "pod": {}} for network in networks]
        template = {"domain": {"devices": {"interfaces": nics}}, "networks": listed}
        spec = {"running": True, "template": {"spec": template}}
        created = build(VM.api_version, VM.kind, vm, namespace, spec=spec)
        return str(self.server.put(created)["metadata"]["uid"])

    def status(self, name: str = "vm1.podnet", namespace: str = "blue") -> Manifest:
        result: Manifest = self.there(name, namespace).get("status") or {}
        return result

    def there(self, name: str = "vm1.podnet", namespace: str = "blue") -> Manifest:
        return self.server.object(IPAM_CLAIM.plural, name, namespace)

    @contextlib.contextmanager
    def unwritten(self) -> Iterator[None]:
        """What is done within changes no claim; the fake says besides that nobody tried."""
        before = self._versions()
        sent = len(self.server.log) if isinstance(self.server, FakeCluster) else 0
        yield
        assert self._versions() == before
        if isinstance(self.server, FakeCluster):
            assert not [item for item in list(self.server.log)[sent:] if item.writes]

    def _versions(self) -> dict[str, str]:
        metadatas = (item["metadata"] for item in self.server.objects(IPAM_CLAIM.plural))
        return {metadata["uid"]: metadata["resourceVersion"] for metadata in metadatas}

    def delete(self, name: str = "vm1.podnet", namespace: str = "blue") -> None:
        """As `kubectl delete` asks for it: the finalizers keep it."""
        with contextlib.closing(Api(self.server)) as api:
            assert api.call("DELETE", f"{_path(namespace)}/{name}").status == HTTPStatus.OK

    def let_go(self, name: str = "vm1.podnet", namespace: str = "blue") -> None:
        """As ipam-extensions does when the VM is gone: without finalizers."""
        bare = {"metadata": {"finalizers": None}}
        with contextlib.closing(Api(self.server)) as api:
            answer = api.call("PATCH", f"{_path(namespace)}/{name}", bare, content_type=MERGE)
            assert answer.status == HTTPStatus.OK, answer.json

    def condition(self, name: str = "vm1.podnet") -> tuple[str, str, str, str]:
        """(type, status, reason, message) of the only condition."""
        (condition,) = self.status(name)["conditions"]
        return condition["type"], condition["status"], condition["reason"], condition["message"]

    # --- passes -----------------------------------------------------------------------------------

    def run(self, *, dry: bool = False) -> SyncRun:
        trigger = Trigger.DRY_RUN if dry else Trigger.SCHEDULE
        return self.sync(Machines(), self.handler, trigger=trigger)

    def passed(self) -> Manifest:
        """A pass without any trouble; what it counts of claims."""
        record = self.run()
        assert record.succeeded, (record.error, record.kinds)
        counts: Manifest = record.kinds[IPAM_CLAIM.kind]
        return counts

    @contextlib.contextmanager
    def without_vms(self) -> Iterator[None]:
        """VirtualMachines cannot be listed meanwhile."""
        real = ClusterClient.list

        def partly(client: ClusterClient, resource: Resource, **more: Any) -> Any:
            if resource.kind == VM.kind:
                raise faults.Forbidden("no")
            return real(client, resource, **more)

        with mock.patch.object(ClusterClient, "list", partly):
            yield

    def follow_claim(self, vm: str = "vm1", **more: Any) -> None:
        """A claim of the cluster, and a pass without any trouble."""
        self.claim(vm, **more)
        self.passed()

    def tell(self, *changes: tuple[str, Manifest]) -> SyncRun:
        """What a watch told since the last list."""
        return self.ingest(IPAM_CLAIM.kind, [Machines(), self.handler], *changes)

    # --- the register -----------------------------------------------------------------------------

    def row(self, name: str = "vm1.podnet", namespace: str = "blue") -> IPAMClaim:
        return IPAMClaim.objects.get(cluster=self.cluster, namespace=namespace, name=name)

    def held(self) -> dict[str, str]:
        """Who holds each address, by the register's blocks."""
        rows = Block.objects.filter(pool__cluster=self.cluster, state="held").order_by("cidr")
        return {str(row.cidr.network_address): row.holder_id for row in rows}

    def cooling(self) -> list[str]:
        rows = Block.objects.filter(pool__cluster=self.cluster, state="cooling")
        return [str(row.cidr.network_address) for row in rows.order_by("cidr")]


def _path(namespace: str) -> str:
    return f"/apis/{IPAM_CLAIM.api_version}/namespaces/{namespace}/{IPAM_CLAIM.plural}"


def manifest(
    vm: str = "vm1",
    *,
    namespace: str = "blue",
    name: str = "",
    network: str = BLUE,
    uid: str = "",
    status: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A claim as ipam-extensions makes it, with the VM as its owner."""
    owner = {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": vm,
        "uid": uid or f"uid-{namespace}-{vm}", "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    metadata = {"ownerReferences": [owner], "labels": {"kubevirt.io/vm": vm}}
    metadata["finalizers"] = ["kubevirt.io/persistent-ipam"]
    spec = {"network": network, "interface": "", **spec}
    parts: Manifest = {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})
    names = name or f"{vm}.podnet", namespace
    return build(IPAM_CLAIM.api_version, IPAM_CLAIM.kind, *names, **parts)
