"""What a watch told is taken in: between full passes, within seconds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

from pools.clusters.client.api_client import Gateway, Manifest
from pools.clusters.reconcile import (
    apply,
    comparison,
    connecting,
    ingest,
    leases,
    sync,
    sync_runs,
    watch_positions,
)
from pools.clusters.reconcile.handler import Handler, Pass, keeping
from pools.clusters.reconcile.sync_runs import Counts
from pools.clusters.reconcile.watch_positions import Position
from pools.models import Connection, ObservedObject, Run
from pools.platform import database
from pools.platform.leases import Lease

OVERTAKEN = "events_overtaken"


def absorb_events(
    lease: Lease,
    handlers: Sequence[Handler],
    kind: str,
    told: Iterable[tuple[str, Manifest]],
    *,
    at: Position,
    to: Position,
    open_gateway: connecting.Open = connecting.gateway,
) -> Run:
    """Take in what a watch told of one kind, (type, object) in order, and write what follows.

    The events are all those between two positions. When the kind stands elsewhere by now (a list, or
    another watcher, has seen more), nothing is done and the run's error is `events_overtaken`. Of
    several events of one object the last one counts. A deletion that was told is an object's end: it
    names the uid. The lease is handed back; the run is stored only when something came of it.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.told(connection.cluster, database.now())
    if not watch_positions.stands(connection.pk, kind, at):
        leases.put_back(lease)
        record.error_code = OVERTAKEN
        return record
    (handler,) = [each for each in handlers if each.kind == kind]
    last = {comparison.identity(manifest)[0]: (type_, manifest) for type_, manifest in told}
    last = {uid: _kept(handler, *event) for uid, event in last.items()}
    counts = {kind: Counts(seen=len(last))}
    with sync.outcome(lease, record, counts, full=False):
        with leases.kept(lease), open_gateway(connection) as reached:
            pass_ = _pass(connection, reached, lease, last.values())
            _served(pass_, handler, to)
            with sync.alone(counts[kind], kind):
                if _take_in(pass_, handler, last, counts[kind]):
                    apply.settle(pass_, handler, counts[kind])
            if counts[kind].changed or counts[kind].gone:
                followers = [each for each in handlers if kind in each.follows]
                _settle_each(pass_, followers, counts)
        if not counts[kind].code:
            with pass_.holding():
                watch_positions.move(connection.pk, kind, at, to)
    return record


def settle_register(
    lease: Lease,
    handlers: Sequence[Handler],
    *,
    open_gateway: connecting.Open = connecting.gateway,
) -> Run:
    """Write what a change of the register asks for, of the kinds that are `prompt`, without a list.

    The lease is handed back; the run is stored only when something came of it.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.told(connection.cluster, database.now())
    counts: dict[str, Counts] = {}
    with (
        sync.outcome(lease, record, counts, full=False),
        leases.kept(lease),
        open_gateway(connection) as reached,
    ):
        pass_ = _pass(connection, reached, lease, ())
        prompt = [each for each in handlers if each.prompt]
        _settle_each(pass_, prompt, counts)
    return record


def _pass(
    connection: Connection,
    reached: Gateway,
    lease: Lease,
    told: Iterable[tuple[str, Manifest]],
) -> Pass:
    touched = frozenset(comparison.place(manifest) for _, manifest in told)
    pass_ = sync.start(connection, reached, lease, told=True, touched=touched)

    # The watch knew whom it asked. This connection is another one, and it is made only to write.
    @functools.cache
    def recognised() -> str:
        return connecting.recognise(connection, reached)

    def prove() -> None:
        recognised()
        leases.prove(lease)

    return dataclasses.replace(pass_, prove=prove)


def _kept(handler: Handler, type_: str, manifest: Manifest) -> tuple[str, Manifest]:
    """What is kept of the object; one that is of no interest any more is gone."""
    keep = keeping(handler)
    if keep is None or type_ == "DELETED":
        return type_, manifest
    kept = keep(manifest)
    return ("DELETED", manifest) if kept is None else (type_, kept)


def _served(pass_: Pass, handler: Handler, position: Position | None) -> bool:
    """Note the version in which the kind is read, and that all of its objects are known."""
    for version in handler.resources:
        if position is not None and version.api_version == position.api_version:
            pass_.served[handler.kind] = version
            pass_.complete.add(handler.kind)
            return True
    return False


def _take_in(
    pass_: Pass, handler: Handler, last: Mapping[str, tuple[str, Manifest]], one: Counts
) -> bool:
    """Whether anything was new: what we wrote ourselves was seen when it was written."""
    rows = {
        uid: (pk, version)
        for uid, pk, version in ObservedObject.objects.filter(
            cluster=pass_.cluster, kind=handler.kind, uid__in=list(last)
        ).values_list("uid", "pk", "resource_version")
    }
    gone = [rows[uid][0] for uid, (type_, _) in last.items() if type_ == "DELETED" and uid in rows]
    news = [
        manifest
        for uid, (type_, manifest) in last.items()
        if type_ != "DELETED"
        and (uid not in rows or rows[uid][1] != comparison.identity(manifest)[1])
    ]
    one.changed, one.gone = len(news), len(gone)
    one.failed += ingest.absorb(pass_, handler, pass_.served[handler.kind], news)
    one.failed += ingest.forget(pass_, handler, gone)
    return bool(news or gone)


def _settle_each(pass_: Pass, handlers: Sequence[Handler], counts: dict[str, Counts]) -> None:
    for handler in handlers:
        known = watch_positions.read(pass_.connection.positions, handler.kind)
        if _served(pass_, handler, known):
            one = counts[handler.kind] = Counts()
            with sync.alone(one, handler.kind):
                apply.settle(pass_, handler, one)
