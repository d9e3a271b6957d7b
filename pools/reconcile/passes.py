"""One pass over one cluster: lease, identity, discovery, then each kind: list, absorb, desired, write.

Level-driven: a pass brings any state nearer, two bring it home, the next one writes nothing (I15).
Unknown is not absent: a kind whose list failed or is not served concludes nothing (I16). One bad
object fails alone (I22), one bad kind too; a fault of the cluster ends the pass.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction

from pools import database, events
from pools.clusters import faults, kubeconfig, secrets
from pools.clusters.access import Access
from pools.clusters.client import Gateway, Manifest
from pools.core import errors
from pools.core.resources import Resource
from pools.models import Connection, ObservedObject, Run
from pools.models.fields import Now
from pools.models.observed import Trigger
from pools.reconcile import differences, leases, seen, writes
from pools.reconcile.kinds import Handler, Pass, Seen

log = logging.getLogger(__name__)
Open = Callable[[Connection], Gateway]
KEEP_RUNS = 200  # of each cluster


class IdentityChanged(faults.ClusterFault):
    """Behind the address is another cluster than the one that was registered; nothing was done."""

    code = "identity_changed"
    reason = "IdentityChanged"
    permanent = True


@dataclass
class Counts:
    """What happened to one kind in one pass; `would` is what a dry run would have written."""

    seen: int = 0
    changed: int = 0
    gone: int = 0
    written: int = 0
    would: int = 0
    failed: int = 0
    code: str = ""  # why the kind as a whole failed
    message: str = ""
    plan: list[dict[str, Any]] = field(default_factory=list)  # of a dry run: object and fields

    def said(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value or key in _ALWAYS}


_ALWAYS = {"seen", "changed", "written", "failed"}


def owner(cluster_id: int) -> str:
    """What a cluster's credentials are bound to."""
    return f"cluster:{cluster_id}"


def access(connection: Connection) -> Access:
    """Where and with what credentials the cluster is reached. Raises SecretUnreadable."""
    if connection.in_cluster:
        return kubeconfig.in_cluster(os.environ)
    ring = secrets.configured()
    return Access.load(ring.open(connection.sealed, owner=owner(connection.cluster_id)))


def gateway(connection: Connection) -> Gateway:
    """The cluster's API server."""
    return Gateway(access(connection), allow_loopback=settings.IPAM_ALLOW_LOOPBACK_CLUSTERS)


def run(
    lease: leases.Lease,
    handlers: Sequence[Handler],
    *,
    trigger: Trigger = Trigger.SCHEDULE,
    open_gateway: Open = gateway,
) -> Run:
    """A full pass, recorded as a row; the lease is handed back. Never raises a cluster's fault.

    With Trigger.DRY_RUN nothing is written but the run, whose kinds hold the plan.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.connection_id)
    record = Run.objects.create(
        cluster=connection.cluster, trigger=trigger, started_at=Now(), kinds={}
    )
    counts: dict[str, Counts] = {}
    dry = trigger == Trigger.DRY_RUN
    try:
        with open_gateway(connection) as reached:
            version = _identified(connection, reached, dry_run=dry)
            pass_ = _pass(connection, reached, lease, dry_run=dry)
            _kinds(pass_, handlers, counts)
    except leases.LeaseLost as error:
        _record(record, counts, error)
        return record
    except (errors.IpamError, DatabaseError) as error:
        fault = error if isinstance(error, errors.IpamError) else errors.Unavailable()
        if dry:
            leases.put_back(lease)
        else:
            leases.failed(
                lease,
                code=fault.code,
                message=fault.message,
                retry_after=getattr(fault, "retry_after", 0),
            )
        _record(record, counts, fault)
        return record
    broken = next((one for one in counts.values() if one.code), None)
    if dry:
        leases.put_back(lease)
    elif broken:
        leases.failed(lease, code=broken.code, message=broken.message)
    else:
        leases.succeeded(lease, version=version, full=True)
    _record(record, counts, None)
    return record


def _pass(
    connection: Connection,
    reached: Gateway,
    lease: leases.Lease,
    *,
    dry_run: bool,
    told: bool = False,
) -> Pass:
    by = events.Author(actor=f"cluster {connection.cluster.name}", source="cluster")
    return Pass(
        cluster=connection.cluster,
        connection=connection,
        gateway=reached,
        by=by,
        holding=functools.partial(_holding, lease, by, dry_run=dry_run),
        dry_run=dry_run,
        told=told,
    )


@contextlib.contextmanager
def _holding(lease: leases.Lease, by: events.Author, *, dry_run: bool) -> Iterator[None]:
    with leases.holding(lease, by):
        yield
        if dry_run:
            transaction.set_rollback(True)


def _identified(connection: Connection, reached: Gateway, *, dry_run: bool) -> str:
    """The server's version, when it is the cluster that was registered."""
    version, found = reached.version(), reached.identity()
    if connection.identity and found != connection.identity:
        raise IdentityChanged(
            f"The cluster behind {connection.server} is another one than was registered."
        )
    if not connection.identity and not dry_run:
        _pin(connection, found)
    return version


def _pin(connection: Connection, found: str) -> None:
    try:
        with transaction.atomic():
            Connection.objects.filter(pk=connection.pk, identity="").update(identity=found)
    except IntegrityError as error:
        other = Connection.objects.select_related("cluster").get(identity=found)
        raise errors.SameCluster(
            f"This cluster is registered already, as {other.cluster}."
        ) from error


def _kinds(pass_: Pass, handlers: Sequence[Handler], counts: dict[str, Counts]) -> None:
    served = pass_.gateway.served([one for handler in handlers for one in handler.resources])
    for handler in handlers:
        one = counts.setdefault(handler.kind, Counts())
        read = next((version for version in handler.resources if version in served), None)
        if read is None:
            one.code, one.message = "crd_missing", f"The cluster does not serve {handler.kind}."
            continue
        pass_.served[handler.kind] = read
        with _alone(one):
            _absorb_list(pass_, handler, read, one)
            pass_.complete.add(handler.kind)
    for handler in handlers:
        if handler.kind in pass_.complete:
            with _alone(counts[handler.kind]):
                settle(pass_, handler, counts[handler.kind])


@contextlib.contextmanager
def _alone(one: Counts) -> Iterator[None]:
    """What one kind may not do, or has not, is that kind's trouble; anything else ends the pass."""
    try:
        yield
    except (faults.Forbidden, faults.KindAbsent, faults.Garbled, faults.Gone) as error:
        one.code, one.message = error.code, error.message


def _absorb_list(pass_: Pass, handler: Handler, read: Resource, one: Counts) -> None:
    listing = pass_.gateway.list(read)
    one.seen = len(listing.items)
    found = seen.compare(pass_.cluster.pk, handler.kind, listing.items)
    news = [*found.new, *(manifest for _, manifest in found.changed)]
    one.changed, one.gone = len(news), len(found.gone)
    if not (news or found.back or found.missed or found.gone):
        return
    rows = ObservedObject.objects.filter(cluster=pass_.cluster, kind=handler.kind)
    if found.back or found.missed:
        with pass_.holding():
            rows.filter(pk__in=found.back).update(missed_at=None)
            rows.filter(pk__in=found.missed).update(missed_at=Now())
    if found.gone:
        forget(pass_, handler, list(rows.filter(pk__in=found.gone)))
    for first in range(0, len(news), seen.BATCH):
        one.failed += absorb(pass_, handler, read, news[first : first + seen.BATCH])


def forget(pass_: Pass, handler: Handler, rows: Sequence[ObservedObject]) -> None:
    """Objects that are gone for good."""
    with pass_.holding():
        handler.forget(pass_, rows)
        ObservedObject.objects.filter(pk__in=[row.pk for row in rows]).delete()


def absorb(pass_: Pass, handler: Handler, read: Resource, manifests: Sequence[Manifest]) -> int:
    """Take in new or changed objects; how many of them failed, each with its problem in its row."""
    parsed: list[Any] = []
    problems: dict[int, errors.IpamError] = {}
    for index, manifest in enumerate(manifests):
        try:
            parsed.append(handler.parse(manifest))
        except errors.IpamError as refused:
            parsed.append(None)
            problems[index] = refused
    with pass_.holding():
        rows = seen.rows_for(pass_.cluster.pk, handler.kind, read.api_version, manifests)
        for index, problem in problems.items():
            _problem(rows[index], problem)
        good = [Seen(row, parsed[index]) for index, row in enumerate(rows) if index not in problems]
        failed = _halving(pass_, handler, good)
    return len(problems) + failed


def _halving(pass_: Pass, handler: Handler, batch: Sequence[Seen]) -> int:
    """Absorb a batch; when it fails, its halves, so that the culprit fails alone."""
    if not batch:
        return 0
    try:
        with transaction.atomic():
            handler.absorb(pass_, batch)
    except leases.LeaseLost:
        raise
    except (errors.IpamError, DatabaseError) as error:
        if len(batch) > 1:
            middle = len(batch) // 2
            return _halving(pass_, handler, batch[:middle]) + _halving(
                pass_, handler, batch[middle:]
            )
        if isinstance(error, DatabaseError) and not database.constraint(error):
            raise
        _problem(batch[0].row, error)
        return 1
    return 0


def _problem(row: ObservedObject, error: Exception) -> None:
    if isinstance(error, errors.IpamError):
        details = "; ".join(f"{one.field}: {one.message}" for one in error.problems)
        code, message = error.code, details or error.message
    else:
        code, message = database.constraint(error), str(error).splitlines()[0]
    ObservedObject.objects.filter(pk=row.pk).update(
        problem_code=code[:63], problem=message[:1000], pending=True
    )


def settle(pass_: Pass, handler: Handler, one: Counts) -> None:
    """Write what is wanted and is not so, then keep what people should know."""
    drift = []
    for write in handler.desired(pass_):
        result = writes.send(pass_, write)
        if result.stored is not None:
            one.written += 1
            if not write.subresource:
                _stored(pass_, handler, write.resource, result.stored)
        if result.fault is not None:
            one.failed += 1
        if result.found and pass_.dry_run:
            one.would += 1
            fields = [vars(difference) for difference in result.found]
            one.plan.append({"namespace": write.namespace, "name": write.name, "fields": fields})
        conflict = result.fault.message or result.fault.code if result.fault else ""
        drift += [(write.namespace, write.name, each, conflict) for each in result.found]
    if pass_.dry_run:
        return
    found = list(handler.findings(pass_))
    with pass_.holding():
        differences.keep_drift(pass_.cluster.pk, handler.kind, drift)
        differences.keep_findings(pass_.cluster.pk, handler.kind, found)


def _stored(pass_: Pass, handler: Handler, read: Resource, manifest: Manifest) -> None:
    """What was written is what was seen: the next pass need not take it for news."""
    absorb(pass_, handler, read, [manifest])


def _record(record: Run, counts: dict[str, Counts], error: errors.IpamError | None) -> None:
    failed = error is not None or any(one.code or one.failed for one in counts.values())
    record.kinds = {kind: one.said() for kind, one in counts.items()}
    record.succeeded = not failed
    record.error_code = error.code if error else ""
    record.error = error.message[:500] if error else ""
    record.ended_at = database.now()
    record.save(update_fields=["kinds", "succeeded", "error_code", "error", "ended_at"])
    old = Run.objects.filter(cluster=record.cluster_id).order_by("-id")[KEEP_RUNS:]
    Run.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()


def absorb_events(
    lease: leases.Lease,
    handler: Handler,
    read: Resource,
    told: Iterable[tuple[str, Manifest]],
    *,
    open_gateway: Open = gateway,
) -> Run:
    """Take in what a watch told of one kind, (type, object) in order, and write what follows.

    Of several events of one object the last one counts. A deletion that was told is an object's end:
    it names the uid.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.connection_id)
    record = Run.objects.create(
        cluster=connection.cluster, trigger=Trigger.WATCH, started_at=Now(), kinds={}
    )
    last = {seen.identity(manifest)[0]: (kind, manifest) for kind, manifest in told}
    one = Counts(seen=len(last), changed=len(last))
    deleted = [uid for uid, (kind, _) in last.items() if kind == "DELETED"]
    changed = [manifest for kind, manifest in last.values() if kind != "DELETED"]
    fault: errors.IpamError | None = None
    try:
        with open_gateway(connection) as reached:
            pass_ = _pass(connection, reached, lease, dry_run=False, told=True)
            pass_.served[handler.kind] = read
            pass_.complete.add(handler.kind)
            rows = ObservedObject.objects.filter(
                cluster=connection.cluster, kind=handler.kind, uid__in=deleted
            )
            forget(pass_, handler, list(rows))
            one.gone = len(deleted)
            one.failed += absorb(pass_, handler, read, changed)
            settle(pass_, handler, one)
    except leases.LeaseLost as error:
        fault = error
    except errors.IpamError as error:
        fault = error
        leases.failed(lease, code=error.code, message=error.message)
    else:
        leases.put_back(lease)
    _record(record, {handler.kind: one}, fault)
    return record
