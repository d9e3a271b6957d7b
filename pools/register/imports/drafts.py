"""Imports of other registers: files become a stored draft, which users correct, commit and undo.

pools/platform/imports/lifecycle.py has what all imports share.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pools.core import errors
from pools.core.register_import import attributes as core_attributes
from pools.models import ImportStatus, RegisterImport, RegisterRow, RowStatus
from pools.platform import events
from pools.platform.imports import lifecycle, rows as stored_rows, states
from pools.register.imports import (
    attributes,
    commit,
    files,
    rows as import_rows,
    sources,
    topology,
    undo,
    vanished,
)

LARGE_FILE = 256 * 1024  # bytes from which a worker reads the files
# The fields that a correction may change; the others of a row say what it is.
CORRECTED = (
    *("prefix", "mask", "address", "first", "last", "status", "vrf", "cluster", "tenant", "site"),
    *("holder", "dns_name", "description", "pool", "tags", "owner"),
)


class RegisterImports(lifecycle.Imports[RegisterImport]):
    """Imports of other registers."""

    model = RegisterImport
    related = ("cluster", "user", "netbox_source")
    several_files = True
    recognise = staticmethod(files.recognise)
    write = staticmethod(commit.write)
    take_back = staticmethod(undo.take_back)
    check_not_in_use = staticmethod(undo.check_not_in_use)

    def prepare(self, row: RegisterImport) -> None:
        names = ("holder_kind", "cooldown_seconds")
        row.options = {name: getattr(row, name) for name in names}

    def read_small(
        self, row: RegisterImport, uploads: Sequence[lifecycle.Upload]
    ) -> files.Reading | None:
        if sum(len(content) for _, content in uploads) > LARGE_FILE:
            return None
        reading = self.read(row, uploads)
        return reading if len(reading.rows) <= states.SMALL else None

    def read(self, row: RegisterImport, uploads: Sequence[lifecycle.Upload]) -> files.Reading:
        source = row.netbox_source
        reading = sources.read(source) if source is not None else _new_reading()
        for name, content in uploads:
            files.read_file(name, content, reading)
        row.rows_total = len(reading.rows)
        return reading

    def store(self, row: RegisterImport, reading: files.Reading, step: lifecycle.Step) -> None:
        rows = import_rows.read_rows(row, reading.rows)
        step(len(rows) // 2)
        import_rows.save(rows)
        stored_rows.analyze()
        row.rows_total = row.rows_done = len(rows)
        row.format = reading.format
        row.notes = [*row.notes, *reading.notes]
        row.files.all().delete()
        states.mark_drafted(row, "rows_total", "rows_done", "format", "notes")

    def revalidate_rows(self, row: RegisterImport) -> None:
        """Resolve and validate all rows again."""
        import_rows.resolve_again(row)
        states.mark_drafted(row, "rows_total")

    def correct(self, row: RegisterImport, number: int, values: Mapping[str, Any]) -> None:
        """Change texts of a row (CORRECTED), and resolve it and the rows that depend on it again.

        With `alike` also those of all rows that have the same clusters to choose from.
        """
        texts = {name: text.strip() for name, text in values.items() if name != "alike"}
        numbers = {number}
        chosen = row.rows.filter(number=number).first()
        if values.get("alike") and chosen is not None and (names := candidates(chosen)):
            codes = [reason["code"] for reason in chosen.problems if "candidates" in reason]
            alike = [{"code": codes[0], "candidates": names}]
            numbers |= {*row.rows.filter(problems__contains=alike).values_list("number", flat=True)}
        rows = {line.number: line for line in row.rows.all()}
        if not numbers <= rows.keys():
            raise errors.NotFound("The import has no such row.")
        for line in (rows[number] for number in numbers):
            if import_rows.follows(line):
                raise errors.ImportState(
                    "The row follows from a row that is left out. Correct that one."
                )
            # Another value does not refer to the objects of the source.
            other = [name for name, text in texts.items() if text != line.texts.get(name, "")]
            stale = {core_attributes.reference_of(name): "" for name in other}
            merged = {**line.texts, **stale, **texts}
            line.texts = {name: text for name, text in merged.items() if text}
            line.corrected, line.skipped = True, False
        import_rows.resolve_again(row, rows.values(), numbers)
        states.mark_drafted(row, "rows_total")


def candidates(row: RegisterRow) -> list[str]:
    """Return the clusters or VRFs of which one has to be chosen for a row (topology.CHOSEN_FIELDS); [] for other rows."""
    return [name for reason in row.problems for name in reason.get("candidates", ())]


def chosen_field(row: RegisterRow) -> str:
    """Return the field of a row that one of its candidates is chosen for; "" for other rows."""
    codes = (reason["code"] for reason in row.problems)
    return next(
        (topology.CHOSEN_FIELDS[code] for code in codes if code in topology.CHOSEN_FIELDS), ""
    )


IMPORTS = RegisterImports()


def _new_reading() -> files.Reading:
    return files.Reading(custom_fields=attributes.column_names())


def change_mapping(
    import_id: int, mapping: Mapping[str, Mapping[str, int]], *, author: events.Author
) -> RegisterImport:
    """Send VRFs or sites of a draft to other clusters, and resolve all its rows again. Raises ImportState."""
    with IMPORTS.changing(import_id, author=author) as register_import:
        register_import.mapping |= {kind: dict(names) for kind, names in mapping.items()}
        register_import.save(update_fields=["mapping"])
        IMPORTS.revalidate_rows(register_import)
    return IMPORTS.get(import_id)


def confirm_vanished(
    import_id: int,
    numbers: Collection[int] | None = None,
    *,
    keep: bool = False,
    author: events.Author,
) -> RegisterImport:
    """Release objects that the source of a mirror lacks, by the numbers of their rows, or all; or `keep` them here.

    What is kept belongs to the mirror no longer. Raises ImportState, NotFound.
    """
    with events.recorded_by(author):
        register_import = IMPORTS.lock(import_id, ImportStatus.COMMITTED)
        rows = vanished.chosen_rows(register_import, numbers)
        chosen = list(rows.values_list("number", flat=True))
        if keep:
            vanished.forget(register_import, chosen)
            rows.delete()
        else:
            author = states.import_author(register_import, author)
            with events.recorded_by(author):
                vanished.release(register_import, chosen, author=author)
        counts = states.count_rows(register_import)
        for status in (RowStatus.VANISHED, RowStatus.RELEASED):
            register_import.counts.pop(status, None)
            register_import.counts |= {status: counts[status]} if counts.get(status) else {}
        register_import.save(update_fields=["counts"])
    return IMPORTS.get(import_id)
