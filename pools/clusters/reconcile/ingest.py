"""Ingest of observed objects: many in one transaction; an invalid object fails alone."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

from pools.clusters.reconcile import storage
from pools.clusters.reconcile.handler import (
    BUGS,
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
)
from pools.core import errors, redaction
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.leases import LeaseLost
from pools.platform.outbound import faults

log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")

# Errors of the database, not of an object; a serialization failure is retried as a whole.
DATABASE_AWAY = (OperationalError, InterfaceError)
OBJECT_ERRORS = (errors.IpamError, DatabaseError, *BUGS)
UNEXPECTED = ("internal_error", "database_error")  # codes of problems that are not the object's
STOPS = (LeaseLost, errors.ConnectionPaused, *DATABASE_AWAY)


class ObjectProblem(NamedTuple):
    """The problem of one object, as stored in its row."""

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
    """Ingest new or changed objects; return how many have a problem, which is stored in their row.

    With `new`, none of them has a row yet.
    """
    kind = storage.ObjectKind(context.cluster.pk, handler.kind, read.api_version)
    failed = 0
    for batch in storage.batches(manifests):

        def work(batch: list[storage.Item] = batch) -> int:
            parsed_by_id: dict[int, Any] = {}

            def parse(item: storage.Item) -> Any:
                if id(item) not in parsed_by_id:
                    parsed_by_id[id(item)] = _parse(handler, item.manifest)
                return parsed_by_id[id(item)]

            with context.transaction():
                rows = storage.store(kind, batch, new=new, meanwhile=parse)
                parsed = [parse(item) for item in batch]
                stored = [ObjectProblem(row.problem_code, row.problem) for row in rows]
                return _ingest_rows(context, handler, rows, parsed, stored=stored)

        failed += database.with_retries(work)
    return failed


def retry(context: SyncContext, handler: Handler, manifests: Sequence[Manifest]) -> int:
    """Ingest unchanged objects again: pending ones, and those with a problem; return how many have one.

    Rows without a change are not written.
    """
    failed = 0
    for first in range(0, len(manifests), storage.BATCH):
        batch = manifests[first : first + storage.BATCH]
        manifests_by_uid = {storage.identity(manifest)[0]: manifest for manifest in batch}

        def work(manifests_by_uid: dict[str, Manifest] = manifests_by_uid) -> int:
            with context.transaction():
                rows = list(
                    ObservedObject.objects.filter(
                        cluster=context.cluster, kind=handler.kind, uid__in=manifests_by_uid
                    ).defer("manifest")
                )
                stored = [ObjectProblem(row.problem_code, row.problem) for row in rows]
                parsed = []
                for row in rows:
                    row.manifest = manifests_by_uid[row.uid]
                    # Unstorable content is a problem, whatever the handler does.
                    row.problem_code = storage.UNSTORABLE * (row.problem_code == storage.UNSTORABLE)
                    parsed.append(_parse(handler, row.manifest))
                return _ingest_rows(context, handler, rows, parsed, stored=stored)

        failed += database.with_retries(work)
    return failed


def _parse(handler: Handler, manifest: Manifest) -> Any:
    try:
        return handler.parse(manifest)
    except (errors.IpamError, *BUGS) as error:
        metadata = manifest.get("metadata") or {}
        return describe_problem(
            error, f"{handler.kind} {metadata.get('namespace', '')}/{metadata.get('name')}"
        )


def _ingest_rows(
    context: SyncContext,
    handler: Handler,
    rows: Sequence[ObservedObject],
    parsed: Sequence[Any],
    *,
    stored: Sequence[ObjectProblem],
) -> int:
    """Ingest valid objects, then store changed problems and pending flags; return the number of problems."""
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
    for culprit, error in isolate_failures(
        good, lambda batch: _ingest_batch(context, handler, batch)
    ):
        problem = describe_problem(
            error, f"{handler.kind} {culprit.row.namespace}/{culprit.row.name}"
        )
        culprit.row.problem_code, culprit.row.problem = problem.code, problem.text
    for row in rows:
        row.problem = redaction.redact(row.problem)  # handlers quote what they read
    changed = [
        row
        for row, before, waited in zip(rows, stored, pending, strict=True)
        if (row.problem_code, row.problem, row.pending) != (before.code, before.text, waited)
    ]
    if changed:
        ObservedObject.objects.bulk_update(changed, ["problem_code", "problem", "pending"])
    if handler.problems_are_findings:
        return 0
    return sum(bool(row.problem_code) for row in rows)


def _ingest_batch(context: SyncContext, handler: Handler, batch: Sequence[ParsedObject]) -> None:
    for parsed_object in batch:
        parsed_object.row.pending, parsed_object.row.problem_code, parsed_object.row.problem = (
            False,
            "",
            "",
        )
    handler.ingest(context, batch)


def require_definition(context: SyncContext, read: Resource) -> None:
    """Raise KindNotServed if a server deletes objects together with their definition.

    What they stand for, such as a node with its blocks, may still be there (rule `unknown-is-not-absent`).
    """
    if not read.everywhere and not context.client.can_create(read):
        raise faults.KindNotServed(
            f"The cluster deletes the definition of {read.kind}. Nothing is released for the objects deleted with it."
        )


def forget(context: SyncContext, handler: Handler, ids: Sequence[int]) -> int:
    """Forget deleted objects; return the number of failures, which are retried."""
    if not ids:
        return 0

    def forget_batch(batch: Sequence[ObservedObject]) -> None:
        handler.forget(context, batch)
        ObservedObject.objects.filter(pk__in=[row.pk for row in batch]).delete()

    failed = 0
    for first in range(0, len(ids), storage.BATCH):

        def work(batch_ids: Sequence[int] = ids[first : first + storage.BATCH]) -> int:
            with context.transaction():
                rows = list(ObservedObject.objects.filter(pk__in=batch_ids).order_by("pk"))
                failures = isolate_failures(rows, forget_batch)
                for row, error in failures:
                    problem = describe_problem(error, f"{handler.kind} {row.namespace}/{row.name}")
                    ObservedObject.objects.filter(pk=row.pk).update(
                        problem_code=problem.code, problem=problem.text
                    )
                return len(failures)

        failed += database.with_retries(work)
    return failed


def isolate_failures(
    batch: Sequence[T], work: Callable[[Sequence[T]], None]
) -> list[tuple[T, Exception]]:
    """Run `work` on the batch; bisect a failing batch until each failing item is alone. Returns the failures."""
    if not batch:
        return []
    try:
        with transaction.atomic():
            work(batch)
    except STOPS:
        raise
    except OBJECT_ERRORS as error:
        if len(batch) == 1:
            return [(batch[0], error)]
        middle = len(batch) // 2
        return [*isolate_failures(batch[:middle], work), *isolate_failures(batch[middle:], work)]
    return []


@contextlib.contextmanager
def isolate_object(
    context: SyncContext, handler_kind: str, name: str, *, kind: str = ""
) -> Iterator[None]:
    """Let an error of the body affect this object only (rule `bad-object-fails-alone`).

    The object becomes the finding `object_failed` of the handler's kind; `kind` is the object's own one, if it
    is another. Errors of the cluster, the database or the lease are raised.
    """
    try:
        with savepoint():
            yield
    except (*STOPS, faults.ClusterFault):
        raise
    except OBJECT_ERRORS as error:
        record_failure(context, handler_kind, name, error, kind=kind)


def find_each(
    context: SyncContext,
    handler_kind: str,
    objects: Iterable[T],
    find: Callable[[T], Iterable[ReconcileFinding]],
    *,
    name: Callable[[T], str] = str,
) -> Iterator[ReconcileFinding]:
    """Yield the findings of each object; an object whose findings cannot be computed is one itself.

    Every loop over objects in `Handler.findings` is this one (rule `bad-object-fails-alone`).
    """

    def find_all(batch: Sequence[T]) -> Iterator[ReconcileFinding]:
        for item in batch:
            yield from find(item)

    yield from find_together(context, handler_kind, objects, find_all, name=name)


def find_together(
    context: SyncContext,
    handler_kind: str,
    objects: Iterable[T],
    find: Callable[[Sequence[T]], Iterable[R]],
    *,
    name: Callable[[T], str] = str,
) -> list[R]:
    """Return what `find` computes of many objects at once; of a failing batch only the culprits are left out."""
    found: list[R] = []
    remaining = iter(objects)
    while batch := list(itertools.islice(remaining, storage.BATCH)):
        failures = isolate_failures(batch, lambda part: found.extend(list(find(part))))
        for culprit, error in failures:
            record_failure(context, handler_kind, name(culprit), error)
    return found


def savepoint() -> contextlib.AbstractContextManager[object]:
    """Return a savepoint if a transaction is open, as in a dry run, so that it survives a failed statement."""
    return transaction.atomic() if connection.in_atomic_block else contextlib.nullcontext()


def record_failure(
    context: SyncContext, handler_kind: str, name: str, error: Exception, *, kind: str = ""
) -> None:
    """Record that an object failed alone; it becomes the finding `object_failed`."""
    subject = f"{kind} {name}" if kind else name
    problem = describe_problem(error, f"{kind or handler_kind} {name}")
    context.failures.setdefault(handler_kind, {})[subject] = problem.text


def describe_problem(error: Exception, name: str) -> ObjectProblem:
    """Return an error as the problem of the object of this name."""
    if isinstance(error, errors.IpamError):
        details = "; ".join(f"{problem.field}: {problem.message}" for problem in error.problems)
        return ObjectProblem(error.code[:63], _printable(details or error.message))
    if isinstance(error, DatabaseError):
        code = database.constraint(error) or "database_error"
        return ObjectProblem(code[:63], _printable(str(error).split("\n", 1)[0]))
    log.error("%s could not be processed", name, exc_info=error)
    return ObjectProblem("internal_error", f"{type(error).__name__}: see the log of the worker")


def _printable(text: str) -> str:
    text = redaction.redact(text)
    return "".join(char if char.isprintable() else " " for char in text[:1000])
