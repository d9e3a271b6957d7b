"""Connections to clusters: made, changed, ended; their credentials replaced and sealed anew.

A cluster is asked before anything is stored, and never inside of a transaction: an API server may
take its time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from pools.clusters.client import kubeconfig
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import leases, sync
from pools.core import errors
from pools.core.kubernetes import connection_status
from pools.models import Cluster, Connection, Drift, Finding, ObservedObject
from pools.models.connections import ManagedResource, Mode
from pools.models.fields import Now
from pools.platform import database, events
from pools.platform.outbound import credentials, faults, secrets
from pools.platform.outbound.access import Access

LONGEST_SERVER = 500
ASKED = (5.0, 10.0)  # seconds to connect and to wait, while a person waits
_MET = {
    "cluster_registered_once": errors.SameCluster,
    "pools_connection_cluster_id_key": errors.AlreadyExists,
}
# A worker that is at it under the old terms loses the cluster, and does not tell its outcome.
_AT_ONCE: dict[str, Any] = {
    "due_at": Now(),
    "fence": F("fence") + 1,
    "leased_by": "",
    "leased_until": None,
}


# Called in the transaction that disconnects a cluster; filled by pools.extension.
DISCONNECT_OBSERVERS: list[Callable[[Cluster, events.Author], None]] = []


@dataclass(frozen=True)
class Terms:
    """What may be written to a cluster."""

    mode: Mode = Mode.OBSERVED
    managed_resources: tuple[ManagedResource, ...] = ()


@dataclass(frozen=True)
class ConnectionSource:
    """Where an API server is and with what it is reached, and what is odd about that."""

    access: Access
    context: str = ""
    in_cluster: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Met:
    """What a cluster said of itself; empty when it was not asked."""

    identity: str = ""
    version: str = ""


@dataclass
class ResealedCredentials:
    """How many credentials are under the newest key; the codes of those that could not be opened."""

    resealed: int = 0
    already: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # by the cluster's name


def terms(mode: str, managed_resources: Iterable[str]) -> Terms:
    """Raises InvalidInput invalid_choice at `mode` or `managed_resources`, managed_resources_of_observed."""
    report = []
    modes, resource_names = (
        [str(choice) for choice in Mode],
        [str(choice) for choice in ManagedResource],
    )
    if mode not in modes:
        report.append(_choice("mode", mode, modes))
    requested_resources = set(managed_resources)
    report += [
        _choice("managed_resources", managed_resource, resource_names)
        for managed_resource in sorted(requested_resources - set(resource_names))
    ]
    if report:
        raise errors.InvalidInput.all(report)
    if mode == Mode.OBSERVED and requested_resources:
        message = "nothing is written to an observed cluster: manage it, or leave the managed resources out"
        raise errors.InvalidInput.for_field(
            "managed_resources", "managed_resources_of_observed", message
        )
    return Terms(
        Mode(mode),
        tuple(
            managed_resource
            for managed_resource in ManagedResource
            if managed_resource in requested_resources
        ),
    )


def _choice(name: str, value: str, allowed: Iterable[str]) -> errors.FieldProblem:
    message = f"must be of {', '.join(allowed)}"
    return errors.FieldProblem(name, "invalid_choice", message, errors.shown(value))


def from_kubeconfig(text: str | bytes, *, context: str = "") -> ConnectionSource:
    """What a kubeconfig says, nothing being asked yet. Raises InvalidInput of kubeconfig.read."""
    reading = kubeconfig.read(text, context=context, now=database.now())
    if len(reading.access.server) > LONGEST_SERVER:
        message = f"the server's URL may have {LONGEST_SERVER} characters"
        raise errors.InvalidInput.for_field("server", "too_long", message)
    return ConnectionSource(reading.access, reading.context, warnings=reading.warnings)


def from_pod() -> ConnectionSource:
    """The service account of the pod that this runs in. Raises InvalidInput not_in_cluster."""
    return ConnectionSource(kubeconfig.in_cluster(os.environ), in_cluster=True)


def get_connection(cluster: Cluster) -> Connection:
    """Raises NotFound for a cluster that is only a name in the register."""
    connection = Connection.objects.select_related("cluster").filter(cluster=cluster).first()
    if connection is None:
        raise errors.NotFound(f"The cluster {cluster} is not connected.")
    return connection


def status(connection: Connection, now: datetime) -> connection_status.ConnectionStatus:
    """The state that people see."""
    return connection_status.describe(
        connection_status.Facts(
            paused=connection.paused,
            succeeded_at=connection.succeeded_at,
            error_code=connection.error_code,
            error=connection.error,
            failures=connection.failures,
            failed_objects=connection.failed_objects,
            tried_at=connection.tried_at,
            running=connection.leased_until is not None and connection.leased_until > now,
        ),
        now,
    )


def connect(
    cluster: Cluster,
    source: ConnectionSource,
    terms: Terms,
    *,
    author: events.Author,
    offline: bool = False,
) -> Connection:
    """Keep how a cluster is reached, after it was asked who it is (unless `offline`).

    Raises AlreadyExists, SameCluster, KeyRingInvalid, and the faults of Gateway.version and identity.
    """
    met = _met(source, offline=offline)
    _refuse_known(met.identity)
    _once(lambda: _keep(cluster, source, terms, met, author))
    return get_connection(cluster)


def register(
    source: ConnectionSource,
    terms: Terms,
    *,
    create: Callable[[], Cluster],
    author: events.Author,
    offline: bool = False,
) -> Connection:
    """Make a cluster with `create`, and its connection: both or neither."""
    met = _met(source, offline=offline)
    _refuse_known(met.identity)

    def work() -> Cluster:
        with events.recorded(author):
            cluster = create()
            _keep(cluster, source, terms, met, author)
        return cluster

    cluster: Cluster = _once(work)
    return get_connection(cluster)


def replace(
    connection: Connection,
    source: ConnectionSource,
    *,
    author: events.Author,
    offline: bool = False,
) -> Connection:
    """Other credentials, perhaps another address, for the same cluster; it is due at once.

    Raises passes.IdentityChanged when another cluster answers, SameCluster, and those of connect.
    """
    met = _met(source, offline=offline)
    if connection.identity and met.identity not in {"", connection.identity}:
        raise sync.IdentityChanged(
            f"Another cluster answers at {source.access.server} than {connection.cluster} was."
            " Disconnect it first, if this is meant."
        )
    _refuse_known(met.identity, connection)
    values = _stored(connection.cluster, source, met) | _AT_ONCE
    values |= {"error_code": "", "error": "", "failures": 0}
    if met.identity:
        values["identity"] = met.identity

    def work() -> None:
        with events.recorded(author):
            Connection.objects.filter(pk=connection.pk).update(**values)
            events.record_credentials_replaced(connection.pk, author=author)

    _once(work)
    return get_connection(connection.cluster)


def change(
    connection: Connection,
    *,
    author: events.Author,
    terms: Terms | None = None,
    paused: bool | None = None,
) -> Connection:
    """Set what may be written, pause or resume; from now on, also for a pass that runs."""
    values = dict(_AT_ONCE)
    if terms is not None:
        values |= {"mode": terms.mode, "managed_resources": list(terms.managed_resources)}
    if paused is not None:
        values["paused"] = paused
    with events.recorded(author):
        Connection.objects.filter(pk=connection.pk).update(**values)
    return get_connection(connection.cluster)


def disconnect(connection: Connection, *, author: events.Author) -> None:
    """Forget the credentials and what was seen; the register's blocks stay as they are.

    What was seen must go: another cluster behind the name one day would lack all of it, and lacking
    is how objects end.
    """
    with events.recorded(author):
        connection.delete()
        for model in (ObservedObject, Finding, Drift):
            model.objects.filter(cluster_id=connection.cluster_id).delete()
        for observer in DISCONNECT_OBSERVERS:
            observer(connection.cluster, author)


def make_due(connection: Connection) -> None:
    """A worker takes it up at once. Raises ConnectionPaused."""
    if connection.paused:
        raise errors.ConnectionPaused(f"{connection.cluster} is paused: resume it first.")
    with transaction.atomic():
        leases.nudge(connection.cluster_id)


def reseal() -> ResealedCredentials:
    """Put all credentials under the newest key of the ring. Raises KeyRingInvalid."""
    ring, done = secrets.key_ring(), ResealedCredentials()
    rows = Connection.objects.exclude(sealed="").select_related("cluster").order_by("pk")
    for row in rows:
        try:
            sealed = ring.reseal(row.sealed, owner=sync.owner(row.cluster_id))
        except faults.SecretUnreadable as error:
            done.failed[row.cluster.name] = error.code
            continue
        if sealed == row.sealed:
            done.already += 1
        else:
            # Somebody who replaced them meanwhile did so under the newest key.
            Connection.objects.filter(pk=row.pk, sealed=row.sealed).update(sealed=sealed)
            done.resealed += 1
    return done


# --- asking, and keeping --------------------------------------------------------------------------


def client_for(access: Access) -> ClusterClient:
    """An API server that is asked while a person waits."""
    loopback = settings.IPAM_ALLOW_LOOPBACK_CLUSTERS
    return ClusterClient(access, allow_loopback=loopback, timeouts=ASKED)


def registered(identity: str, but: Connection | None = None) -> Connection | None:
    """The connection, other than `but`, of the cluster with this uid of kube-system."""
    rows = Connection.objects.filter(identity=identity).exclude(identity="")
    if but is not None:
        rows = rows.exclude(pk=but.pk)
    return rows.select_related("cluster").first()


def _met(source: ConnectionSource, *, offline: bool) -> Met:
    if offline:
        return Met()
    with client_for(source.access) as client:
        version = client.version()
        return Met(client.identity(), version)


def _keep(
    cluster: Cluster, source: ConnectionSource, terms: Terms, met: Met, author: events.Author
) -> None:
    with events.recorded(author):
        if Connection.objects.filter(cluster=cluster).exists():
            raise errors.AlreadyExists(f"The cluster {cluster} is connected already.")
        Connection.objects.create(
            cluster=cluster,
            mode=terms.mode,
            managed_resources=list(terms.managed_resources),
            identity=met.identity,
            due_at=Now(),
            **_stored(cluster, source, met),
        )


def _refuse_known(identity: str, but: Connection | None = None) -> None:
    if other := registered(identity, but):
        raise errors.SameCluster(
            f"This cluster is registered already, as {other.cluster} ({other.server})."
        )


def _once(work: Callable[[], Any]) -> Any:
    """The work in a transaction; two requests that met are told like one after the other."""
    try:
        with transaction.atomic():
            return work()
    except IntegrityError as error:
        meaning = _MET.get(database.constraint(error))
        if meaning is None:
            raise
        raise meaning("Somebody else connected this cluster a moment ago.") from error


def _stored(cluster: Cluster, source: ConnectionSource, met: Met) -> dict[str, Any]:
    ends = [
        end
        for name, end in credentials.expiry_times(source.access).items()
        if "authority" not in name
    ]
    values: dict[str, Any] = {
        "server": source.access.server,
        "in_cluster": source.in_cluster,
        "sealed": "",
        "expires_at": min(ends, default=None),
    }
    if met.version:
        values["version"] = met.version
    if not source.in_cluster:
        ring = secrets.key_ring()
        values["sealed"] = ring.seal(source.access.dump(), owner=sync.owner(cluster.pk))
    return values
