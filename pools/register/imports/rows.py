"""Rows of an import: read from the source, resolved to a cluster and an address space, compared with the register."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pools.core import errors
from pools.core.register_import import attributes as core_attributes, parsing
from pools.models import Block, RegisterImport, RegisterRecord, RegisterRow
from pools.models.blocks import BlockState
from pools.platform.imports import rows as stored_rows
from pools.register.imports import attributes, comparison, topology
from pools.register.imports.files import SourceRow

_LONGEST_PLACE = 255  # of a file and its sheet


def read_rows(
    register_import: RegisterImport, source_rows: Iterable[SourceRow]
) -> list[RegisterRow]:
    """Return the rows of a source, parsed, resolved and compared with the register, and those that follow from them."""
    destinations = topology.Destinations(register_import)
    rows = []
    for number, source_row in enumerate(source_rows, start=1):
        row = RegisterRow(
            source_import=register_import,
            number=number,
            file=source_row.file[:_LONGEST_PLACE],
            line=source_row.line,
            texts=source_row.texts,
            values={"kind": source_row.kind},
        )
        interpret(row, destinations)
        rows.append(row)
    added = topology.resolve(rows, destinations)
    _check_attributes(rows)
    rows += added
    comparison.compare(register_import, rows)
    comparison.refuse(rows)
    return rows


def interpret(row: RegisterRow, destinations: topology.Destinations) -> None:
    """Set the values that follow from the row's own texts."""
    parsed = parsing.parse_row(row.kind, row.texts)
    problems = list(parsed.problems)
    row.values = {"kind": row.kind}
    try:
        row.cluster_id, row.space_name = destinations.locate(parsed)
    except errors.InvalidInput as error:
        problems += error.problems
    for name in _PARSED:
        setattr(row, name, getattr(parsed, name))
    if row.kind == "prefix" and row.first is not None:
        row.pool_name = parsed.pool_name or default_pool_name(str(row.cidr), row.space_name)
    row.problems = [_reason(problem) for problem in (*problems, *parsed.remarks)]
    row.verdict = "invalid" if problems else ""


_PARSED = ("target", "cidr", "first", "last", "holder_id", "org", "description", "details")


def _check_attributes(rows: Iterable[RegisterRow]) -> None:
    """Add to prefixes which of their tags and custom fields have no place here."""
    definitions = attributes.definitions()
    for row in rows:
        if row.target in definitions and any(map(core_attributes.is_attribute, row.details)):
            _, problems = core_attributes.read_attributes(row.details, definitions[row.target])
            row.problems = [*row.problems, *map(_reason, problems)]
            # Known by the record, a field that is defined later makes the row a changed one.
            if unset := {problem.field for problem in problems} - {"tags"}:
                row.details["unset"] = ",".join(sorted(unset))


def _reason(problem: errors.FieldProblem) -> dict[str, str]:
    text = f"{problem.field}: {problem.message}" if problem.field else problem.message
    return {"code": problem.code, "message": text}


def default_pool_name(cidr: str, vrf: str) -> str:
    """Return a name that is valid in Kubernetes and unique in a cluster: `10.0.0.0-24`, with the VRF if it has one."""
    name = cidr.replace(":", "-").replace("/", "-").strip("-")
    slug = "".join(char if char.isascii() and char.isalnum() else "-" for char in vrf.lower())
    return f"{name}.{slug.strip('-') or 'vrf'}"[:253] if vrf else name


def resolve_again(
    register_import: RegisterImport,
    rows: Collection[RegisterRow] | None = None,
    corrected: Collection[int] | None = None,
) -> None:
    """Resolve and validate all rows by what the register has now, and store those that change.

    With the numbers of `corrected` rows, only these and the rows that change with them are compared with the register. Rows
    that follow from others are made anew: those that nothing needs any more are deleted.
    """
    rows = list(register_import.rows.all()) if rows is None else rows
    before = {row.number: _state(row) for row in rows if row.number not in (corrected or ())}
    destinations = topology.Destinations(register_import)
    of_source = [row for row in rows if not follows(row)]
    for row in of_source:
        interpret(row, destinations)
    stored = [row for row in rows if follows(row)]
    skipped = {_place(row) for row in stored if row.skipped}
    added = topology.resolve(of_source, destinations)
    _check_attributes(of_source)
    for row in added:
        row.skipped = _place(row) in skipped
    needless = {row.number for row in stored} - {row.number for row in added}
    register_import.rows.filter(number__in=needless).delete()
    rows = of_source + added
    register_import.rows_total = len(rows)
    changed = [row for row in rows if corrected is None or _state(row) != before.get(row.number)]
    comparison.compare(register_import, changed)
    comparison.refuse(rows)
    save([row for row in rows if _state(row) != before.get(row.number)])


_RESULTS = ("status", "reasons", "object_id", "before")


def _state(row: RegisterRow) -> tuple[Any, ...]:
    return (*stored_rows.state(row), *(getattr(row, name) for name in _RESULTS))


def save(rows: Iterable[RegisterRow]) -> None:
    """Store rows with the results of their comparison."""
    stored_rows.save(rows, *_RESULTS)


def follows(row: RegisterRow) -> bool:
    """Return True for a row that follows from others of the import (left_out.py)."""
    return "left_out" in row.texts


def _place(row: RegisterRow) -> tuple[Any, ...]:
    return row.cluster_id, row.space_name, row.target, row.first, row.last


def record_of(block: Block) -> Mapping[str, Any] | None:
    """Return the description and the details of a held address; None if no import said anything about its holder."""
    if block.state != BlockState.HELD:
        return None
    address = block.cidr.network_address
    records = RegisterRecord.objects.filter(
        space=block.space_id, target=parsing.HELD, first=address, holder_id=block.holder_id
    )
    return records.exclude(description="", details={}).values("description", "details").first()
