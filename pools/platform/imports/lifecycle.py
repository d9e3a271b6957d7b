"""What users do with an import: correct, commit, undo or discard it, and have it validated again.

A small import is committed and undone in the request. A large one is a row that waits for a worker
(pools/platform/imports/worker.py); the edges notify the workers, and a lost message delays it by some seconds.
Drafting, committing and undoing are one transaction each, so that no import is written in part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet

from pools.core import errors
from pools.models import Clock
from pools.models.imports import WAITING, Import, ImportFile, ImportStatus as Status
from pools.platform import advisory_locks, database, events
from pools.platform.imports import states

Row = TypeVar("Row", bound=Import)
Step = Callable[[int], None]  # called with the number of rows done
Upload = tuple[
    str, bytes
]  # the name of a file, and its content; what was pasted or sent as rows has no name
_PAUSE = timedelta(seconds=10)  # from the start of an attempt to the next one, times their number

KINDS: dict[str, Imports[Any]] = {}  # by the kind of an import; the apps' extensions fill it


class Certainty(IntEnum):
    """How sure a kind of imports is of what it reads."""

    COLUMNS = 1  # that several kinds have
    TABLE = 2  # of the kind
    PRODUCT = 3  # by words that only its files have


@dataclass(frozen=True)
class Recognition:
    """What a kind of imports reads an upload as: a format, and what it knows it by: `the columns VM, MAC`."""

    format: str
    certainty: Certainty
    evidence: str


def ignore_progress(_rows_done: int) -> None:
    """The step of an import that is processed in the request."""


def due_imports() -> list[int]:
    """Return the ids of the first 100 imports that wait for a worker, or that a worker may have left.

    An import that is being processed is due, too, after a while: its lock turns other workers away.
    """
    pause = ExpressionWrapper(F("tries") * _PAUSE, output_field=DurationField())
    due = Q(tries=0) | Q(started_at__lt=Clock() - pause)
    rows = Import.objects.filter(WAITING, due).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:100])


class Imports(ABC, Generic[Row]):
    """One kind of imports: how its rows are read, validated, written and undone.

    Those who may act for a part of the register only are checked by `admit`; other kinds ignore `user`.
    """

    model: type[Row]
    several_files: ClassVar[bool] = False
    related: ClassVar[tuple[str, ...]] = ("cluster", "user")
    # Errors of a commit after which the import is a draft again; by others it has failed.
    refusals: ClassVar[tuple[type[errors.IpamError], ...]] = (errors.ImportHasBadRows,)

    # --- what a kind says -------------------------------------------------------------------------

    def permission(self, verb: str) -> str:
        """Return the permission to `view`, `add` or `change` imports of the kind."""
        meta = self.model._meta
        return f"{meta.app_label}.{verb}_{meta.model_name}"

    def permits(self, user: Any, verb: str) -> bool:
        return bool(user.has_perm(self.permission(verb)))

    @abstractmethod
    def recognise(self, name: str, content: bytes) -> Recognition:
        """Return what the kind reads a file or a pasted text as. Raises InvalidInput if it cannot."""

    def admit(self, row: Row, user: Any) -> None:
        """Raise NotAllowed if the user may not change the import."""

    def prepare(self, row: Row) -> None:
        """Check the options of a new import that is not saved yet. Raises InvalidInput, NotAllowed."""

    @abstractmethod
    def read_small(self, row: Row, uploads: Sequence[Upload]) -> Any:
        """Return what was uploaded, for `store`; None if there is so much of it that a worker reads it. Raises InvalidInput."""

    @abstractmethod
    def read(self, row: Row, uploads: Sequence[Upload]) -> Any:
        """Return what was uploaded, for `store`. Raises IpamError."""

    @abstractmethod
    def store(self, row: Row, reading: Any, step: Step) -> None:
        """Store and validate the rows of an import, delete its upload, and mark it as drafted."""

    @abstractmethod
    def revalidate_rows(self, row: Row) -> None:
        """Validate the rows of a draft against the register, and mark it as drafted."""

    def revalidate_with(
        self,
        row: Row,
        numbers: Collection[int],  # noqa: ARG002  # a kind may validate fewer rows
    ) -> None:
        """Validate these rows of a draft, and at least those that they affect, and mark it as drafted."""
        self.revalidate_rows(row)

    @abstractmethod
    def correct(self, row: Row, /, number: int, values: Mapping[str, Any]) -> None:
        """Correct a row of a draft, and validate what depends on it. Raises NotFound."""

    @abstractmethod
    def write(self, row: Row, /, *, author: events.Author, step: Step) -> dict[str, int]:
        """Write the new and the changed rows, and return the number of rows by status.

        Raises ImportHasBadRows (unless `skip_bad`) and other refusals.
        """

    @abstractmethod
    def take_back(self, row: Row, /, *, author: events.Author, step: Step) -> None:
        """Remove what the import created, and restore what it changed. Raises ImportInUse."""

    @abstractmethod
    def check_not_in_use(self, row: Row, /) -> None:
        """Raise ImportInUse if somebody uses or has changed what the import wrote."""

    def discard(self, row: Row) -> None:
        """Delete the rows and the upload of an import that failed or was cancelled."""
        row.rows.all().delete()
        ImportFile.objects.filter(source_import=row).delete()

    # --- steps in the caller's transaction --------------------------------------------------------

    def commit_rows(self, row: Row, *, author: events.Author, step: Step = ignore_progress) -> None:
        """Commit a draft. Raises what `write` raises."""
        author = states.import_author(row, author)
        with events.recorded_by(author):
            row.counts = self.write(row, author=author, step=step)
        states.mark_committed(row)

    def undo_rows(self, row: Row, *, author: events.Author, step: Step = ignore_progress) -> None:
        """Undo a committed import. Raises ImportInUse and what `take_back` raises."""
        author = states.import_author(row, author)
        with events.recorded_by(author):
            self.take_back(row, author=author, step=step)
            row.rows.filter(written=True).update(written=False)
        states.mark_undone(row)

    def mark_cancelled(self, import_id: int, author: events.Author) -> None:
        """Set the status of an import to cancelled, and delete its rows and its upload."""
        with events.recorded_by(author):
            self._rows().filter(pk=import_id).update(status=Status.CANCELLED, cancel_wanted=True)
            self.discard(self._rows().get(pk=import_id))

    def mark_failed(self, row: Row, code: str, message: str) -> None:
        """Record why a step of a worker failed.

        After an undo the import stays committed; else it has failed, and its rows and its upload are deleted.
        """
        self._rows().filter(pk=row.pk).update(
            status=row.status if row.undo_wanted else Status.FAILED,
            tries=0,
            undo_wanted=False,
            error_code=code[:63],
            error=message[:1000],
        )
        if not row.undo_wanted:
            self.discard(row)

    # --- for workers ------------------------------------------------------------------------------

    def _rows(self) -> QuerySet[Row]:
        rows: QuerySet[Any] = self.model._default_manager.select_related(*self.related)
        return rows

    def waiting(self, import_id: int) -> Row | None:
        """Return an import if it has a step for a worker."""
        return self._rows().filter(WAITING, pk=import_id).first()

    # --- actions of users -------------------------------------------------------------------------

    def visible(self, _user: Any) -> QuerySet[Row]:
        """Return the imports that a user may see, who may see imports at all."""
        return self._rows()

    def get(self, import_id: int) -> Row:
        return self._rows().get(pk=import_id)

    def lock(self, import_id: int, *expected: Status, user: Any = None) -> Row:
        """Return an import with its row locked. Raises ImportState unless its status is expected, NotAllowed."""
        row = self._rows().select_for_update(of=("self",)).get(pk=import_id)
        if row.status not in expected:
            labels = " or ".join(str(status.label) for status in expected)
            status = Status(row.status).label
            raise errors.ImportState(f"Status of the import: {status}; required: {labels}.")
        if user is not None:
            self.admit(row, user)
        return row

    @contextmanager
    def changing(self, import_id: int, *, author: events.Author, user: Any = None) -> Iterator[Row]:
        """Open a transaction that changes a draft. Raises ImportState, NotAllowed."""
        with events.recorded_by(author):
            yield self.lock(import_id, Status.DRAFTED, user=user)

    def commit(
        self, import_id: int, *, skip_bad: bool = False, author: events.Author, user: Any = None
    ) -> Row:
        """Commit a draft, or with `skip_bad` all but its bad rows; a large draft waits for a worker.

        Raises ImportState, NotAllowed, and what `write` raises.
        """
        try:
            with self.changing(import_id, author=author, user=user) as row:
                row.skip_bad = skip_bad
                if states.is_large(row):
                    states.check_rows(row, row.counts)
                    states.queue(row, author, status=Status.COMMITTING, skip_bad=skip_bad)
                else:
                    self.commit_rows(row, author=author)
        except errors.ImportHasBadRows:
            if not states.is_large(row):  # the draft shows which, also those that were good before
                self.revalidate(import_id, author=author, user=user)
            raise
        return self.get(import_id)

    def create(self, uploads: Sequence[Upload], row: Row, *, author: events.Author) -> Row:
        """Save a new import with its options: small uploads become a draft, large ones wait for a worker.

        With `commit_wanted` a small draft is committed at once; if it has bad rows it stays a draft with the error.
        Raises NotAllowed, and InvalidInput for what cannot be read; then no import is created.
        """
        if len(uploads) > 1 and not self.several_files:
            message = f"{self.model._meta.verbose_name_plural} take one file at a time: choose one of them"
            raise errors.InvalidInput.for_field("file", "repeated", message)
        for name, value in states.author_fields(author).items():
            setattr(row, name, value)
        self.prepare(row)
        row.file_name = ", ".join(filter(None, (name for name, _ in uploads)))[:255]
        reading = self.read_small(row, uploads)
        with events.recorded_by(author):
            row.save()
            if reading is None:
                for name, content in uploads:
                    row.files.create(name=name[:255], content=content)
                return row
            self.store(row, reading, ignore_progress)
        return self.commit_if_wanted(row, author=author)

    def commit_if_wanted(self, row: Row, *, author: events.Author) -> Row:
        """Commit a new draft if its user wants that; with bad rows it stays a draft with the error."""
        if row.commit_wanted:
            try:
                self.commit(row.pk, skip_bad=row.skip_bad, author=author, user=row.user)
            except errors.ImportHasBadRows as error:
                states.record_error(row, error)
        return self.get(row.pk)

    def undo(self, import_id: int, *, author: events.Author, user: Any = None) -> Row:
        """Undo a committed import; a large one waits for a worker (`undo_wanted`).

        Raises ImportState, ImportInUse, NotAllowed, and what `take_back` raises.
        """
        with events.recorded_by(author):
            row = self.lock(import_id, Status.COMMITTED, user=user)
            if row.undo_wanted:
                raise errors.ImportState("The import is already being undone.")
            if states.is_large(row):
                self.check_not_in_use(row)
                states.queue(row, author, undo_wanted=True)
            else:
                self.undo_rows(row, author=author)
        return self.get(import_id)

    def cancel(self, import_id: int, *, author: events.Author, user: Any = None) -> Row:
        """Discard a draft, or stop an import before its commit, and delete its rows. Raises ImportState, NotAllowed."""
        with events.recorded_by(author):
            row = self.lock(import_id, *states.CANCELLABLE, user=user)
            is_idle = row.status in {Status.QUEUED, Status.DRAFTED}
            if is_idle or advisory_locks.try_lock(advisory_locks.IMPORT, import_id):
                self.mark_cancelled(import_id, author)
            else:  # its worker ends at the next step
                self._rows().filter(pk=import_id).update(cancel_wanted=True)
        return self.get(import_id)

    def revalidate(self, import_id: int, *, author: events.Author, user: Any = None) -> Row:
        """Validate a draft against the present state of the register. Raises ImportState, NotAllowed."""
        with self.changing(import_id, author=author, user=user) as row:
            self.revalidate_rows(row)
        return self.get(import_id)

    def correct_row(
        self,
        import_id: int,
        number: int,
        values: Mapping[str, Any],
        *,
        author: events.Author,
        user: Any = None,
        version: database.Version = None,
    ) -> Any:
        """Change source values of a row; it is parsed like a file, and what is still wrong is in its reasons.

        Raises NotFound, ImportState, NotAllowed, VersionMismatch.
        """
        with self.changing(import_id, author=author, user=user) as row:
            for corrected in row.rows.filter(number=number):
                database.require_version(corrected, version)
            self.correct(row, number, values)
        return row.rows.get(number=number)

    def skip_rows(
        self,
        import_id: int,
        numbers: Collection[int],
        *,
        skipped: bool,
        author: events.Author,
        user: Any = None,
    ) -> Row:
        """Skip rows, or include skipped rows again. Raises NotFound, ImportState, NotAllowed."""
        with self.changing(import_id, author=author, user=user) as row:
            if row.rows.filter(number__in=numbers).update(skipped=skipped) != len(set(numbers)):
                raise errors.NotFound("The import has no such row.")
            self.revalidate_with(row, numbers)
        return self.get(import_id)
