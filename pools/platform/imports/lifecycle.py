"""What users do with an import: correct, commit, undo or discard it, and have it validated again.

A small import is committed and undone in the request. A large one is a row that waits for a worker
(pools/platform/imports/worker.py); the edges notify the workers, and a lost message delays it by some seconds.
Drafting, committing and undoing are one transaction each, so that no import is written in part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import QuerySet

from pools.core import errors
from pools.models.fields import Now
from pools.models.register_imports import Import
from pools.models.register_imports import ImportStatus as Status
from pools.platform import events, versions
from pools.platform.imports import states
from pools.platform.imports.leases import ImportLeases

Row = TypeVar("Row", bound=Import)
Step = Callable[[int], None]  # called with the number of rows done


def ignore_progress(_rows_done: int) -> None:
    """The step of an import that is processed in the request."""


class Imports(ABC, Generic[Row]):
    """One kind of imports: how its rows are read, validated, written and undone.

    Those who may act for a part of the register only are checked by `admit`; other kinds ignore `user`.
    """

    model: type[Row]
    leases: ImportLeases
    related: ClassVar[tuple[str, ...]] = ("cluster", "user")
    # Errors of a commit after which the import is a draft again; by others it has failed.
    refusals: ClassVar[tuple[type[errors.IpamError], ...]] = (errors.ImportHasBadRows,)

    # --- what a kind says -------------------------------------------------------------------------

    def admit(self, row: Row, user: Any) -> None:
        """Raise NotAllowed if the user may not change the import."""

    @abstractmethod
    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Return the rows of imports that contain a text."""

    @abstractmethod
    def read(self, row: Row) -> Any:
        """Return what was uploaded, for `store`. Raises IpamError."""

    @abstractmethod
    def store(self, row: Row, reading: Any, step: Step) -> None:
        """Store and validate the rows of an import, delete its upload, and mark it as drafted."""

    @abstractmethod
    def revalidate_rows(self, row: Row) -> None:
        """Validate the rows of a draft against the register, and mark it as drafted."""

    @abstractmethod
    def correct(self, row: Row, /, number: int, values: Mapping[str, Any]) -> None:
        """Correct a row of a draft, and validate what depends on it. Raises NotFound."""

    @abstractmethod
    def skip(self, row: Row, /, numbers: Collection[int], *, skipped: bool) -> None:
        """Skip rows of a draft, or include skipped rows again. Raises NotFound."""

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

    def transaction(self, author: events.Author) -> AbstractContextManager[None]:
        """Return the transaction in which a worker drafts, commits or undoes an import."""
        return events.recorded_by(author)

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
        states.mark_undone(row)

    def mark_cancelled(self, import_id: int, author: events.Author) -> None:
        """Set the status of an import to cancelled, and delete its rows and its upload."""
        with events.recorded_by(author):
            self._rows().filter(pk=import_id).update(
                status=Status.CANCELLED, leased_until=None, cancel_wanted=True
            )
            self.leases.discard(import_id)

    # --- actions of users -------------------------------------------------------------------------

    def _rows(self) -> QuerySet[Row]:
        return self.model._default_manager.all()

    def visible(self, _user: Any) -> QuerySet[Row]:
        """Return the imports that a user may see, who may see imports at all."""
        return self._rows().select_related(*self.related)

    def get(self, import_id: int) -> Row:
        return self._rows().select_related(*self.related).get(pk=import_id)

    def lock(self, import_id: int, *expected: Status, user: Any = None) -> Row:
        """Return an import with its row locked. Raises ImportState unless its status is expected, NotAllowed."""
        rows = self._rows().select_for_update(of=("self",)).select_related(*self.related)
        row = rows.get(pk=import_id)
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
        with self.changing(import_id, author=author, user=user) as row:
            row.skip_bad = skip_bad
            if states.is_large(row):
                states.check_rows(row, row.counts)
                states.queue(row, author, status=Status.COMMITTING, skip_bad=skip_bad)
            else:
                self.commit_rows(row, author=author)
        return self.get(import_id)

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
            rows = self._rows().filter(pk=import_id)
            rows.update(cancel_wanted=True)
            idle = rows.exclude(leased_until__gt=Now())
            if row.status in {Status.QUEUED, Status.DRAFTED} or idle.exists():
                self.mark_cancelled(import_id, author)
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
        version: versions.Version = None,
    ) -> Any:
        """Change source values of a row; it is parsed like a file, and what is still wrong is in its reasons.

        Raises NotFound, ImportState, NotAllowed, VersionMismatch.
        """
        with self.changing(import_id, author=author, user=user) as row:
            for corrected in row.rows.filter(number=number):
                versions.require(corrected, version)
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
            self.skip(row, numbers, skipped=skipped)
        return self.get(import_id)
