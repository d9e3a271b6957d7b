"""Handlers as small as can be, and clusters connected for them."""

import contextlib
import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import connecting, leases, sync, watch_events, watchers
from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.kubernetes import resources
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Cluster, Connection, ManagedResource, Mode, Now, ObservedObject, SyncRun
from pools.models.observed import Trigger
from pools.platform import events
from pools.platform.outbound import secrets
from tests import factories
from tests.kube.fake import FakeCluster
from tests.kube.manifests import build

NODE, POOL = resources.CILIUM_NODE, resources.CILIUM_POD_IP_POOL
OLD_POOL = resources.CILIUM_POD_IP_POOL_V2ALPHA1
CLAIM = Resource("k8s.cni.cncf.io", "v1alpha1", "ipamclaims", "IPAMClaim", namespaced=True)


@dataclass
class Small(Handler):
    """Remembers what it was given; `writes` and `reports` are called in each pass.

    An object labelled `poison` is refused, one labelled `pending` is to be looked at again; what
    `trouble` raises for an object is raised by `absorb`.
    """

    kind: str = "CiliumNode"
    resources: Sequence[Resource] = (NODE,)
    writes: Callable[[SyncContext], Iterable[Write]] = lambda _: ()
    reports: Callable[[SyncContext], Iterable[ReconcileFinding]] = lambda _: ()
    trouble: Callable[[SyncContext, ParsedObject], None] = lambda *_: None
    ingested: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    follows: tuple[str, ...] = ()

    def parse(self, manifest: Manifest) -> Any:
        if "poison" in manifest["metadata"].get("labels", {}):
            raise errors.InvalidInput.for_field("metadata.labels", "poison", "must not be poison")
        return manifest["metadata"]["name"]

    def ingest(self, context: SyncContext, objects: Sequence[ParsedObject]) -> None:
        for item in objects:
            self.trouble(context, item)
        for item in objects:
            item.row.pending = "pending" in item.row.manifest["metadata"].get("labels", {})
            self.ingested.append(item.row.name)

    def forget(self, _pass: SyncContext, rows: Sequence[ObservedObject]) -> None:
        self.forgotten += [row.name for row in rows]

    def desired(self, context: SyncContext) -> Iterable[Write]:
        return self.writes(context)

    def findings(self, context: SyncContext) -> Iterable[ReconcileFinding]:
        return self.reports(context)


@dataclass
class World:
    """A cluster that is connected, its API server, and a small handler of its nodes."""

    fake: FakeCluster
    connection: Connection
    nodes: Small

    def put(self, *names: str, **labels: str) -> None:
        """Nodes of the cluster."""
        for name in names:
            self.fake.put(node(name, **labels))

    def remove(self, *names: str) -> None:
        for name in names:
            self.fake.remove("ciliumnodes", name)

    def reconcile(self, *handlers: Handler, **options: Any) -> SyncRun:
        """One full pass of these handlers, by default of that of nodes."""
        return reconcile(self.connection, *(handlers or [self.nodes]), **options)

    def rows(self) -> list[ObservedObject]:
        return rows(self.connection)

    def names(self) -> list[str]:
        return names(self.connection)


def node(name: str, **labels: str) -> Manifest:
    ipam = {"pools": {"requested": [{"pool": "default", "needed": {"ipv4-addrs": 16}}]}}
    metadata = {"labels": labels}
    return build("cilium.io/v2", "CiliumNode", name, metadata=metadata, spec={"ipam": ipam})


def sealed(fake: FakeCluster, cluster_id: int, *, token: str = "") -> str:
    now = datetime.datetime.now(datetime.UTC)
    access = kubeconfig.read(fake.kubeconfig(token or None), now=now).access
    return secrets.key_ring().seal(access.dump(), owner=connecting.secret_owner(cluster_id))


def connect(
    fake: FakeCluster, *, token: str = "", managed_resources: Sequence[ManagedResource] = ()
) -> Connection:
    """A cluster that is due; managed when it has managed resources."""
    cluster = factories.cluster()
    return Connection.objects.create(
        cluster=cluster,
        server=fake.url,
        sealed=sealed(fake, cluster.pk, token=token),
        mode=Mode.MANAGED if managed_resources else Mode.OBSERVED,
        managed_resources=list(managed_resources),
        due_at=Now(),
    )


def reconcile(
    connection: Connection, *handlers: Handler, trigger: Trigger = Trigger.SCHEDULE, **options: Any
) -> SyncRun:
    """One full pass by a worker of its own."""
    dry = trigger == Trigger.DRY_RUN
    lease = (leases.borrow if dry else leases.take)(connection.pk, leases.worker_name())
    assert lease is not None
    return sync.run(lease, handlers, trigger=trigger, **options)


def ingest(
    connection: Connection,
    kind: str,
    handlers: Sequence[Handler],
    *events: tuple[str, Manifest],
    to: watchers.Position | None = None,
    **options: Any,
) -> SyncRun:
    """What a watch of this kind reported since the last list; `to` is the position after it."""
    connection.refresh_from_db()
    position = watchers.read(connection.positions, kind)
    lease = leases.borrow(connection.pk, "watcher")
    assert position is not None
    assert lease is not None
    return watch_events.ingest_events(
        lease, handlers, kind, events, position=position, to=to or position, **options
    )


def context(cluster: Cluster) -> SyncContext:
    """That of a sync without an API server, for what handlers compute from the database."""
    connection = Connection.objects.create(
        cluster=cluster, server="https://c.example.org", due_at=Now()
    )
    client: Any = None
    author = events.Author(actor="tester", source="command")
    return SyncContext(cluster, connection, client, author, contextlib.nullcontext)


def rows(connection: Connection, kind: str = "CiliumNode") -> list[ObservedObject]:
    observed_objects = ObservedObject.objects.filter(cluster=connection.cluster_id, kind=kind)
    return list(observed_objects.order_by("namespace", "name", "id"))


def names(connection: Connection, kind: str = "CiliumNode") -> list[str]:
    return [row.name for row in rows(connection, kind)]


def labelled(name: str, value: str = "yes") -> Write:
    """The wish that a node has a label of ours."""

    def make(current: Manifest | None) -> Manifest | None:
        if current is None:
            return None
        return build("cilium.io/v2", "CiliumNode", name, metadata={"labels": {"cadastre": value}})

    return Write(NODE, name, make)


def labelling(*names: str, value: str = "yes") -> Callable[[SyncContext], list[Write]]:
    return lambda _: [labelled(name, value) for name in names]
