"""Sending what differs: dry first, never by force, read back, and one refused object fails alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pools.clusters import faults
from pools.clusters.client import Manifest
from pools.core import differences, errors
from pools.core.differences import Difference
from pools.reconcile.kinds import BUGS, Pass, Write

ATTEMPTS = 5  # while other writers are quicker
# They change with every write, and say nothing of what was asked for.
_BOOKKEEPING = {"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"}
# What the cluster may answer for one object and not for the next one; a webhook of the cluster can
# answer with any of them.
_OF_ONE_OBJECT = (faults.FieldConflict, faults.Rejected, faults.Forbidden, faults.ServerFault)
_Found = tuple[Difference, ...]

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
            found = _differences(write, wanted, current)
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
    if current is not None:
        # Another writer, also a worker that took the cluster over meanwhile, makes it a StaleVersion.
        version = current["metadata"]["resourceVersion"]
        wanted = wanted | {"metadata": wanted["metadata"] | {"resourceVersion": version}}
    tried = _tried(pass_, write, wanted)
    if tried is not None and current is not None and _same(write, tried, current):
        return Result(write, found=found, fault=NotKept())
    pass_.prove()
    stored = _put(pass_, write, wanted, dry_run=False)
    left = _differences(write, wanted, stored)
    return Result(write, stored=stored, found=left, fault=NotKept() if left else None)


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


def _differences(write: Write, wanted: Manifest | None, current: Manifest | None) -> _Found:
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
