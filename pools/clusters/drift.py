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
from pools.models.connections import Duty
from pools.models.fields import Now
from pools.platform import events

LONGEST_REASON = 500


@dataclass(frozen=True)
class Object:
    """An object of a cluster, as differences name it."""

    cluster: Cluster
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


@dataclass(frozen=True)
class Settler:
    """How a difference of one kind of object is settled.

    `duty` is the one by which the kind is written. `keep` makes the register right: how many of its
    rows that had followed the object follow it no more. `adopt` makes the object right; it is given
    the object as it was last seen, answers the id of the register's row, and needs `permissions`.
    """

    kind: str
    duty: Duty
    keep: Callable[[Object], int]
    adopt: Callable[[Object, ObservedObject, events.Author], int]
    permissions: tuple[str, ...]


SETTLERS: list[Settler] = []  # filled by pools.extension


def _settler(kind: str) -> Settler | None:
    return next((settler for settler in SETTLERS if settler.kind == kind), None)


def differences(of: Object) -> list[Drift]:
    """The fields in which the last pass found it to differ, in order of their paths."""
    rows = Drift.objects.filter(
        cluster=of.cluster, kind=of.kind, namespace=of.namespace, name=of.name
    )
    return list(rows.order_by("path"))


def apply(of: Object, *, author: events.Author) -> list[Drift]:
    """Let the register be right: the object becomes what the register says, at the next pass.

    What another manager owns is not taken from it: the answer is the differences that will stay
    unless their `managers` give the fields up. What only followed its object is the register's from
    now on. Raises NotManaged, NotFound (neither a row of the register nor a difference).
    """
    connection = managed(of)
    found = differences(of)
    settler = _settler(of.kind)
    with events.recorded(author):
        leases.nudge(of.cluster.pk)
        _note(connection, of, "difference_applied", author)
        taken = settler.keep(of) if settler else 0
        if not (taken or found):
            raise errors.NotFound(f"Nothing is known of {of}.")
        _unignore(found)
    return [row for row in found if row.conflict]


def adopting(kind: str) -> tuple[str, ...]:
    """The permissions that adopting an object of the kind needs."""
    settler = _settler(kind)
    return settler.permissions if settler else ()


def adopt(of: Object, *, author: events.Author) -> int:
    """Let the object be right: the register becomes what it said when last seen; the row's id.

    An object that the register does not know is taken in. Raises NotFound, InvalidInput (the object,
    or a kind that has no counterpart to adopt into) and what taking in an object of the kind raises.
    """
    settler = _settler(of.kind)
    if settler is None:
        raise errors.InvalidInput.of(
            "kind", "not_adoptable", f"a {of.kind} is not adopted", of.kind
        )
    row = ObservedObject.objects.filter(cluster=of.cluster, kind=of.kind, name=of.name)
    seen = row.filter(missed_at=None).order_by("-changed_at").first()
    if seen is None:
        raise errors.NotFound(f"The cluster has no {of}.")
    with events.recorded(author):
        leases.nudge(of.cluster.pk)
        connection = Connection.objects.filter(cluster=of.cluster).first()
        if connection is not None:
            _note(connection, of, "difference_adopted", author)
        adopted = settler.adopt(of, seen, author)
        _unignore(differences(of))
    return adopted


def ignore(row: Drift, *, author: events.Author, user: AbstractBaseUser | None) -> Drift:
    """Accept a difference, with the reason in `by`, until either of its values changes."""
    if not author.reason:
        raise errors.InvalidInput.of("reason", "required", "Say why it is ignored.")
    with events.recorded(author):
        _note_row(row, "difference_ignored", author)
        Drift.objects.filter(pk=row.pk).update(
            ignored_by=user, ignored_at=Now(), ignored_reason=author.reason[:LONGEST_REASON]
        )
    return Drift.objects.get(pk=row.pk)


def heed(row: Drift, *, author: events.Author) -> Drift:
    """Ignore a difference no longer."""
    with events.recorded(author):
        _note_row(row, "difference_heeded", author)
        _unignore([row])
    return Drift.objects.get(pk=row.pk)


def managed(of: Object) -> Connection:
    """The connection by which the object is written. Raises NotFound, NotManaged."""
    connection = Connection.objects.filter(cluster=of.cluster).first()
    if connection is None:
        raise errors.NotFound(f"The cluster {of.cluster} is not connected.")
    settler = _settler(of.kind)
    if settler is not None and not connection.does(settler.duty):
        raise errors.NotManaged(
            f"Objects of kind {of.kind} are not written to {of.cluster}: its object is right."
        )
    return connection


def _unignore(rows: list[Drift]) -> None:
    Drift.objects.filter(pk__in=[row.pk for row in rows]).update(
        ignored_by=None, ignored_at=None, ignored_reason=""
    )


def _note_row(row: Drift, label: str, author: events.Author) -> None:
    connection = Connection.objects.filter(cluster=row.cluster_id).first()
    if connection is not None:
        of = Object(row.cluster, row.kind, row.name, row.namespace)
        _note(connection, of, label, author, row.path)


def _note(
    connection: Connection, of: Object, label: str, author: events.Author, path: str = ""
) -> None:
    what = f"{of} {path}".strip()
    reason = f"{what}: {author.reason}" if author.reason else what
    events.of_connection(connection.pk, label, author=dataclasses.replace(author, reason=reason))


def note_takeover(connection: Connection, of: Object, fields: str, *, author: events.Author) -> None:
    """Record that fields were taken from other managers, with the author's reason."""
    _note(connection, of, "ownership_taken", author, fields)
