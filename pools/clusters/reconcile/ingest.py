"""Taking in what is seen: many objects in one transaction, and a bad one fails alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, transaction

from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile import comparison, storage
from pools.clusters.reconcile.handler import BUGS, Handler, ParsedObject, SyncContext
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.leases import LeaseLost

log = logging.getLogger(__name__)
T = TypeVar("T")

# The database is in trouble, not the object; a lost race is tried again as a whole.
DATABASE_AWAY = (OperationalError, InterfaceError)
_CULPRITS = (errors.IpamError, DatabaseError, *BUGS)
_STOPS = (LeaseLost, errors.ConnectionPaused, *DATABASE_AWAY)


class ObjectProblem(NamedTuple):
    """What is wrong with one object, as its row has it."""

    code: str
    text: str


def ingest(
    context: SyncContext,
    handler: Handler,
    read: Resource,
    manifests: Sequence[Manifest],
    *,
    new: bool = False,
) -> int:
    """Take in new or changed objects; how many have a problem, which then stands in their row.

    With `new` none of them has a row yet.
    """
    kind = storage.ObjectKind(context.cluster.pk, handler.kind, read.api_version)
    failed = 0
    for batch in storage.batches(manifests):

        def work(batch: list[storage.Item] = batch) -> int:
            parsed_by_id: dict[int, Any] = {}

            def parse(item: storage.Item) -> Any:
                if id(item) not in parsed_by_id:
                    parsed_by_id[id(item)] = _parsed(handler, item.manifest)
                return parsed_by_id[id(item)]

            with context.holding():
                rows = storage.store(kind, batch, new=new, meanwhile=parse)
                parsed = [parse(item) for item in batch]
                stored = [ObjectProblem(row.problem_code, row.problem) for row in rows]
                return _taken_in(context, handler, rows, parsed, stored=stored)

        failed += database.with_retries(work)
    return failed


def again(context: SyncContext, handler: Handler, manifests: Sequence[Manifest]) -> int:
    """Look once more at objects that did not change: those with a problem, and pending ones.

    Nothing is written for what is as it was. How many have a problem.
    """
    failed = 0
    for first in range(0, len(manifests), storage.BATCH):
        batch = manifests[first : first + storage.BATCH]
        manifests_by_uid = {comparison.identity(manifest)[0]: manifest for manifest in batch}

        def work(manifests_by_uid: dict[str, Manifest] = manifests_by_uid) -> int:
            with context.holding():
                rows = list(
                    ObservedObject.objects.filter(
                        cluster=context.cluster, kind=handler.kind, uid__in=manifests_by_uid
                    ).defer("manifest")
                )
                stored = [ObjectProblem(row.problem_code, row.problem) for row in rows]
                parsed = []
                for row in rows:
                    row.manifest = manifests_by_uid[row.uid]
                    # Content that could not be stored makes it a problem whatever a handler says.
                    row.problem_code = storage.UNSTORABLE * (row.problem_code == storage.UNSTORABLE)
                    parsed.append(_parsed(handler, row.manifest))
                return _taken_in(context, handler, rows, parsed, stored=stored)

        failed += database.with_retries(work)
    return failed


def _parsed(handler: Handler, manifest: Manifest) -> Any:
    try:
        return handler.parse(manifest)
    except (errors.IpamError, *BUGS) as error:
        return _problem(error, handler.kind)


def _taken_in(
    context: SyncContext,
    handler: Handler,
    rows: Sequence[ObservedObject],
    parsed: Sequence[Any],
    *,
    stored: Sequence[ObjectProblem],
) -> int:
    """Absorb what could be read, then keep what is wrong and what is pending, where it changed."""
    pending = [row.pending for row in rows]
    good = []
    for row, result in zip(rows, parsed, strict=True):
        row.pending = False
        if row.problem_code:  # unstorable
            continue
        if isinstance(result, ObjectProblem):
            row.problem_code, row.problem = result.code, result.text
        else:
            row.problem = ""
            good.append(ParsedObject(row, result))
    for culprit, error in halving(good, lambda batch: _ingested(context, handler, batch)):
        problem = _problem(error, handler.kind)
        culprit.row.problem_code, culprit.row.problem = problem.code, problem.text
    changed = [
        row
        for row, before, waited in zip(rows, stored, pending, strict=True)
        if (row.problem_code, row.problem, row.pending) != (before.code, before.text, waited)
    ]
    if changed:
        ObservedObject.objects.bulk_update(changed, ["problem_code", "problem", "pending"])
    return sum(bool(row.problem_code) for row in rows)


def _ingested(context: SyncContext, handler: Handler, batch: Sequence[ParsedObject]) -> None:
    for parsed_object in batch:
        parsed_object.row.pending, parsed_object.row.problem_code, parsed_object.row.problem = (
            False,
            "",
            "",
        )
    handler.ingest(context, batch)


def forget(context: SyncContext, handler: Handler, ids: Sequence[int]) -> int:
    """Objects that are gone for good; how many could not be forgotten, which are tried again."""
    if not ids:
        return 0

    def forgotten(batch: Sequence[ObservedObject]) -> None:
        handler.forget(context, batch)
        ObservedObject.objects.filter(pk__in=[row.pk for row in batch]).delete()

    failed = 0
    for first in range(0, len(ids), storage.BATCH):

        def work(some: Sequence[int] = ids[first : first + storage.BATCH]) -> int:
            with context.holding():
                rows = list(ObservedObject.objects.filter(pk__in=some).order_by("pk"))
                failures = halving(rows, forgotten)
                for row, error in failures:
                    problem = _problem(error, handler.kind)
                    ObservedObject.objects.filter(pk=row.pk).update(
                        problem_code=problem.code, problem=problem.text
                    )
                return len(failures)

        failed += database.with_retries(work)
    return failed


def halving(batch: Sequence[T], work: Callable[[Sequence[T]], None]) -> list[tuple[T, Exception]]:
    """Do the work on all at once; when it fails, on the halves, until each culprit stands alone."""
    if not batch:
        return []
    try:
        with transaction.atomic():
            work(batch)
    except _STOPS:
        raise
    except _CULPRITS as error:
        if len(batch) == 1:
            return [(batch[0], error)]
        middle = len(batch) // 2
        return [*halving(batch[:middle], work), *halving(batch[middle:], work)]
    return []


def _problem(error: Exception, kind: str) -> ObjectProblem:
    if isinstance(error, errors.IpamError):
        details = "; ".join(f"{problem.field}: {problem.message}" for problem in error.problems)
        return ObjectProblem(error.code[:63], _printable(details or error.message))
    if isinstance(error, DatabaseError):
        code = database.constraint(error) or "database_error"
        return ObjectProblem(code[:63], _printable(str(error).split("\n", 1)[0]))
    log.error("an object of kind %s could not be taken in", kind, exc_info=error)
    return ObjectProblem("internal_error", f"{type(error).__name__}: see the log of the worker")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:1000])
