"""Decisions about an object that differs from the register: apply, adopt, ignore.

This module writes nothing to a cluster. A decision changes the register, and makes the next sync due at
once, which writes the object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from pools.clusters.reconcile import leases
from pools.core import errors
from pools.models import Cluster, Connection, Drift, ManagedResource, Now, ObservedObject
from pools.platform import events

LONGEST_REASON = 500


@dataclass(frozen=True)
class ClusterObject:
    """An object of a cluster, as drift rows identify it."""

    cluster: Cluster
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        prefix = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {prefix}{self.name}"


@dataclass(frozen=True)
class DriftResolver:
    """The handling of drift for one kind of object.

    `managed_resource` is required to write the kind. `stop_following` makes the register authoritative
    and returns the number of changed rows. `adopt` makes the object authoritative: it takes the object as
    last observed, returns the id of the register's row, and requires `permissions`.
    """

    kind: str
    managed_resource: ManagedResource
    stop_following: Callable[[ClusterObject], int]
    adopt: Callable[[ClusterObject, ObservedObject, events.Author], int]
    permissions: tuple[str, ...]


RESOLVERS: list[DriftResolver] = []  # filled by pools.extension


def _resolver(kind: str) -> DriftResolver | None:
    return next((resolver for resolver in RESOLVERS if resolver.kind == kind), None)


def differences(cluster_object: ClusterObject) -> list[Drift]:
    """Return the drift of the object in the last sync, by path."""
    rows = Drift.objects.filter(
        cluster=cluster_object.cluster,
        kind=cluster_object.kind,
        namespace=cluster_object.namespace,
        name=cluster_object.name,
    )
    return list(rows.order_by("path"))


def apply(cluster_object: ClusterObject, *, author: events.Author) -> list[Drift]:
    """Make the register authoritative; the next sync writes the object.

    Fields of other managers are not forced: returns the differences that remain until their `managers`
    release the fields. A row that followed its object no longer does. Raises NotManaged, NotFound
    (neither a row of the register nor a difference).
    """
    connection = managing_connection(cluster_object)
    rows = differences(cluster_object)
    resolver = _resolver(cluster_object.kind)
    with events.recorded_by(author):
        leases.nudge(cluster_object.cluster.pk)
        _record_event(connection, cluster_object, "difference_applied", author)
        changed_count = resolver.stop_following(cluster_object) if resolver else 0
        if not (changed_count or rows):
            raise errors.NotFound(f"The register has no {cluster_object}, and no drift of it.")
        _unignore(rows)
    return [row for row in rows if row.conflict]


def adopt_permissions(kind: str) -> tuple[str, ...]:
    """Return the permissions that are required to adopt an object of the kind."""
    resolver = _resolver(kind)
    return resolver.permissions if resolver else ()


def adopt(cluster_object: ClusterObject, *, author: events.Author) -> int:
    """Make the object authoritative: update the register from the last observed object.

    An object without a row in the register is imported. Returns the id of the row. Raises NotFound,
    InvalidInput (the object, or a kind that cannot be adopted), and the errors of importing the kind.
    """
    resolver = _resolver(cluster_object.kind)
    if resolver is None:
        raise errors.InvalidInput.for_field(
            "kind",
            "not_adoptable",
            f"objects of kind {cluster_object.kind} cannot be adopted",
            cluster_object.kind,
        )
    row = ObservedObject.objects.filter(
        cluster=cluster_object.cluster, kind=cluster_object.kind, name=cluster_object.name
    )
    observed_object = row.filter(missed_at=None).order_by("-changed_at").first()
    if observed_object is None:
        raise errors.NotFound(f"The cluster has no {cluster_object}.")
    with events.recorded_by(author):
        leases.nudge(cluster_object.cluster.pk)
        connection = Connection.objects.filter(cluster=cluster_object.cluster).first()
        if connection is not None:
            _record_event(connection, cluster_object, "difference_adopted", author)
        adopted = resolver.adopt(cluster_object, observed_object, author)
        # The register has the object's values now; a sync run stores what still differs.
        Drift.objects.filter(pk__in=[row.pk for row in differences(cluster_object)]).delete()
    return adopted


def ignore(row: Drift, *, author: events.Author, user: AbstractBaseUser | None) -> Drift:
    """Ignore a difference, with the author's reason, until one of its values changes."""
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Give a reason to ignore the difference."
        )
    with events.recorded_by(author):
        _record_row_event(row, "difference_ignored", author)
        Drift.objects.filter(pk=row.pk).update(
            ignored_by=user, ignored_at=Now(), ignored_reason=author.reason[:LONGEST_REASON]
        )
    return Drift.objects.get(pk=row.pk)


def unignore(row: Drift, *, author: events.Author) -> Drift:
    """Stop ignoring a difference."""
    with events.recorded_by(author):
        _record_row_event(row, "difference_unignored", author)
        _unignore([row])
    return Drift.objects.get(pk=row.pk)


def managing_connection(cluster_object: ClusterObject) -> Connection:
    """Return the connection that writes the object. Raises NotFound, NotManaged."""
    connection = Connection.objects.filter(cluster=cluster_object.cluster).first()
    if connection is None:
        raise errors.NotFound(f"The cluster {cluster_object.cluster} is not connected.")
    resolver = _resolver(cluster_object.kind)
    if resolver is not None and not connection.manages(resolver.managed_resource):
        raise errors.NotManaged(
            f"Objects of kind {cluster_object.kind} are not written to {cluster_object.cluster}: the cluster is authoritative."
        )
    return connection


def _unignore(rows: list[Drift]) -> None:
    Drift.objects.filter(pk__in=[row.pk for row in rows]).update(
        ignored_by=None, ignored_at=None, ignored_reason=""
    )


def _record_row_event(row: Drift, label: str, author: events.Author) -> None:
    connection = Connection.objects.filter(cluster=row.cluster_id).first()
    if connection is not None:
        cluster_object = ClusterObject(row.cluster, row.kind, row.name, row.namespace)
        _record_event(connection, cluster_object, label, author, row.path)


def _record_event(
    connection: Connection,
    cluster_object: ClusterObject,
    label: str,
    author: events.Author,
    path: str = "",
) -> None:
    subject = f"{cluster_object} {path}".strip()
    reason = f"{subject}: {author.reason}" if author.reason else subject
    events.record_connection_event(
        connection.pk, label, author=dataclasses.replace(author, reason=reason)
    )


def record_takeover(
    connection: Connection, cluster_object: ClusterObject, fields: str, *, author: events.Author
) -> None:
    """Record an event that fields were taken over from other managers, with the author's reason."""
    _record_event(connection, cluster_object, "ownership_taken", author, fields)
