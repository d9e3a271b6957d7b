"""A management cluster of Cluster API with its register, as infrastructure providers and people use it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F

from pools.cluster_api.claims import Clusters, IPAddressClaims, IPAddresses
from pools.cluster_api.pools import CadastrePools
from pools.clusters.client import api_client, kubeconfig
from pools.clusters.reconcile import storage
from pools.core.cluster_api import contract
from pools.core.kubernetes.resources import Resource
from pools.models import Block, Connection, Finding, ManagedResource, ObservedObject, Pool, SyncRun
from pools.models.fields import Now
from pools.platform.outbound import faults
from tests import factories
from tests.kube import gateways
from tests.kube.api import Cluster
from tests.kube.manifests import Manifest, build, owner_reference as manifest_owner
from tests.reconcile import small

BLUE, GREEN = "blue", "green"
USER = "user"  # the field manager of people and other controllers
HANDLERS = (
    Clusters(),
    IPAddresses(),
    IPAddressClaims(),
    *(CadastrePools(kind) for kind in contract.POOL_KINDS),
)


class _Killed(BaseException):
    """The worker is gone at this moment."""


class _Crashing(api_client.ClusterClient):
    """A client whose worker is killed instead of its `number`th write, which is no dry run."""

    def __init__(self, server: Cluster, number: int) -> None:
        now = datetime.now(UTC)
        access = kubeconfig.read(server.kubeconfig(None), now=now).access
        super().__init__(access, allow_loopback=True, timeouts=(30, 60))
        self._left = number

    def _send(self, method: str, path: str, query: Any, **more: Any) -> Any:
        if method in {"PUT", "POST", "PATCH", "DELETE"} and "dryRun" not in query:
            self._left -= 1
            if self._left < 0:
                raise _Killed
        return super()._send(method, path, query, **more)


class World:
    def __init__(self, server: Cluster, *managed: ManagedResource) -> None:
        self.server = server
        resources_ = managed or (ManagedResource.CLUSTER_API,)
        self.connection = small.connect(server, managed_resources=resources_)  # type: ignore[arg-type]
        self.cluster = self.connection.cluster
        self.client = gateways.to(server)
        served = self.client.served(contract.CLAIMS)
        first = next((claim for claim in contract.CLAIMS if claim in served), contract.CLAIMS[0])
        self.version = first.version
        self.claims, self.addresses = (
            next(item for item in versions if item.version == self.version)
            for versions in (contract.CLAIMS, contract.ADDRESSES)
        )
        for namespace in (BLUE, GREEN):
            server.put(build("v1", "Namespace", namespace))

    # --- the register -----------------------------------------------------------------------------

    def pool(self, *cidrs: str, name: str = "machines", cooldown: int = 0, **spec: Any) -> Pool:
        """A pool of the register, from which pool objects give addresses."""
        spec.setdefault("category", "node")
        return factories.pool(*cidrs, name=name, within=self.cluster, cooldown=cooldown, **spec)

    def reconcile(self) -> SyncRun:
        """A full sync."""
        return small.reconcile(
            self.connection, *HANDLERS, open_client=lambda _: gateways.to(self.server)
        )

    def sync(self) -> SyncRun:
        """A full sync, which must succeed as a whole."""
        run = self.reconcile()
        assert not run.error_code, (run.error_code, run.error)
        faulty = {kind: item for kind, item in run.kinds.items() if item.get("code")}
        assert not faulty, faulty
        return run

    def serve(
        self, *claims: str, cidr: str = "10.0.0.0/24", gateway: str = "", **settings: Any
    ) -> None:
        """A pool of the register with its pool object, and claims on it that a sync has answered."""
        self.pool(cidr, **settings)
        self.put_pool(**({"gateway": gateway} if gateway else {}))
        self.follow_claims(*claims)

    def follow_claims(self, *claims: str, **more: Any) -> None:
        """Claims, and a sync."""
        for name in claims:
            self.put_claim(name, **more)
        self.sync()

    def sync_until_missed(self) -> None:
        """Two syncs that are so far apart that an object which both miss is gone; and a third."""
        self.sync()
        missed = ObservedObject.objects.filter(cluster=self.cluster, missed_at__isnull=False)
        missed.update(missed_at=F("missed_at") - timedelta(seconds=2 * storage.GRACE))
        self.sync()
        self.sync()

    def crash_at(self, number: int) -> bool:
        """A sync that ends like a killed worker at its `number`th write to the cluster; True if it did."""
        client = _Crashing(self.server, number)
        try:
            small.reconcile(self.connection, *HANDLERS, open_client=lambda _: client)
        except _Killed:
            Connection.objects.filter(pk=self.connection.pk).update(leased_until=None, due_at=Now())
            return True
        return False

    def held(self) -> dict[str, str]:
        """Holder -> address, of claims."""
        rows = Block.objects.filter(holder_kind=contract.HOLDER_KIND, state="held")
        return {row.holder_id: str(row.cidr.network_address) for row in rows}

    def findings(self) -> set[str]:
        return set(Finding.objects.filter(cluster=self.cluster).values_list("code", flat=True))

    # --- the cluster ------------------------------------------------------------------------------

    def put_pool(
        self, name: str = "pool", *, namespace: str = BLUE, pool_name: str = "machines", **spec: Any
    ) -> Manifest:
        return self._put_pool(contract.POOL_KIND, name, namespace, pool_name, spec)

    def put_global_pool(
        self, name: str = "pool", *, pool_name: str = "machines", **spec: Any
    ) -> Manifest:
        return self._put_pool(contract.GLOBAL_POOL_KIND, name, "", pool_name, spec)

    def _put_pool(
        self, kind: str, name: str, namespace: str, pool_name: str, spec: Any
    ) -> Manifest:
        spec = {"poolName": pool_name, **spec}
        manifest = build(contract.API_VERSION, kind, name, namespace, spec=spec)
        return self.client.apply(contract.POOLS[kind], manifest, manager=USER, force=True)

    def put_claim(
        self,
        name: str,
        *,
        namespace: str = BLUE,
        pool: str = "pool",
        kind: str = contract.POOL_KIND,
        group: str = contract.GROUP,
        cluster: str = "",
        **metadata: Any,
    ) -> Manifest:
        spec: Manifest = {"poolRef": {"apiGroup": group, "kind": kind, "name": pool}}
        if cluster:
            spec["clusterName"] = cluster
        version, kind = self.claims.api_version, contract.CLAIM_KIND
        manifest = build(version, kind, name, namespace, metadata=metadata, spec=spec)
        return self.client.apply(self.claims, manifest, manager=USER, force=True)

    def put_cluster(self, name: str, *, paused: bool = False, annotated: bool = False) -> None:
        metadata = {"annotations": {contract.PAUSED: ""}} if annotated else {}
        version, kind = contract.CLUSTERS[0].api_version, contract.CLUSTER_KIND
        manifest = build(version, kind, name, BLUE, metadata=metadata, spec={"paused": paused})
        self.client.apply(contract.CLUSTERS[0], manifest, manager=USER, force=True)

    # None for an object that is not there.

    def claim(self, name: str, namespace: str = BLUE) -> Any:
        return self._get(self.claims, name, namespace)

    def address(self, name: str, namespace: str = BLUE) -> Any:
        return self._get(self.addresses, name, namespace)

    def pool_object(self, name: str = "pool", namespace: str = BLUE) -> Any:
        kind = contract.POOL_KIND if namespace else contract.GLOBAL_POOL_KIND
        return self._get(contract.POOLS[kind], name, namespace)

    def _get(self, resource: Resource, name: str, namespace: str) -> Any:
        try:
            return self.client.get(resource, name, namespace)
        except faults.NotFound:
            return None

    def address_text(self, name: str, namespace: str = BLUE) -> str:
        """The address of a claim; "" for none."""
        manifest = self.address(name, namespace)
        return str(manifest["spec"]["address"]) if manifest else ""

    def ready(self, name: str, namespace: str = BLUE) -> tuple[str, str] | None:
        """Status and reason of the claim's condition Ready."""
        conditions = (self.claim(name, namespace).get("status") or {}).get("conditions") or ()
        for condition in conditions:
            if condition["type"] == "Ready":
                return condition["status"], condition.get("reason", "")
        return None

    def delete(self, manifest: Manifest, resource: Resource) -> None:
        """As `kubectl delete --wait=false` does it: finalizers stay in the way."""
        metadata = manifest["metadata"]
        self.client.delete(
            resource, metadata["name"], metadata.get("namespace", ""), uid=metadata["uid"]
        )

    def delete_claim(self, name: str, namespace: str = BLUE) -> None:
        self.delete(self.claim(name, namespace), self.claims)

    def strip(self, manifest: Manifest, resource: Resource) -> None:
        """Take an object away, whatever its finalizers say."""
        metadata = manifest["metadata"]
        plural = f"{resource.plural}.{resource.group}"
        self.server.remove(plural, metadata["name"], metadata.get("namespace", ""))  # type: ignore[attr-defined]


def owner_reference(owner: Manifest, *, controller: bool) -> Manifest:
    """What the metadata of an IPAddress says of the object that it belongs to."""
    return manifest_owner(owner, controller=controller, blockOwnerDeletion=True)
