"""Taking fields of an object over from their managers: the one forced write, confirmed by a person.

The preview says which fields and from whom. What is confirmed is that preview: when the object, its
managers or what the register wants have changed since, nothing is written. The fields go to the cluster
by a forced server-side apply of this very version of the object, without any other field of others.
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
from pools.clusters.client.api_client import Gateway, Manifest
from pools.clusters.reconcile import connecting, leases, registry, sync, writes
from pools.clusters.reconcile.handler import Handler, Pass, Write
from pools.core import errors
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.differences import Difference
from pools.core.kubernetes.resources import Resource
from pools.models import Connection
from pools.platform import events
from pools.platform.outbound import faults

# What a server says to a write of an object that it cannot convert, or that was invalid before.
_UNFIT = (http.HTTPStatus.INTERNAL_SERVER_ERROR, http.HTTPStatus.UNPROCESSABLE_ENTITY)
_OWNERS = "/metadata/managedFields"
_PLAIN = re.compile(r"\w+(?:\.\w+)*")  # a path without members of lists


@dataclass(frozen=True)
class Preview:
    """The fields that would be taken over; `fields[i].managers` are those who own them now."""

    of: drift.Object
    uid: str
    resource_version: str
    fields: tuple[Difference, ...]

    @property
    def token(self) -> str:
        """A digest of all of it, by which a confirmation names what was shown."""
        shown = [[one.path, one.desired, one.observed, list(one.managers)] for one in self.fields]
        text = json.dumps([self.uid, self.resource_version, shown], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def managers(self) -> list[str]:
        return sorted({name for one in self.fields for name in one.managers})


@dataclass(frozen=True)
class _Wish:
    """An object as it is, and what the register wants of it."""

    gateway: Gateway
    write: Write
    wanted: Manifest
    current: Manifest
    preview: Preview


def preview(of: drift.Object, *, author: events.Author) -> Preview:
    """Which fields of others stand in the way, as the cluster has them now; nothing is written.

    Raises NotManaged, ConnectionPaused, NotFound (nothing of others differs) and ClusterFault.
    """
    with _opened(of, author) as wish:
        return wish.preview


def take(of: drift.Object, *, token: str, author: events.Author) -> Preview:
    """Take over the fields of the preview with this token, with the reason in `by`; an event tells of it.

    Raises InvalidInput (no reason), ObjectChanged, and what `preview` raises.
    """
    if not author.reason:
        raise errors.InvalidInput.of("reason", "required", "Say why the fields are taken over.")
    connection = drift.managed(of)
    with _opened(of, author) as wish:
        if wish.preview.token != token:
            raise errors.ObjectChanged
        fields = "; ".join(
            f"{one.path} from {', '.join(writes.foreign(one, wish.write.manager))}"
            for one in wish.preview.fields
        )
        with transaction.atomic():  # without an event nothing is taken
            drift.note_takeover(connection, of, fields, author=author)
            try:
                _apply(wish)
            except faults.StaleVersion as error:
                raise errors.ObjectChanged from error
    leases.nudge(of.cluster.pk)
    return wish.preview


@contextlib.contextmanager
def _opened(of: drift.Object, author: events.Author) -> Iterator[_Wish]:
    connection = drift.managed(of)
    if connection.paused:
        raise errors.ConnectionPaused(f"The connection of {of.cluster} is paused.")
    handler = next((one for one in registry.HANDLERS if one.kind == of.kind), None)
    if handler is None:
        raise errors.NotFound(f"Objects of kind {of.kind} are not written.")
    with connecting.gateway(connection) as reached:
        connecting.recognise(connection, reached)
        served = reached.served(handler.resources)
        resource = next((one for one in handler.resources if one in served), None)
        if resource is None:
            raise faults.KindAbsent(f"The cluster does not serve {of.kind}.")
        yield _wish(of, author, connection, handler, reached, resource)


def _wish(
    of: drift.Object,
    author: events.Author,
    connection: Connection,
    handler: Handler,
    reached: Gateway,
    resource: Resource,
) -> _Wish:
    place = (of.namespace, of.name)
    pass_ = Pass(
        cluster=of.cluster,
        connection=connection,
        gateway=reached,
        author=author,
        holding=transaction.atomic,
        dry_run=True,
        told=True,
        served={handler.kind: resource},
        touched=frozenset({place}),
    )
    with sync.undone():
        wished = [one for one in handler.desired(pass_) if one.place == place and one.send]
    current = reached.get(resource, of.name, of.namespace)
    for write in wished:
        if write.how != "apply" or write.subresource or write.resource != resource:
            continue
        wanted = write.make(current)
        found = writes.find_differences(write, wanted, current)
        fields = tuple(
            one for one in found if one.desired is not None and writes.foreign(one, write.manager)
        )
        if wanted is not None and fields:
            metadata = current["metadata"]
            shown = Preview(of, metadata["uid"], metadata["resourceVersion"], fields)
            return _Wish(reached, write, wanted, current, shown)
    raise errors.NotFound(f"No field of {of} waits for its owner.")


def _apply(wish: _Wish) -> None:
    """Dry first; what keeps a server from applying anything at all is mended before."""
    current = wish.current
    try:
        _force(wish, current, dry_run=True)
    except (faults.Rejected, faults.ServerFault) as error:
        mended = _mended(wish, error)
        if mended is None:
            raise
        current = mended
        _force(wish, current, dry_run=True)
    _force(wish, current, dry_run=False)


def _mended(wish: _Wish, error: faults.ClusterFault) -> Manifest | None:
    """The object as a server can apply to it; None when that is not what the error is about.

    Entries of managedFields are brought to the version that is written. An object that is invalid in
    this version as it stands (strings where the version has objects) can be changed only together with
    the fields that are wrong, which have to be among those that are taken over.
    """
    resource, current, manager = wish.write.resource, wish.current, wish.write.manager
    entries = managed_fields.upgraded(current, resource.api_version)
    if error.status == http.HTTPStatus.INTERNAL_SERVER_ERROR and entries is not None:
        with contextlib.suppress(faults.Rejected):
            return wish.gateway.patch(resource, current, {_OWNERS: entries}, manager=manager)
    fields = [one for one in wish.preview.fields if _PLAIN.fullmatch(one.path)]
    if error.status not in _UNFIT or not fields:
        return None
    changes = {f"/{one.path.replace('.', '/')}": one.desired for one in fields}
    stored = wish.gateway.patch(resource, current, changes, manager=manager)
    # Of what it could not read the server has forgotten who owned it: all but what is taken over.
    owners = entries or current["metadata"].get("managedFields") or []
    for one in fields:
        owners = managed_fields.without(owners, one.path)
    return wish.gateway.patch(resource, stored, {_OWNERS: owners}, manager=manager)


def _force(wish: _Wish, current: Manifest, *, dry_run: bool) -> None:
    take = {one.path for one in wish.preview.fields}
    part = writes.part_to_apply(wish.write, wish.wanted, current, take=take)
    version = current["metadata"]["resourceVersion"]
    wish.gateway.apply(
        wish.write.resource,
        part | {"metadata": part["metadata"] | {"resourceVersion": version}},
        manager=wish.write.manager,
        dry_run=dry_run,
        force=True,
    )
