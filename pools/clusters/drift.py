"""What somebody decides about an object that differs from the register: apply, adopt, ignore.

Nothing is written to a cluster here: a decision changes the register, and the next pass, which is
due at once, does what follows from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from pools.clusters.reconcile import leases
from pools.core import errors
from pools.models import Cluster, Connection, Drift, ObservedObject
from pools.models.connections import ManagedResource
from pools.models.fields import Now
from pools.platform import events

LONGEST_REASON = 500


@dataclass(frozen=True)
class ClusterObject:
    """An object of a cluster, as differences name it."""

    cluster: Cluster
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        prefix = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {prefix}{self.name}"


@dataclass(frozen=True)
class DriftResolver:
    """How a difference of one kind of object is settled.

    `managed_resource` is the one by which the kind is written. `keep` makes the register right: how many of its
    rows that had followed the object follow it no more. `adopt` makes the object right; it is given
    the object as it was last seen, answers the id of the register's row, and needs `permissions`.
    """

    kind: str
    managed_resource: ManagedResource
    keep: Callable[[ClusterObject], int]
    adopt: Callable[[ClusterObject, ObservedObject, events.Author], int]
    permissions: tuple[str, ...]


RESOLVERS: list[DriftResolver] = []  # filled by pools.extension


def _resolver(kind: str) -> DriftResolver | None:
    return next((resolver for resolver in RESOLVERS if resolver.kind == kind), None)


def differences(cluster_object: ClusterObject) -> list[Drift]:
    """The fields in which the last pass found it to differ, in order of their paths."""
    rows = Drift.objects.filter(
        cluster=cluster_object.cluster,
        kind=cluster_object.kind,
        namespace=cluster_object.namespace,
        name=cluster_object.name,
    )
    return list(rows.order_by("path"))


def apply(cluster_object: ClusterObject, *, author: events.Author) -> list[Drift]:
    """Let the register be right: the object becomes what the register says, at the next pass.

    What another manager owns is not taken from it: the answer is the differences that will stay
    unless their `managers` give the fields up. What only followed its object is the register's from
    now on. Raises NotManaged, NotFound (neither a row of the register nor a difference).
    """
    connection = managed(cluster_object)
    rows = differences(cluster_object)
    resolver = _resolver(cluster_object.kind)
    with events.recorded(author):
        leases.nudge(cluster_object.cluster.pk)
        _note(connection, cluster_object, "difference_applied", author)
        kept_count = resolver.keep(cluster_object) if resolver else 0
        if not (kept_count or rows):
            raise errors.NotFound(f"Nothing is known of {cluster_object}.")
        _unignore(rows)
    return [row for row in rows if row.conflict]


def adopting(kind: str) -> tuple[str, ...]:
    """The permissions that adopting an object of the kind needs."""
    resolver = _resolver(kind)
    return resolver.permissions if resolver else ()


def adopt(cluster_object: ClusterObject, *, author: events.Author) -> int:
    """Let the object be right: the register becomes what it said when last seen; the row's id.

    An object that the register does not know is taken in. Raises NotFound, InvalidInput (the object,
    or a kind that has no counterpart to adopt into) and what taking in an object of the kind raises.
    """
    resolver = _resolver(cluster_object.kind)
    if resolver is None:
        raise errors.InvalidInput.for_field(
            "kind", "not_adoptable", f"a {cluster_object.kind} is not adopted", cluster_object.kind
        )
    row = ObservedObject.objects.filter(
        cluster=cluster_object.cluster, kind=cluster_object.kind, name=cluster_object.name
    )
    observed_object = row.filter(missed_at=None).order_by("-changed_at").first()
    if observed_object is None:
        raise errors.NotFound(f"The cluster has no {cluster_object}.")
    with events.recorded(author):
        leases.nudge(cluster_object.cluster.pk)
        connection = Connection.objects.filter(cluster=cluster_object.cluster).first()
        if connection is not None:
            _note(connection, cluster_object, "difference_adopted", author)
        adopted = resolver.adopt(cluster_object, observed_object, author)
        _unignore(differences(cluster_object))
    return adopted


def ignore(row: Drift, *, author: events.Author, user: AbstractBaseUser | None) -> Drift:
    """Accept a difference, with the reason in `by`, until either of its values changes."""
    if not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "Say why it is ignored.")
    with events.recorded(author):
        _note_row(row, "difference_ignored", author)
        Drift.objects.filter(pk=row.pk).update(
            ignored_by=user, ignored_at=Now(), ignored_reason=author.reason[:LONGEST_REASON]
        )
    return Drift.objects.get(pk=row.pk)


def unignore(row: Drift, *, author: events.Author) -> Drift:
    """Ignore a difference no longer."""
    with events.recorded(author):
        _note_row(row, "difference_unignored", author)
        _unignore([row])
    return Drift.objects.get(pk=row.pk)


def managed(cluster_object: ClusterObject) -> Connection:
    """The connection by which the object is written. Raises NotFound, NotManaged."""
    connection = Connection.objects.filter(cluster=cluster_object.cluster).first()
    if connection is None:
        raise errors.NotFound(f"The cluster {cluster_object.cluster} is not connected.")
    resolver = _resolver(cluster_object.kind)
    if resolver is not None and not connection.manages(resolver.managed_resource):
        raise errors.NotManaged(
            f"Objects of kind {cluster_object.kind} are not written to {cluster_object.cluster}: its object is right."
        )
    return connection


def _unignore(rows: list[Drift]) -> None:
    Drift.objects.filter(pk__in=[row.pk for row in rows]).update(
        ignored_by=None, ignored_at=None, ignored_reason=""
    )


def _note_row(row: Drift, label: str, author: events.Author) -> None:
    connection = Connection.objects.filter(cluster=row.cluster_id).first()
    if connection is not None:
        cluster_object = ClusterObject(row.cluster, row.kind, row.name, row.namespace)
        _note(connection, cluster_object, label, author, row.path)


def _note(
    connection: Connection,
    cluster_object: ClusterObject,
    label: str,
    author: events.Author,
    path: str = "",
) -> None:
    what = f"{cluster_object} {path}".strip()
    reason = f"{what}: {author.reason}" if author.reason else what
    events.record_connection_event(
        connection.pk, label, author=dataclasses.replace(author, reason=reason)
    )


def note_takeover(
    connection: Connection, cluster_object: ClusterObject, fields: str, *, author: events.Author
) -> None:
    """Record that fields were taken from other managers, with the author's reason."""
    _note(connection, cluster_object, "ownership_taken", author, fields)
