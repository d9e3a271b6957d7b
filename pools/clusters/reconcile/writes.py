"""Sending what differs: dry first, never by force, read back, and one refused object fails alone.

Of an object with several managers only the fields are applied that nobody else owns: what belongs to
others stays a difference until they change it, or somebody takes it over (pools.clusters.takeovers).
"""

from __future__ import annotations

import http
import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import BUGS, Pass, Write
from pools.core import errors
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import Difference
from pools.platform.outbound import faults

ATTEMPTS = 5  # while other writers are quicker
# They change with every write, and say nothing of what was asked for.
_BOOKKEEPING = {"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"}
# What the cluster may answer for one object and not for the next one; a webhook of the cluster can
# answer with any of them.
_OF_ONE_OBJECT = (faults.FieldConflict, faults.Rejected, faults.Forbidden, faults.ServerFault)
_Found = tuple[Difference, ...]
_LONGEST_CONFLICT = 900  # characters

log = logging.getLogger(__name__)


class NotKept(faults.ClusterFault):
    """The cluster takes the object, and does not keep all of its fields (its CRD lacks them)."""

    code = "fields_not_kept"
    reason = "FieldsNotKept"


class NotWorkedOut(errors.IpamError):
    """What to write could not be worked out; see the log of the worker."""

    code = "internal_error"


@dataclass(frozen=True)
class Result:
    """What became of one object.

    `stored` is the object as the cluster has it now, None when nothing was written. `found` are the
    fields in which the cluster still differs from what is wanted; `fault` is why.
    """

    write: Write
    stored: Manifest | None = None
    found: _Found = ()
    fault: errors.IpamError | None = None


def send(pass_: Pass, write: Write, listed: Manifest | None, *, fresh: bool) -> Result:
    """Bring one object to what is wanted.

    `listed` is the object as it was seen last (None: there was none); with `fresh` False it is read
    first. What is true of this object alone (a field of another manager, a rule of the API server, a
    webhook) is in the result; a fault of the cluster is raised. After a StaleVersion the object is
    read again and what to send is worked out anew (F14). Raises LeaseLost, ConnectionPaused.
    """
    found: _Found = ()
    last: errors.IpamError | None = None
    for attempt in range(ATTEMPTS):
        try:
            current = listed if fresh and not attempt else _current(pass_, write)
            wanted = write.make(current)
            found = find_differences(write, wanted, current)
        except (errors.IpamError, *BUGS) as error:
            if isinstance(error, faults.ClusterFault):
                raise
            return Result(write, found=found, fault=_own(error, write))
        if wanted is None or not found:
            return Result(write)
        if pass_.dry_run or not write.send:
            return Result(write, found=found)
        try:
            return _sent(pass_, write, wanted, current, found)
        except (faults.StaleVersion, faults.AlreadyThere, faults.ObjectAbsent) as error:
            last = error
        except _OF_ONE_OBJECT as error:
            return Result(write, found=found, fault=error)
    return Result(write, found=found, fault=last)


def _own(error: Exception, write: Write) -> errors.IpamError:
    if isinstance(error, errors.IpamError):
        return error
    log.error("what to write to %s %s is unclear", write.resource.kind, write.name, exc_info=error)
    return NotWorkedOut()


def _current(pass_: Pass, write: Write) -> Manifest | None:
    try:
        return pass_.gateway.get(write.resource, write.name, write.namespace)
    except faults.ObjectAbsent:
        return None


def _sent(
    pass_: Pass, write: Write, wanted: Manifest, current: Manifest | None, found: _Found
) -> Result:
    """Dry first: what would change nothing is not sent, or the cluster would be written for ever."""
    wanted_whole = wanted
    if current is not None:
        wanted = part_to_apply(write, wanted, current)
        if not find_differences(write, wanted, current):
            return Result(write, found=found, fault=of_others(write, found))
        # Another writer, also a worker that took the cluster over meanwhile, makes it a StaleVersion.
        version = current["metadata"]["resourceVersion"]
        wanted = wanted | {"metadata": wanted["metadata"] | {"resourceVersion": version}}
    try:
        tried = _tried(pass_, write, wanted)
    except (faults.Rejected, faults.ServerFault) as error:
        _upgrade_managers(pass_, write, current, error)
        raise
    if tried is not None and current is not None and _same(write, tried, current):
        return Result(write, found=found, fault=NotKept())
    pass_.prove()
    stored = _put(pass_, write, wanted, dry_run=False)
    left = find_differences(write, wanted_whole, stored)
    foreign = of_others(write, left)
    if foreign is None and left:
        return Result(write, stored=stored, found=left, fault=NotKept())
    return Result(write, stored=stored, found=left, fault=foreign)


def part_to_apply(
    write: Write, wanted: Manifest, current: Manifest, *, take: Collection[str] = ()
) -> Manifest:
    """What is applied to an object that is there: nothing that only other managers own."""
    if write.how != "apply" or write.subresource:
        return wanted
    part = differences.part_to_apply(
        wanted, current, structure=write.structure, manager=write.manager, take=take
    )
    return write.fit(part, current)


def of_others(write: Write, found: _Found) -> faults.FieldConflict | None:
    """Why these fields are not written: other managers own some of them."""
    texts = [f"{each.path} is owned by {', '.join(names)}" for each in found
             if (names := foreign(each, write.manager))]  # fmt: skip
    return faults.FieldConflict("; ".join(texts)[:_LONGEST_CONFLICT]) if texts else None


def foreign(difference: Difference, manager: str) -> list[str]:
    """The managers of the field but this one."""
    return [name for name in difference.managers if name != manager]


def _upgrade_managers(
    pass_: Pass, write: Write, current: Manifest | None, error: faults.ClusterFault
) -> None:
    """Give managedFields of another version of the kind the version that is written.

    A server cannot apply what the version of somebody's entry does not know (500). The entries keep
    their managers, operations and fields. Raises StaleVersion: read the object again.
    """
    if current is None or error.status != http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return
    entries = managed_fields.upgraded(current, write.resource.api_version)
    if entries is None:
        return
    pass_.prove()
    changes = {"/metadata/managedFields": entries}
    pass_.gateway.patch(write.resource, current, changes, manager=write.manager)
    raise faults.StaleVersion("managedFields have another version now") from error


def _tried(pass_: Pass, write: Write, wanted: Manifest) -> Manifest | None:
    """What the cluster would make of it; None where a webhook of the cluster offers no dry run."""
    try:
        return _put(pass_, write, wanted, dry_run=True)
    except faults.Rejected as error:
        if error.status == 400 and "dry run" in error.message:
            return None
        raise


def _put(pass_: Pass, write: Write, wanted: Manifest, *, dry_run: bool) -> Manifest:
    gateway = pass_.gateway
    if write.how == "replace" and not wanted["metadata"].get("resourceVersion"):
        return gateway.create(write.resource, wanted, manager=write.manager, dry_run=dry_run)
    put = gateway.replace if write.how == "replace" else gateway.apply
    return put(
        write.resource,
        wanted,
        manager=write.manager,
        subresource=write.subresource,
        dry_run=dry_run,
    )


def find_differences(write: Write, wanted: Manifest | None, current: Manifest | None) -> _Found:
    if wanted is None:
        return ()
    if write.how == "replace":
        return _replaced(write, wanted, current or {})
    manager = "" if write.subresource else write.manager
    return tuple(
        each
        for each in differences.find(
            wanted, current or {}, structure=write.structure, manager=manager
        )
        if each.path != "metadata.resourceVersion"
    )


def _replaced(write: Write, wanted: Manifest, current: Manifest) -> _Found:
    """Whole objects: also what the wanted one leaves out differs."""
    after, before = _content(wanted), _content(current)
    if after == before:
        return ()
    there = differences.find(after, current, structure=write.structure)
    gone = [
        Difference(each.path, None, each.desired, each.managers)
        for each in differences.find(before, wanted, structure=write.structure)
        if each.observed is None
    ]
    return (*there, *gone)


def _content(manifest: Manifest) -> Manifest:
    metadata: dict[str, Any] = manifest.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _BOOKKEEPING}
    return manifest | {"metadata": kept}


def _same(write: Write, tried: Manifest, current: Manifest) -> bool:
    if _content(tried) != _content(current):
        return False
    # Who replaces an object wants none of its fields for himself.
    return write.how == "replace" or _owners(tried) == _owners(current)


def _owners(manifest: Manifest) -> list[dict[str, Any]]:
    entries = manifest["metadata"].get("managedFields") or []
    kept = [{key: each.get(key) for key in each if key != "time"} for each in entries]
    return sorted(kept, key=lambda each: (str(each.get("manager")), str(each.get("operation"))))
