"""Imports of other registers: files become a stored draft, which users correct, commit and undo.

A small import is drafted and committed in the request; a large one is a row that waits for a worker. Drafting
and committing are one transaction each, so that no import is written in part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pools.core import errors
from pools.models import Cluster, RegisterFile, RegisterImport, RegisterRow
from pools.models.fields import Now
from pools.models.pools import DAY
from pools.models.register_imports import ImportStatus as Status
from pools.platform import events
from pools.register.imports import commit as import_commit
from pools.register.imports import files, states, validation
from pools.register.imports import rows as import_rows
from pools.register.imports import undo as import_undo

SMALL = 2_000  # most rows of an import that is drafted and committed in the request
LARGE_FILE = 256 * 1024  # bytes from which a worker reads the files
# The fields that a correction may change; the others of a row say what it is.
CORRECTED = (
    "prefix",
    "mask",
    "address",
    "first",
    "last",
    "status",
    "vrf",
    "cluster",
    "tenant",
    "site",
    "holder",
    "dns_name",
    "description",
    "pool",
)


@dataclass(frozen=True)
class ImportOptions:
    """Where an import goes and what is done with it; `mapping` is `{"vrf": {name: cluster id}, "site": {…}}`."""

    cluster: Cluster
    mapping: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    holder_kind: str = "host"
    cooldown_seconds: int = DAY
    commit: bool = False
    skip_bad: bool = False
    user: Any = None


def create(
    uploads: Sequence[tuple[str, bytes]], options: ImportOptions, *, author: events.Author
) -> RegisterImport:
    """Create an import of files (name, content): small ones become a draft, large ones wait for a worker.

    With `options.commit` a draft without bad rows is committed at once. Raises InvalidInput for a file that
    cannot be read; then no import is created.
    """
    register_import = RegisterImport(
        cluster=options.cluster,
        mapping={kind: dict(names) for kind, names in options.mapping.items()},
        holder_kind=options.holder_kind,
        cooldown_seconds=options.cooldown_seconds,
        file_name=", ".join(name for name, _ in uploads)[:255],
        commit_wanted=options.commit,
        skip_bad=options.skip_bad,
        user=options.user,
        actor=author.actor,
        source=author.source,
        request_id=author.request_id,
    )
    is_large = sum(len(content) for _, content in uploads) > LARGE_FILE
    reading = files.Reading()
    if not is_large:
        for name, content in uploads:
            files.read_file(name, content, reading)
        is_large = len(reading.rows) > SMALL
    with events.recorded_by(author):
        register_import.save()
        if is_large:
            for name, content in uploads:
                RegisterFile.objects.create(
                    register_import=register_import, name=name[:255], content=content
                )
            return register_import
        states.store_draft(register_import, reading)
    if options.commit:
        try:
            commit(register_import.pk, skip_bad=options.skip_bad, author=author)
        except errors.ImportHasBadRows as error:
            states.record_error(register_import.pk, error)
    return get(register_import.pk)


def get(import_id: int) -> RegisterImport:
    return RegisterImport.objects.select_related("cluster", "user").get(pk=import_id)


def lock_import(import_id: int, *expected: Status) -> RegisterImport:
    """Return the import with its row locked. Raises ImportState unless its status is one of `expected`."""
    rows = RegisterImport.objects.select_for_update(of=("self",)).select_related("cluster")
    register_import = rows.get(pk=import_id)
    if register_import.status not in expected:
        labels = " or ".join(str(status.label) for status in expected)
        raise errors.ImportState(
            f"Status of the import: {register_import.get_status_display()}; required: {labels}."
        )
    return register_import


def is_large(register_import: RegisterImport) -> bool:
    return (register_import.rows_total or 0) > SMALL


def commit(import_id: int, *, skip_bad: bool = False, author: events.Author) -> RegisterImport:
    """Commit a draft, or with `skip_bad` all but its bad rows; a large draft waits for a worker.

    Raises ImportState, ImportHasBadRows.
    """
    with events.recorded_by(author):
        register_import = lock_import(import_id, Status.DRAFTED)
        register_import.skip_bad = skip_bad
        counts = register_import.counts
        if is_large(register_import):
            if not skip_bad and (counts["conflict"] or counts["refused"]):
                raise states.bad_rows_error(counts)
            states.queue(register_import, author, status=Status.COMMITTING, skip_bad=skip_bad)
        else:
            register_import.counts = import_commit.commit_draft(
                register_import, author=author, step=lambda _: None
            )
            states.mark_committed(register_import)
    return get(import_id)


def undo(import_id: int, *, author: events.Author) -> RegisterImport:
    """Undo a committed import; a large one waits for a worker. Raises ImportState, ImportInUse."""
    with events.recorded_by(author):
        register_import = lock_import(import_id, Status.COMMITTED)
        if register_import.undo_wanted:
            raise errors.ImportState("The import is already being undone.")
        if is_large(register_import):
            import_undo.check_not_in_use(register_import)
            states.queue(register_import, author, undo_wanted=True)
        else:
            import_undo.undo(register_import, author=author, step=lambda _: None)
            states.mark_undone(register_import)
    return get(import_id)


def cancel(import_id: int, *, author: events.Author) -> RegisterImport:
    """Discard a draft, or stop an import before its commit, and delete its rows. Raises ImportState."""
    cancellable = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
    with events.recorded_by(author):
        register_import = lock_import(import_id, *cancellable)
        RegisterImport.objects.filter(pk=import_id).update(cancel_wanted=True)
        idle = RegisterImport.objects.filter(pk=import_id).exclude(leased_until__gt=Now())
        if register_import.status in {Status.QUEUED, Status.DRAFTED} or idle.exists():
            states.mark_cancelled(import_id, author)
    return get(import_id)


def revalidate(import_id: int, *, author: events.Author) -> RegisterImport:
    """Validate a draft against the current state of the register. Raises ImportState."""
    with events.recorded_by(author):
        states.revalidate(lock_import(import_id, Status.DRAFTED))
    return get(import_id)


def change_mapping(
    import_id: int, mapping: Mapping[str, Mapping[str, int]], *, author: events.Author
) -> RegisterImport:
    """Send VRFs and sites of a draft to other clusters, and resolve all its rows again. Raises ImportState."""
    with events.recorded_by(author):
        register_import = lock_import(import_id, Status.DRAFTED)
        register_import.mapping = {kind: dict(names) for kind, names in mapping.items()}
        register_import.save(update_fields=["mapping"])
        states.revalidate(register_import)
    return get(import_id)


# --- corrections ----------------------------------------------------------------------------------


def correct_row(
    import_id: int, number: int, values: Mapping[str, str], *, author: events.Author
) -> RegisterRow:
    """Change texts of a row (CORRECTED), and resolve it and the rows that depend on it again.

    A correction is parsed like a file: what is still wrong is in the row's reasons. Raises NotFound,
    ImportState.
    """
    texts = {name: text.strip() for name, text in values.items()}
    return _revise(import_id, [number], author, texts=texts)[0]


def skip_rows(
    import_id: int, numbers: Collection[int], *, skipped: bool, author: events.Author
) -> RegisterImport:
    """Skip rows, or include skipped rows again. Raises NotFound, ImportState."""
    _revise(import_id, numbers, author, skipped=skipped)
    return get(import_id)


def _revise(
    import_id: int,
    numbers: Collection[int],
    author: events.Author,
    *,
    texts: Mapping[str, str] | None = None,
    skipped: bool = False,
) -> list[RegisterRow]:
    with events.recorded_by(author):
        register_import = lock_import(import_id, Status.DRAFTED)
        register_import.fingerprint = import_rows.fingerprint(register_import)
        rows = import_rows.load(register_import)
        chosen = [row for row in rows if row.number in set(numbers)]
        if len(chosen) != len(set(numbers)):
            raise errors.NotFound("The import has no such row.")
        for row in chosen:
            row.skipped = skipped
            if texts is not None:
                merged = {**row.texts, **texts}
                row.texts = {name: text for name, text in merged.items() if text}
                row.corrected = True
        changed = {row.number: row for row in import_rows.reread(rows, register_import)}
        changed |= {row.number: row for row in chosen}
        import_rows.save(list(changed.values()))
        validation.validate(register_import, list(changed))
        states.mark_drafted(register_import)
    return list(RegisterRow.objects.filter(register_import=register_import, number__in=numbers))
