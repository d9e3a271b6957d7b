"""Decisions about an object that differs from the register: apply, adopt, ignore, or take fields over.

A decision to apply or adopt changes the register, and makes the next sync due at once, which writes the object.
A take-over of fields from other managers is the only forced write, confirmed by a person: a preview lists the fields
and their managers, and the confirmation names the preview. If the object, its managers or the desired manifest have
changed since, nothing is written. The fields are written by a forced server-side apply to this version of the object,
without any other field of other managers.
"""

import contextlib
import dataclasses
import hashlib
import http
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting, leases, registry, sync, writes
from pools.clusters.reconcile.handler import Handler, SyncContext, Write
from pools.core import errors
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.differences import FieldDifference
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Cluster, Connection, Drift, ManagedResource, Now, ObservedObject
from pools.platform import advisory_locks, events
from pools.platform.outbound import faults

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
        # What another installation has written since is overwritten now. Before rows of pools, as sync runs.
        _observed_rows(cluster_object).update(written=None)
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
    rows = _observed_rows(cluster_object).filter(missed_at=None)
    observed_object = rows.order_by("-changed_at").first()
    if observed_object is None:
        raise errors.NotFound(f"The cluster has no {cluster_object}.")
    with events.recorded_by(author):
        advisory_locks.lock_plan(shared=True)  # the object may bring CIDRs
        leases.nudge(cluster_object.cluster.pk)
        connection = Connection.objects.filter(cluster=cluster_object.cluster).first()
        if connection is not None:
            _record_event(connection, cluster_object, "difference_adopted", author)
        # The register has another installation's values now. Before rows of pools, as sync runs.
        _observed_rows(cluster_object).update(written=None)
        adopted = resolver.adopt(cluster_object, observed_object, author)
        # The register has the object's values now; a sync run stores what still differs.
        Drift.objects.filter(pk__in=[row.pk for row in differences(cluster_object)]).delete()
    return adopted


def _observed_rows(cluster_object: ClusterObject) -> QuerySet[ObservedObject]:
    return ObservedObject.objects.filter(
        cluster=cluster_object.cluster,
        kind=cluster_object.kind,
        namespace=cluster_object.namespace,
        name=cluster_object.name,
    )


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


# Statuses of a write to an object that the server cannot convert, or that was invalid before.
_REPAIRABLE = (http.HTTPStatus.INTERNAL_SERVER_ERROR, http.HTTPStatus.UNPROCESSABLE_ENTITY)
_OWNERS = "/metadata/managedFields"
_PLAIN = re.compile(r"\w+(?:\.\w+)*")  # a path without list members


@dataclass(frozen=True)
class TakeoverPreview:
    """The fields of a take-over; `fields[i].managers` own them now."""

    cluster_object: ClusterObject
    uid: str
    resource_version: str
    fields: tuple[FieldDifference, ...]

    @property
    def token(self) -> str:
        """A digest of the preview, by which a confirmation identifies it."""
        shown = [
            [difference.path, difference.desired, difference.observed, list(difference.managers)]
            for difference in self.fields
        ]
        text = json.dumps([self.uid, self.resource_version, shown], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def managers(self) -> list[str]:
        return sorted({name for difference in self.fields for name in difference.managers})


@dataclass(frozen=True)
class _PendingTakeover:
    """The current object, and the write that takes its fields over."""

    client: ClusterClient
    write: Write
    desired_manifest: Manifest
    current: Manifest
    preview: TakeoverPreview


def preview(cluster_object: ClusterObject, *, author: events.Author) -> TakeoverPreview:
    """Return the fields of other managers that prevent a write; reads the current object.

    Raises NotManaged, ConnectionPaused, NotFound (no field of another manager differs), ClusterFault.
    """
    with _open_takeover(cluster_object, author) as wish:
        return wish.preview


def take_over(
    cluster_object: ClusterObject, *, token: str, author: events.Author
) -> TakeoverPreview:
    """Take over the fields of the preview with this token; record an event with the author's reason.

    Raises InvalidInput (no reason), ObjectChanged, and the errors of `preview`.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Give a reason to take the fields over."
        )
    connection = managing_connection(cluster_object)
    with _open_takeover(cluster_object, author) as wish:
        if wish.preview.token != token:
            raise errors.ObjectChanged
        fields = "; ".join(
            f"{difference.path} from {', '.join(writes.other_managers(difference, wish.write.manager))}"
            for difference in wish.preview.fields
        )
        with transaction.atomic():  # without its event, nothing is taken over
            _record_event(connection, cluster_object, "ownership_taken", author, fields)
            try:
                _apply(wish)
            except faults.StaleVersion as error:
                raise errors.ObjectChanged from error
    leases.nudge(cluster_object.cluster.pk)
    return wish.preview


@contextlib.contextmanager
def _open_takeover(
    cluster_object: ClusterObject, author: events.Author
) -> Iterator[_PendingTakeover]:
    connection = managing_connection(cluster_object)
    if connection.paused:
        raise errors.ConnectionPaused(f"The connection of {cluster_object.cluster} is paused.")
    handler = next(
        (handler for handler in registry.HANDLERS if handler.kind == cluster_object.kind), None
    )
    if handler is None:
        raise errors.NotFound(f"Objects of kind {cluster_object.kind} are not written.")
    with connecting.client_for(connection) as client:
        connecting.verify_identity(connection, client)
        served = client.served(handler.resources)
        resource = next((resource for resource in handler.resources if resource in served), None)
        if resource is None:
            raise faults.KindNotServed(f"The cluster does not serve {cluster_object.kind}.")
        yield _build_takeover(cluster_object, author, connection, handler, client, resource)


def _build_takeover(
    cluster_object: ClusterObject,
    author: events.Author,
    connection: Connection,
    handler: Handler,
    client: ClusterClient,
    resource: Resource,
) -> _PendingTakeover:
    key = (cluster_object.namespace, cluster_object.name)
    context = SyncContext(
        cluster=cluster_object.cluster,
        connection=connection,
        client=client,
        author=author,
        transaction=transaction.atomic,
        dry_run=True,
        from_watch=True,
        served={handler.kind: resource},
        changed_keys=frozenset({key}),
    )
    with sync.rolled_back():
        wished = [write for write in handler.desired(context) if write.key == key and write.send]
    current = client.get(resource, cluster_object.name, cluster_object.namespace)
    for write in wished:
        if write.how != "apply" or write.subresource or write.resource != resource:
            continue
        desired_manifest = write.make(current)
        differences = writes.find_differences(write, desired_manifest, current)
        fields = tuple(
            difference
            for difference in differences
            if difference.desired is not None and writes.other_managers(difference, write.manager)
        )
        if desired_manifest is not None and fields:
            metadata = current["metadata"]
            shown = TakeoverPreview(
                cluster_object, metadata["uid"], metadata["resourceVersion"], fields
            )
            return _PendingTakeover(client, write, desired_manifest, current, shown)
    raise errors.NotFound(f"No field of {cluster_object} has a conflict with another manager.")


def _apply(wish: _PendingTakeover) -> None:
    """Apply the fields after a dry run; repair the object first if the server cannot apply to it."""
    current = wish.current
    try:
        _force(wish, current, dry_run=True)
    except (faults.Rejected, faults.ServerFault) as error:
        mended = _repair(wish, error)
        if mended is None:
            raise
        current = mended
        _force(wish, current, dry_run=True)
    _force(wish, current, dry_run=False)


def _repair(wish: _PendingTakeover, error: faults.ClusterFault) -> Manifest | None:
    """Repair an object so that a server can apply to it; return None if the error has another cause.

    Entries of managedFields get the version of the write. An object that is invalid in this version
    (strings where the version has objects) can be changed only together with the invalid fields, which
    must be among those that are taken over.
    """
    resource, current, manager = wish.write.resource, wish.current, wish.write.manager
    entries = managed_fields.upgrade_entries(current, resource.api_version)
    if error.status == http.HTTPStatus.INTERNAL_SERVER_ERROR and entries is not None:
        with contextlib.suppress(faults.Rejected):
            return wish.client.patch(resource, current, {_OWNERS: entries}, manager=manager)
    fields = [difference for difference in wish.preview.fields if _PLAIN.fullmatch(difference.path)]
    if error.status not in _REPAIRABLE or not fields:
        return None
    changes = {f"/{difference.path.replace('.', '/')}": difference.desired for difference in fields}
    stored = wish.client.patch(resource, current, changes, manager=manager)
    # The server dropped the owners of fields that it could not read. Restore all but those taken over.
    owners = entries or current["metadata"].get("managedFields") or []
    for difference in fields:
        owners = managed_fields.remove_field(owners, difference.path)
    return wish.client.patch(resource, stored, {_OWNERS: owners}, manager=manager)


def _force(wish: _PendingTakeover, current: Manifest, *, dry_run: bool) -> None:
    take = {difference.path for difference in wish.preview.fields}
    part = writes.part_to_apply(wish.write, wish.desired_manifest, current, take=take)
    version = current["metadata"]["resourceVersion"]
    wish.client.apply(
        wish.write.resource,
        part | {"metadata": part["metadata"] | {"resourceVersion": version}},
        manager=wish.write.manager,
        dry_run=dry_run,
        force=True,
    )
