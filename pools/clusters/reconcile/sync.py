"""One pass over one cluster: identity, discovery, the lists, then each kind: absorb, desired, write.

Level-driven: a pass brings any state nearer, two bring it home, the next one writes nothing (I15).
Unknown is not absent: a kind whose list failed or is not served concludes nothing (I16). One bad
object fails alone (I22), one bad kind too; a fault of the cluster ends the pass.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.db import connection as database_connection

from pools.clusters.client.api_client import Gateway, Listing
from pools.clusters.reconcile import (
    apply,
    comparison,
    connecting,
    differences,
    ingest,
    leases,
    observers,
    served_kinds,
    sync_runs,
    watch_positions,
)
from pools.clusters.reconcile.connecting import IdentityChanged, Open, access, gateway, owner
from pools.clusters.reconcile.handler import BUGS, Found, Handler, Pass, keeping
from pools.clusters.reconcile.sync_runs import Counts
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import Connection, ObservedObject, Run
from pools.models.fields import Now
from pools.models.observed import Trigger
from pools.platform import events, process_metrics
from pools.platform.leases import Lease, LeaseLost
from pools.platform.outbound import faults

__all__ = ["IdentityChanged", "Open", "access", "gateway", "owner", "run"]  # of `connecting`, too

log = logging.getLogger(__name__)


class PassFailed(errors.IpamError):
    """The pass ended for a reason of our own; see the log of the worker."""

    code = "internal_error"


class Stopped(errors.IpamError):
    """Somebody stopped the pass."""

    code = "stopped"


@dataclass(frozen=True)
class _Listed:
    """One kind's complete list, and the rows that were known before it was asked for."""

    handler: Handler
    read: Resource
    listing: Listing
    known: comparison.Known


def run(
    lease: Lease,
    handlers: Sequence[Handler],
    *,
    trigger: Trigger = Trigger.SCHEDULE,
    open_gateway: Open = gateway,
) -> Run:
    """A full pass, recorded as a row; the lease is handed back. Never raises a cluster's fault.

    With Trigger.DRY_RUN nothing is written but the run, whose kinds hold the plan.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.begin(connection.cluster, trigger)
    counts: dict[str, Counts] = {}
    dry = trigger == Trigger.DRY_RUN
    with (
        outcome(lease, record, counts, dry=dry) as ended,
        leases.kept(lease),
        _without_collector(),
        open_gateway(connection) as reached,
    ):
        ended.version = reached.version()
        found = connecting.recognise(connection, reached)
        pass_ = start(connection, reached, lease, dry_run=dry)
        if not (connection.identity or dry):
            with pass_.holding():
                connecting.pin(connection, found)
        _all_kinds(pass_, handlers, counts)
        if not dry:
            with alone(Counts(), "what was observed"):  # the pass itself is well
                observers.tell(pass_, counts, record.started_at)
        # Before the collector walks them.
        del pass_
    return record


def _all_kinds(pass_: Pass, handlers: Sequence[Handler], counts: dict[str, Counts]) -> None:
    listed = _list_all(pass_, handlers, counts)
    with undone() if pass_.dry_run else contextlib.nullcontext():
        _absorb_all(pass_, listed, counts)
        _settle_all(pass_, listed, counts)


@dataclass
class Ended:
    """How a pass went, as far as the pass itself knows; `version` is that of the server."""

    version: str = ""
    failed_objects: int = 0


@contextlib.contextmanager
def outcome(
    lease: Lease,
    record: Run,
    counts: dict[str, Counts],
    *,
    dry: bool = False,
    full: bool = True,
) -> Iterator[Ended]:
    """Whatever happens inside: the lease is handed back, with back-off after a fault, and recorded."""
    ended = Ended()
    started = time.perf_counter()
    fault: errors.IpamError | None = None
    try:
        yield ended
    except errors.IpamError as error:
        fault = error
    except ingest.DATABASE_AWAY as error:
        log.warning("the database failed during a pass: %s", error)
        fault = errors.Unavailable()
    except (KeyboardInterrupt, SystemExit):
        fault = Stopped()
        raise
    except BaseException as error:
        fault = PassFailed(f"{type(error).__name__}: see the log of the worker")
        raise
    finally:
        # A connection that broke is opened anew; without any, the lease ends by itself.
        if not database_connection.in_atomic_block:
            database_connection.close_if_unusable_or_obsolete()
        if full and not dry:
            _measure(record.cluster.name, fault or _broken(counts), time.perf_counter() - started)
        with contextlib.suppress(*ingest.DATABASE_AWAY):
            ended.failed_objects = 0 if dry else sum(one.failed for one in counts.values())
            _hand_back(lease, fault or _broken(counts), ended, dry=dry, full=full)
            sync_runs.end(record, counts, fault)


def _broken(counts: Mapping[str, Counts]) -> errors.IpamError | None:
    """The first kind's trouble that is not that of single objects."""
    one = next((one for one in counts.values() if one.is_fault), None)
    if one is None:
        return None
    broken = errors.IpamError(one.message)
    broken.code = one.code
    return broken


def _measure(cluster: str, fault: errors.IpamError | None, seconds: float) -> None:
    if isinstance(fault, LeaseLost):
        process_metrics.count("ipam_lease_lost_total")
    if isinstance(fault, errors.ConnectionPaused | Stopped):
        return
    process_metrics.observe("ipam_reconcile_duration_seconds", seconds, cluster=cluster)
    result = "failure" if fault else "success"
    process_metrics.count("ipam_reconcile_total", cluster=cluster, result=result)
    if fault:
        process_metrics.count("ipam_reconcile_errors_total", cluster=cluster, reason=fault.code)


def _hand_back(
    lease: Lease, fault: errors.IpamError | None, ended: Ended, *, dry: bool, full: bool
) -> None:
    if isinstance(fault, LeaseLost):
        return
    if dry or isinstance(fault, errors.ConnectionPaused | Stopped):
        leases.put_back(lease)
    elif fault:
        retry_after = getattr(fault, "retry_after", 0)
        leases.failed(lease, code=fault.code, message=fault.message, retry_after=retry_after)
    elif full:
        leases.succeeded(lease, version=ended.version, failed_objects=ended.failed_objects)
    else:
        leases.put_back(lease, failed_objects=ended.failed_objects)


def start(
    connection: Connection,
    reached: Gateway,
    lease: Lease,
    *,
    dry_run: bool = False,
    told: bool = False,
    touched: frozenset[tuple[str, str]] = frozenset(),
) -> Pass:
    """What handlers are given."""
    author = events.Author(actor=f"cluster {connection.cluster.name}", source="cluster")
    return Pass(
        cluster=connection.cluster,
        connection=connection,
        gateway=reached,
        author=author,
        holding=functools.partial(leases.holding, lease, author),
        prove=functools.partial(leases.prove, lease),
        dry_run=dry_run,
        told=told,
        touched=touched,
    )


_resting = threading.Semaphore(1)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Ten thousand objects that are kept hold no cycles, and are walked again and again for them."""
    ours = gc.isenabled() and _resting.acquire(blocking=False)
    if ours:
        gc.disable()
    try:
        yield
    finally:
        if ours:
            gc.enable()
            _resting.release()


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """All that is written inside is undone: so a plan knows what its own first half would bring."""
    with transaction.atomic(), database_connection.cursor() as cursor:
        # An object that was not listed may be asked for meanwhile, and the cluster be slow.
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        try:
            yield
        finally:
            transaction.set_rollback(True)


@contextlib.contextmanager
def alone(one: Counts, kind: str) -> Iterator[None]:
    """What one kind may not do, or has not, is that kind's trouble; anything else ends the pass."""
    try:
        yield
    except (
        faults.Forbidden,
        faults.Garbled,
        faults.Gone,
        faults.KindAbsent,
        faults.Rejected,
        faults.ServerFault,
    ) as error:
        one.code, one.message = error.code, error.message
    except ingest.DATABASE_AWAY:
        raise
    except (DatabaseError, *BUGS):
        log.exception("a pass over %s failed", kind)
        one.code, one.message = PassFailed.code, PassFailed.__doc__ or ""


def _list_all(pass_: Pass, handlers: Sequence[Handler], counts: dict[str, Counts]) -> list[_Listed]:
    """All lists before anything is concluded from any of them."""
    wanted = [resource for handler in handlers for resource in handler.resources]
    discovery = pass_.gateway.discover(wanted)
    served_kinds.keep(pass_, handlers, discovery)
    listed: list[_Listed] = []
    for handler in handlers:
        one = counts.setdefault(handler.kind, Counts())
        # The first that is served; one before it that did not answer may be, and is waited for.
        answer = {*discovery.served, *discovery.faults}
        read = next((each for each in handler.resources if each in answer), None)
        if read is None or read in discovery.faults:
            with alone(one, handler.kind):
                served_kinds.absent(pass_, handler, discovery, one)
            continue
        with alone(one, handler.kind), _may_be_refused(pass_, read):
            known = comparison.known(pass_.cluster.pk, handler.kind)
            listing = pass_.gateway.list(read, keep=keeping(handler))
            one.seen = len(listing.items)
            pass_.served[handler.kind] = read
            pass_.complete.add(handler.kind)
            pass_.listed[handler.kind] = listing.items
            listed.append(_Listed(handler, read, listing, known))
    return listed


@contextlib.contextmanager
def _may_be_refused(pass_: Pass, read: Resource) -> Iterator[None]:
    """A kind that is read if we may: a finding says that we may not, and what was known stays."""
    try:
        yield
    except faults.Forbidden as error:
        if not read.reads_for:
            raise
        message = f"There are no new {read.reads_for}: {error.message}"
        if not pass_.dry_run:
            with pass_.holding():
                differences.keep_findings(
                    pass_.cluster.pk, read.kind, [Found("not_permitted", read.plural, message)]
                )


def _absorb_all(pass_: Pass, listed: Sequence[_Listed], counts: dict[str, Counts]) -> None:
    found: dict[str, watch_positions.Position] = {}
    for each in listed:
        kind = each.handler.kind
        with alone(counts[kind], kind):
            _absorb(pass_, each, counts[kind])
            version = each.listing.resource_version
            found[kind] = watch_positions.Position(each.read.api_version, version)
    if found:
        with pass_.holding():
            watch_positions.keep(pass_.connection.pk, found)


def _absorb(pass_: Pass, each: _Listed, one: Counts) -> None:
    handler, rows = each.handler, ObservedObject.objects.all()
    items = each.listing.items
    found = comparison.compare(pass_.cluster.pk, handler.kind, each.known, items)
    replaced = comparison.replaced(found.absent, items)
    gone = sorted({*found.gone, *replaced})
    missed = sorted({*found.missed} - {*replaced})
    one.changed, one.gone = len(found.new) + len(found.changed), len(gone)
    if found.back or missed:
        with pass_.holding():
            rows.filter(pk__in=found.back).update(missed_at=None)
            rows.filter(pk__in=missed).update(missed_at=Now())
    one.failed += ingest.absorb(pass_, handler, each.read, found.new, new=True)
    one.failed += ingest.absorb(pass_, handler, each.read, found.changed)
    one.failed += ingest.again(pass_, handler, found.again)
    one.failed += ingest.forget(pass_, handler, gone)


def _settle_all(pass_: Pass, listed: Sequence[_Listed], counts: dict[str, Counts]) -> None:
    for each in listed:
        one = counts[each.handler.kind]
        if not one.code:
            with alone(one, each.handler.kind):
                apply.settle(pass_, each.handler, one)
