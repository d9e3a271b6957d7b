"""Connections to clusters: create, change and delete them, replace and reseal their credentials.

A cluster is contacted before anything is stored, and never inside of a transaction, because an API
server may be slow.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from pools import models
from pools.clusters import other_writers
from pools.clusters.client import kubeconfig
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting, leases
from pools.core import errors
from pools.core.kubernetes import connection_status
from pools.core.observed import uses
from pools.platform import database, events
from pools.platform.outbound import credentials, guard, secrets
from pools.platform.outbound.credentials import Access

LONGEST_SERVER = 500
INTERACTIVE_TIMEOUTS = (5.0, 10.0)  # seconds to connect and to read, while a person waits
_ERROR_BY_CONSTRAINT = {
    "cluster_registered_once": errors.SameCluster,
    "pools_connection_cluster_id_key": errors.AlreadyExists,
}
# A worker that syncs under the old terms loses its lease, and does not record its outcome.
_DUE_NOW: dict[str, Any] = {
    "due_at": models.Now(),
    "fence": F("fence") + 1,
    "leased_by": "",
    "leased_until": None,
}


# Called in the transaction that disconnects a cluster; filled by pools.extension.
DISCONNECT_OBSERVERS: list[Callable[[models.Cluster, events.Author], None]] = []


@dataclass(frozen=True)
class Terms:
    """The mode of a connection, and the resources that Cadastre may write."""

    mode: models.Mode = models.Mode.OBSERVED
    managed_resources: tuple[models.ManagedResource, ...] = ()


@dataclass(frozen=True)
class ConnectionSource:
    """Address and credentials of an API server, and warnings about them."""

    access: Access
    context: str = ""
    in_cluster: bool = False
    warnings: tuple[str, ...] = ()


def parse_terms(mode: str, managed_resources: Iterable[str]) -> Terms:
    """Return validated terms.

    Raises InvalidInput invalid_choice at `mode` or `managed_resources`, managed_resources_of_observed.
    """
    report = []
    modes, resource_names = list(map(str, models.Mode)), list(map(str, models.ManagedResource))
    if mode not in modes:
        report.append(_choice("mode", mode, modes))
    requested_resources = set(managed_resources)
    report += [
        _choice("managed_resources", resource, resource_names)
        for resource in sorted(requested_resources - set(resource_names))
    ]
    if report:
        raise errors.InvalidInput.all(report)
    if mode == models.Mode.OBSERVED and requested_resources:
        message = "nothing is written to an observed cluster: set the mode to managed, or omit the managed resources"
        raise errors.InvalidInput.for_field(
            "managed_resources", "managed_resources_of_observed", message
        )
    resources = (resource for resource in models.ManagedResource if resource in requested_resources)
    return Terms(models.Mode(mode), tuple(resources))


def _choice(name: str, value: str, allowed: Iterable[str]) -> errors.FieldProblem:
    message = f"must be one of {', '.join(allowed)}"
    return errors.FieldProblem(name, "invalid_choice", message, errors.display_value(value))


def from_kubeconfig(text: str | bytes, *, context: str = "") -> ConnectionSource:
    """Return the source in a kubeconfig, without contact to the cluster. Raises InvalidInput."""
    reading = kubeconfig.read(text, context=context, now=database.now())
    _check_length(reading.access.server)
    return ConnectionSource(reading.access, reading.context, warnings=reading.warnings)


def from_token(server: str, ca: str, token: str) -> ConnectionSource:
    """Return the source of a service account's token, without contact to the cluster.

    `ca` is PEM, or the base64 of a kubeconfig. Raises InvalidInput at `server`, `ca` and `token`.
    """
    if "-----BEGIN" not in ca:
        ca = kubeconfig.decode_pem(ca, "ca")
    access = Access(guard.parse_url(server.strip()).url, ca, token.strip())
    _check_length(access.server)
    return ConnectionSource(access, warnings=credentials.check(access, now=database.now()))


def _check_length(server: str) -> None:
    if len(server) > LONGEST_SERVER:
        message = f"the server's URL may have at most {LONGEST_SERVER} characters"
        raise errors.InvalidInput.for_field("server", "too_long", message)


def from_pod() -> ConnectionSource:
    """Return the service account of this pod as a source. Raises InvalidInput not_in_cluster."""
    return ConnectionSource(kubeconfig.service_account_access(os.environ), in_cluster=True)


def get_connection(cluster: models.Cluster) -> models.Connection:
    """Return the connection of a cluster. Raises NotFound for a cluster without one."""
    connection = models.Connection.objects.select_related("cluster").filter(cluster=cluster).first()
    if connection is None:
        raise errors.NotFound(f"The cluster {cluster} is not connected.")
    return connection


def status(connection: models.Connection, now: datetime) -> connection_status.ConnectionStatus:
    """Return the status of a connection for pages, REST and commands."""
    return connection_status.describe(
        connection_status.ConnectionFacts(
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
        stale_after=stale_after(),
    )


def stale_after() -> timedelta:
    """Return how long after its last full sync run the data of a cluster is stale."""
    return timedelta(seconds=leases.FULL_EVERY + settings.IPAM_ALERT_STALE_SECONDS)


def connect(
    cluster: models.Cluster,
    source: ConnectionSource,
    terms: Terms,
    *,
    author: events.Author,
    offline: bool = False,
    confirmed: bool = False,
) -> models.Connection:
    """Store the connection of a cluster; unless `offline`, read its identity and version first.

    Raises AlreadyExists, SameCluster, KeyRingInvalid and ClusterFault, and unless `confirmed` OtherWriterRuns.
    """
    return register(
        source,
        terms,
        create=lambda: cluster,
        author=author,
        offline=offline,
        confirmed=confirmed,
    )


def register(
    source: ConnectionSource,
    terms: Terms,
    *,
    create: Callable[[], models.Cluster],
    author: events.Author,
    offline: bool = False,
    confirmed: bool = False,
) -> models.Connection:
    """Create a cluster with `create` and its connection in one transaction; see `connect`."""
    identity, server_version = _fetch_cluster_info(source, offline=offline)
    if not offline:
        check_other_writers(terms, lambda: source.access, confirmed=confirmed)
    _check_not_registered(identity)

    def write() -> models.Cluster:
        with events.recorded_by(author):
            cluster = create()
            if models.Connection.objects.filter(cluster=cluster).exists():
                raise errors.AlreadyExists(f"The cluster {cluster} is already connected.")
            models.Connection.objects.create(
                cluster=cluster,
                mode=terms.mode,
                managed_resources=list(terms.managed_resources),
                identity=identity,
                due_at=models.Now(),
                **_connection_fields(cluster, source, server_version),
            )
        return cluster

    cluster: models.Cluster = _in_transaction(write)
    return get_connection(cluster)


def replace(
    connection: models.Connection,
    source: ConnectionSource,
    *,
    author: events.Author,
    offline: bool = False,
    version: database.Version = None,
) -> models.Connection:
    """Replace the credentials and the address of a connection; the cluster is due at once.

    Raises IdentityChanged if another cluster answers, SameCluster, VersionMismatch, and the errors of `connect`.
    """
    identity, server_version = _fetch_cluster_info(source, offline=offline)
    if connection.identity and identity not in {"", connection.identity}:
        raise connecting.IdentityChanged(
            f"The cluster at {source.access.server} is not {connection.cluster}."
            " To connect it under this name, disconnect the old cluster first."
        )
    _check_not_registered(identity, connection)
    values = _connection_fields(connection.cluster, source, server_version) | _DUE_NOW
    values |= {"error_code": "", "error": "", "failures": 0}
    if identity:
        values["identity"] = identity

    def write() -> None:
        rows = models.Connection.objects.select_for_update()
        with events.recorded_by(author):
            database.require_version(rows.get(pk=connection.pk), version)
            rows.filter(pk=connection.pk).update(**values)
            events.record_connection_event(connection.pk, "credentials_replaced", author=author)

    _in_transaction(write)
    return get_connection(connection.cluster)


def change(
    connection: models.Connection,
    *,
    author: events.Author,
    terms: Terms | None = None,
    paused: bool | None = None,
    confirmed: bool = False,
    version: database.Version = None,
) -> models.Connection:
    """Change the terms, pause or resume; a running sync loses its lease.

    Raises OtherWriterRuns for a resource that is switched on where another controller writes it, unless `confirmed`,
    and VersionMismatch.
    """
    if terms is not None:
        check_other_writers(
            terms,
            lambda: connecting.cluster_access(connection),
            before=connection.managed_resources,
            confirmed=confirmed,
        )
    values = dict(_DUE_NOW)
    if terms is not None:
        values |= {"mode": terms.mode, "managed_resources": list(terms.managed_resources)}
    if paused is not None:
        values["paused"] = paused
    with events.recorded_by(author):
        for row in models.Connection.objects.select_for_update().filter(pk=connection.pk):
            database.require_version(row, version)
        models.Connection.objects.filter(pk=connection.pk).update(**values)
    return get_connection(connection.cluster)


def check_other_writers(
    terms: Terms, access: Callable[[], Access], *, before: Iterable[str] = (), confirmed: bool
) -> None:
    """Raise OtherWriterRuns if these terms switch on what another controller writes, unless `confirmed`.

    The cluster is asked now; what was managed `before` is not asked for.
    """
    added = {str(resource) for resource in terms.managed_resources} - set(before)
    if not confirmed:
        other_writers.require_confirmation(lambda: client_for(access()), added)


def disconnect(connection: models.Connection, *, author: events.Author) -> None:
    """Delete the connection and all observed objects; blocks of the register do not change.

    The observed objects must be deleted: a later cluster of this name would not have them, and its sync
    would treat them as deleted.
    """
    with events.recorded_by(author):
        leases.exclude_writers(connection.cluster_id)
        connection.delete()
        for model in (models.ObservedObject, models.Finding, models.Drift):
            model.objects.filter(cluster_id=connection.cluster_id).delete()
        observed = models.ObservedCIDR.objects.filter(space__cluster=connection.cluster_id)
        observed.exclude(kind=uses.VM_NETWORK).delete()
        for observer in DISCONNECT_OBSERVERS:
            observer(connection.cluster, author)


def make_due(connection: models.Connection) -> None:
    """Make a sync of the cluster due at once. Raises ConnectionPaused."""
    if connection.paused:
        raise errors.ConnectionPaused(
            f"The connection of {connection.cluster} is paused. Resume it first."
        )
    with transaction.atomic():
        leases.nudge(connection.cluster_id)


def reseal() -> secrets.ResealResult:
    """Encrypt all credentials with the newest key of the key ring. Raises KeyRingInvalid."""
    rows = models.Connection.objects.exclude(sealed="").select_related("cluster")
    return secrets.reseal(
        rows, lambda row: connecting.secret_owner(row.cluster_id), lambda row: row.cluster.name
    )


# --- contact and storage --------------------------------------------------------------------------


def client_for(access: Access) -> ClusterClient:
    """Return a client with short timeouts, for requests during which a person waits."""
    loopback = settings.IPAM_ALLOW_LOOPBACK_CLUSTERS
    return ClusterClient(access, allow_loopback=loopback, timeouts=INTERACTIVE_TIMEOUTS)


def find_by_identity(
    identity: str, excluded: models.Connection | None = None
) -> models.Connection | None:
    """Return the connection, other than `excluded`, of the cluster with this uid of kube-system."""
    rows = models.Connection.objects.filter(identity=identity).exclude(identity="")
    if excluded is not None:
        rows = rows.exclude(pk=excluded.pk)
    return rows.select_related("cluster").first()


def _fetch_cluster_info(source: ConnectionSource, *, offline: bool) -> tuple[str, str]:
    """Return identity and version of a cluster; empty if it is not contacted."""
    if offline:
        return "", ""
    with client_for(source.access) as client:
        version = client.version()
        return client.identity(), version


def _check_not_registered(identity: str, excluded: models.Connection | None = None) -> None:
    if existing := find_by_identity(identity, excluded):
        raise errors.SameCluster(
            f"This cluster is already registered as {existing.cluster} ({existing.server})."
        )


def _in_transaction(write: Callable[[], Any]) -> Any:
    """Run `write` in a transaction; a lost race raises the same error as a later request."""
    try:
        with transaction.atomic():
            return write()
    except IntegrityError as error:
        meaning = _ERROR_BY_CONSTRAINT.get(database.constraint(error))
        if meaning is None:
            raise
        raise meaning("Another request connected this cluster at the same time.") from error


def _connection_fields(
    cluster: models.Cluster, source: ConnectionSource, server_version: str
) -> dict[str, Any]:
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
    if server_version:
        values["version"] = server_version
    if not source.in_cluster:
        ring = secrets.key_ring()
        values["sealed"] = ring.seal(
            source.access.dump(), owner=connecting.secret_owner(cluster.pk)
        )
    return values
