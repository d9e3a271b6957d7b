"""Take-over of fields of an object from other managers: the only forced write, confirmed by a person.

A preview lists the fields and their managers, and the confirmation names the preview. If the object, its
managers or the desired manifest have changed since, nothing is written. The fields are written by a forced
server-side apply to this version of the object, without any other field of other managers.
"""

from __future__ import annotations

import contextlib
import hashlib
import http
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import transaction

from pools.clusters import drift
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import connecting, leases, registry, sync, writes
from pools.clusters.reconcile.handler import Handler, SyncContext, Write
from pools.core import errors
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.differences import FieldDifference
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Connection
from pools.platform import events
from pools.platform.outbound import faults

# Statuses of a write to an object that the server cannot convert, or that was invalid before.
_REPAIRABLE = (http.HTTPStatus.INTERNAL_SERVER_ERROR, http.HTTPStatus.UNPROCESSABLE_ENTITY)
_OWNERS = "/metadata/managedFields"
_PLAIN = re.compile(r"\w+(?:\.\w+)*")  # a path without list members


@dataclass(frozen=True)
class TakeoverPreview:
    """The fields of a take-over; `fields[i].managers` own them now."""

    cluster_object: drift.ClusterObject
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


def preview(cluster_object: drift.ClusterObject, *, author: events.Author) -> TakeoverPreview:
    """Return the fields of other managers that prevent a write; reads the current object.

    Raises NotManaged, ConnectionPaused, NotFound (no field of another manager differs), ClusterFault.
    """
    with _open_takeover(cluster_object, author) as wish:
        return wish.preview


def take_over(
    cluster_object: drift.ClusterObject, *, token: str, author: events.Author
) -> TakeoverPreview:
    """Take over the fields of the preview with this token; record an event with the author's reason.

    Raises InvalidInput (no reason), ObjectChanged, and the errors of `preview`.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Give a reason to take the fields over."
        )
    connection = drift.managing_connection(cluster_object)
    with _open_takeover(cluster_object, author) as wish:
        if wish.preview.token != token:
            raise errors.ObjectChanged
        fields = "; ".join(
            f"{difference.path} from {', '.join(writes.other_managers(difference, wish.write.manager))}"
            for difference in wish.preview.fields
        )
        with transaction.atomic():  # without its event, nothing is taken over
            drift.record_takeover(connection, cluster_object, fields, author=author)
            try:
                _apply(wish)
            except faults.StaleVersion as error:
                raise errors.ObjectChanged from error
    leases.nudge(cluster_object.cluster.pk)
    return wish.preview


@contextlib.contextmanager
def _open_takeover(
    cluster_object: drift.ClusterObject, author: events.Author
) -> Iterator[_PendingTakeover]:
    connection = drift.managing_connection(cluster_object)
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
    cluster_object: drift.ClusterObject,
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
