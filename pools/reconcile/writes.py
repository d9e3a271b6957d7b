"""Sending what differs: dry first, never by force, read back, and one refused object fails alone."""

from __future__ import annotations

from dataclasses import dataclass

from pools.clusters import faults
from pools.clusters.client import Manifest
from pools.core import differences
from pools.core.differences import Difference
from pools.reconcile.kinds import Pass, Write

ATTEMPTS = 5  # while other writers are quicker


@dataclass(frozen=True)
class Result:
    """What became of one object.

    `stored` is the object as the cluster has it now, None when nothing was written. `found` are the
    fields in which the cluster differs from what is wanted and that were not (or may not be) written;
    `fault` is why.
    """

    write: Write
    stored: Manifest | None = None
    found: tuple[Difference, ...] = ()
    fault: faults.ClusterFault | None = None


def send(pass_: Pass, write: Write) -> Result:
    """Bring one object to what is wanted.

    What the cluster refuses for this object alone (a field of another manager, a rule of the API
    server, a webhook) is in the result; a fault of the cluster is raised. After a StaleVersion the
    object is read again and what to send is worked out anew (F14).
    """
    for _ in range(ATTEMPTS):
        current = _current(pass_, write)
        wanted = write.make(current)
        found = _differences(write, wanted, current)
        if wanted is None or not found:
            return Result(write)
        if pass_.dry_run:
            return Result(write, found=found)
        try:
            _try_out(pass_, write, wanted, current)
            return Result(write, stored=_sent(pass_, write, wanted, dry_run=False))
        except (faults.StaleVersion, faults.AlreadyThere, faults.ObjectAbsent) as error:
            last: faults.ClusterFault = error
        except (faults.FieldConflict, faults.Rejected, faults.Forbidden) as error:
            return Result(write, found=found, fault=error)
    return Result(write, found=found, fault=last)


def _current(pass_: Pass, write: Write) -> Manifest | None:
    try:
        return pass_.gateway.get(write.resource, write.name, write.namespace)
    except faults.ObjectAbsent:
        return None


def _differences(
    write: Write, wanted: Manifest | None, current: Manifest | None
) -> tuple[Difference, ...]:
    if wanted is None:
        return ()
    if write.how == "replace":
        before, after = _without_version(current or {}), _without_version(wanted)
        return () if before == after else (Difference("spec", after, before),)
    manager = "" if write.subresource else write.manager
    return tuple(differences.find(wanted, current or {}, manager=manager))


def _without_version(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key != "metadata"}


def _try_out(pass_: Pass, write: Write, wanted: Manifest, current: Manifest | None) -> None:
    # A new object passes through admission twice; an existing one is guarded by its version.
    if current is None or write.how == "apply":
        _sent(pass_, write, wanted, dry_run=True)


def _sent(pass_: Pass, write: Write, wanted: Manifest, *, dry_run: bool) -> Manifest:
    gateway = pass_.gateway
    if write.how == "replace":
        return gateway.replace(
            write.resource,
            wanted,
            manager=write.manager,
            subresource=write.subresource,
            dry_run=dry_run,
        )
    return gateway.apply(
        write.resource,
        wanted,
        manager=write.manager,
        subresource=write.subresource,
        dry_run=dry_run,
    )
