"""Import files: RVTools, MTV's inventory, PowerCLI, the template, lists, IPPools and IPAMClaims.

The type of a file is detected by its content, never by its name. An unusable file raises InvalidInput with
a code: when it is opened, or while its rows are read if a workbook or an archive shows the error only
then. Errors of single rows are in their problems.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from claims.core import ippool
from claims.core.ipamclaims import ipamclaim
from claims.core.vm_import import (
    cells,
    columns,
    inventory,
    other_inventories,
    tables,
    vm_interface,
)
from claims.core.vm_import.columns import ColumnLayout
from claims.core.vm_import.vm_interface import Skipped, VMInterface, problem
from pools.core import errors
from pools.core.errors import FieldProblem
from pools.core.spreadsheet_cells import Row
from pools.platform import documents
from pools.platform.files import archives, tables as file_tables
from pools.platform.files.archives import file_error
from pools.platform.files.tables import Table, Tables, Text
from pools.platform.imports.lifecycle import Certainty, Recognition, Upload

LARGEST = archives.LARGEST
MOST_ROWS = 100_000
_MOST_NAMES = 200  # of the objects of a JSON table
_MOST_ITEMS = 1000  # list items in which duplicate keys of entries are accepted
_REPEATABLE = frozenset({ippool.ENTRIES})
_REPEATABLE_IN_LISTS = _REPEATABLE | {
    ("items", str(n), *ippool.ENTRIES) for n in range(_MOST_ITEMS)
}
# A document mark, a field of a manifest; as other tools write it, a field of lines below it, or an item with two fields.
_YAML = re.compile(
    r"(?:---|[\"']?(?:apiVersion|kind|metadata|spec|items)[\"']?\s*:)(?:\s|$)"
    r"|\w+:\s*(?:true|false)?\n\s*(?:-\s|\w+:(?:\s|$))|-\s+\w+:(?:\s.*)?\n\s+\w+:(?:\s|$)"
)
_FIELDS = ("vm", "mac", "ips", "network", "namespace", "note")
_FORMATS = {ippool.KIND: "ippool-yaml", ipamclaim.KIND: "ipamclaim-yaml"}
_MOST_INTERFACES = MOST_ROWS  # a row may have several interfaces
_MOST_LINES = 1_048_576  # of a text, including blank lines; the row limit of a sheet
_FAMILIES = {
    columns.VNETWORK: "rvtools",
    columns.VINFO: "rvtools",
    columns.TEMPLATE: "template",
}
_VINFO_ONLY = FieldProblem(
    "file",
    "vinfo_only",
    "vInfo has no MAC addresses, so its rows cannot be imported: export the tab vNetwork",
)

Source = Callable[[Skipped], Iterator[VMInterface]]
_Tables = Sequence[Table[ColumnLayout]]


@dataclass
class FileReading:
    """A recognised file, ready for reading.

    `total` is the number of rows, if known; for a workbook the one that it declares. `notes` are the
    assumptions made about the file. `skipped` counts the rows without a VM by reason (blank, header,
    template, srm_placeholder, vcls, guest_only_interface) while `rows` is read.
    """

    format: str
    _source: Source
    total: int | None = None
    notes: tuple[FieldProblem, ...] = ()
    layout: ColumnLayout | None = None  # of a table
    skipped: Skipped = field(default_factory=Skipped)

    def rows(self) -> Iterator[VMInterface]:
        """Yield the VM interfaces of the file; each call reads it from the start.

        Raises InvalidInput too_many_rows, damaged, zip_bomb, xml_entities, field_too_long.
        """
        self.skipped.clear()
        for count, row in enumerate(self._source(self.skipped)):
            if count >= _MOST_INTERFACES:
                raise _too_many_rows_error()
            yield row


def open_file(data: bytes, *, already_counted: bool = False) -> FileReading:
    """Recognise a file of at most 20 MiB, by its content alone.

    A text file is read to its end once to count its rows, unless `already_counted` is set.

    Raises InvalidInput: too_large, empty, encrypted, legacy_format, unsupported_file, macro, zip_bomb,
    damaged, xml_entities, nested_archive, encoding, header, duplicate_header, csv_syntax,
    field_too_long, too_many_rows, and the codes of pools.platform.documents for JSON and YAML.
    """
    archives.check_kind(data)
    if not data.startswith(archives.ZIP):
        text = file_tables.decode(lambda: io.BytesIO(data))
        if kind := _sniff(text):
            reading = _read_document(text.read(), kind)
            reading.notes = (*text.notes, *reading.notes)
            return reading
    return _reading(
        file_tables.read_tables(data, columns.find_header), already_counted=already_counted
    )


def rows_upload(rows: Sequence[object]) -> Upload:
    """Return rows `{"vm", "mac", "ips"}` of a program as an upload; `network`, `namespace` and `note` are optional."""
    return "", json.dumps({"rows": rows}, ensure_ascii=False).encode()


def recognise(name: str, content: bytes) -> Recognition:  # noqa: ARG001  # the name is not trusted
    """Return what a file is read as, and by which columns or objects. Raises InvalidInput as `open_file` does."""
    reading = open_file(content, already_counted=True)
    layout = reading.layout
    if layout is None:
        return Recognition(reading.format, Certainty.PRODUCT, "the objects in it")
    names = [layout.names[column] for column in sorted(layout.used_columns) if layout.names]
    evidence = f"the columns {', '.join(names)}" if names else "lines with names and addresses"
    if "mac" in layout.roles and not names:
        evidence = "lines with MAC addresses"
    return Recognition(reading.format, _certainty(layout), evidence)


def _certainty(layout: ColumnLayout) -> Certainty:
    """A table of VMs has their names and MAC addresses; one without MACs may be a register of addresses."""
    if layout.kind in (columns.VNETWORK, columns.VINFO):
        return Certainty.PRODUCT
    has_both = "mac" in layout.roles and ("vm" in layout.roles or not layout.names)
    return Certainty.TABLE if has_both else Certainty.COLUMNS


def _reading(result: Tables[ColumnLayout], *, already_counted: bool) -> FileReading:
    """Return a reading of the tables with the most detailed layout."""
    if not result.tables:
        message = (
            "no header row found: name the columns as in RVTools, PowerCLI or the template, for example "
            "VM, MAC address, IP addresses"
        )
        raise file_error("header", message)
    rank = min(table.layout.rank for table in result.tables)
    best = [table for table in result.tables if table.layout.rank == rank]
    vinfo = [t for t in result.tables if t.layout.kind == columns.VINFO and t.layout.rank > rank]
    total: int | None = None
    if best[0].declared is not None:
        total = sum(table.declared or 0 for table in best) or None
    elif not already_counted:
        total = sum(map(_count, best))
    return FileReading(
        _format(best[0]),
        lambda skipped: _read_rows(best, vinfo, skipped),
        total,
        tuple(dict.fromkeys(_notes(result, best, vinfo))),
        best[0].layout,
    )


def _format(table: Table[ColumnLayout]) -> str:
    kind = table.layout.kind
    container = "xlsx" if table.declared is not None else "zip" if table.name else "csv"
    if kind == columns.TEMPLATE and container == "zip":
        return "template-csv"
    return f"{_FAMILIES[kind]}-{container}" if kind in _FAMILIES else kind


def _notes(result: Tables[ColumnLayout], best: _Tables, vinfo: _Tables) -> Iterator[FieldProblem]:
    """Yield what was assumed of a file, and what of it is not read; of RVTools, which has dozens of other tabs, not these."""
    yield from result.problems
    for table in best:
        yield from table.notes
    if columns_ := list(dict.fromkeys(name for table in best for name in table.layout.unread)):
        message = f"columns that are not read: {file_tables.list_names(columns_)}"
        yield FieldProblem("file", "ignored_columns", message)
    if best[0].layout.kind == columns.VINFO:
        yield _VINFO_ONLY
    others = [t.name for t in result.tables if t not in best and t not in vinfo]
    if not vinfo and best[0].layout.kind not in (columns.VNETWORK, columns.VINFO):
        others += result.unread
    if others:
        message = f"tables that are not read: {file_tables.list_names(others)}"
        yield FieldProblem("file", "ignored_tables", message)


def _count(table: Table[ColumnLayout]) -> int:
    """Return the number of non-blank rows of a text.

    This reads the whole table, so that a syntax error is reported before the first row is used.
    Raises InvalidInput csv_syntax, field_too_long, too_many_rows.
    """
    total = 0
    for number, row in table.rows():
        total += any(row)
        if total > MOST_ROWS or number > _MOST_LINES:
            raise _too_many_rows_error()
    return total


def _read_rows(best: _Tables, vinfo: _Tables, skipped: Skipped) -> Iterator[VMInterface]:
    """Yield the interfaces of tables; one without an address is told the address that vInfo has of its VM.

    A VM of which only vInfo has an address is a row, too, so that nobody gets it.
    """
    vms = [vm for table in vinfo for vm in _interfaces(table, _rows(table), Skipped())]
    addresses: dict[str, str] = {}
    for vm in vms:  # of several vCenters several VMs may have one name
        addresses[vm.vm] = ", ".join(filter(None, [addresses.get(vm.vm), *vm.ips[:1]]))
    names: set[str] = set()
    left = MOST_ROWS

    def limited(rows: Iterator[Row]) -> Iterator[Row]:
        nonlocal left
        for row in rows:
            left -= any(row[1])
            if left < 0:
                raise _too_many_rows_error()
            yield row

    for table in best:
        for row in _interfaces(table, limited(_rows(table)), skipped):
            names.add(row.vm)
            yield vm_interface.tell_address(row, addresses.get(row.vm, ""))
    yield from (vm for vm in vms if vm.ips and vm.vm not in names)


def _interfaces(
    table: Table[ColumnLayout], rows: Iterator[Row], skipped: Skipped
) -> Iterator[VMInterface]:
    return tables.read(table.layout, rows, skipped, sheet=_sheet(table))


def _sheet(table: Table[ColumnLayout]) -> str:
    """Return the name of a sheet; of a table in an archive the tab of RVTools that it is."""
    if table.declared is not None:
        return table.name
    return table.layout.kind if table.name and table.layout.rank in (0, 3) else ""


def _rows(table: Table[ColumnLayout]) -> Iterator[Row]:
    return table.rows(table.layout.used_columns)


# --- documents ------------------------------------------------------------------------------------


def _too_many_rows_error() -> errors.InvalidInput:
    return file_error("too_many_rows", f"a file may have at most {MOST_ROWS:,} rows")


def _sniff(text: Text) -> str:
    """Return `json`, `yaml`, or "" for any other text."""
    with text.open() as stream:
        head = stream.read(8192)
    if head.lstrip()[:1] in ("{", "["):
        return "json"
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith(("#", "%")))
    return "yaml" if _YAML.match("\n".join(islice(lines, 2))) else ""


def _read_document(text: str, kind: str) -> FileReading:
    """Parse a text of the kind `json` or `yaml` and recognise its documents.

    Raises InvalidInput: the codes of pools.platform.documents, unsupported_document.
    """
    repeatable = _REPEATABLE_IN_LISTS if "items" in text else _REPEATABLE
    limit = archives.LARGEST
    values: list[Any]
    if kind == "json":
        values = [documents.load_json_value(text, limit=limit, repeatable=repeatable)]
    else:
        loaded = documents.load_yaml(text, limit=limit, repeatable=repeatable, roots=(dict, list))
        values = [document.data for document in loaded]
    return _document(values[0] if len(values) == 1 and isinstance(values[0], list) else values)


def _document(documents_: list[object]) -> FileReading:
    first = documents_[0] if documents_ else None
    if vms := other_inventories.ansible_vms(documents_):
        return _list_document("vsphere", vms, inventory.vms)
    if len(documents_) == 1 and isinstance(first, dict):
        if "rows" in first:
            return _list_document("rows", first["rows"], lambda rows, _: _program_rows(rows))
        if "vms" in first and not inventory.is_vm(first):
            return _list_document("forklift", first["vms"], inventory.vms)
        if listed := other_inventories.read_list(first):
            return _list_document(*listed, inventory.vms)
    return _objects(inventory.objects(documents_))


def _objects(objects: list[object]) -> FileReading:
    kinds = [inventory.kind_of(document) for document in objects]
    kind = next((kind for kind in kinds if kind), "")
    if kind:
        return FileReading(_FORMATS[kind], lambda _: inventory.manifest_rows(objects))
    if objects and all(inventory.is_vm(document) for document in objects):
        return _list_document("forklift", objects, inventory.vms)
    rows = [document for document in objects if isinstance(document, dict)]
    if rows and len(rows) == len(objects):
        if all(row.get("kind") in other_inventories.VM_KINDS for row in rows):
            return _list_document("kubevirt", other_inventories.of_manifests(rows), inventory.vms)
        if all("mac" in row for row in rows):
            return _list_document("rows", rows, lambda rows, _: _program_rows(rows))
        if table := _json_table(rows):
            return _reading(Tables([table]), already_counted=False)
    message = (
        "expected VMs of MTV's inventory (a plan has only their names), of KubeVirt, govc, Ansible or oVirt,"
        " an IPPool, an IPAMClaim or a list of rows"
    )
    raise file_error("unsupported_document", message)


def _json_table(rows: Sequence[dict[str, object]]) -> Table[ColumnLayout] | None:
    """Return the objects of PowerShell's ConvertTo-Json and of `openstack -f json` as a table; None without its columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:_MOST_NAMES]
    layout = columns.recognise(names)
    if layout is None:
        return None
    used = [name if column in layout.used_columns else "" for column, name in enumerate(names)]

    def read_rows(_columns: frozenset[int] | None) -> Iterator[Row]:
        for number, row in enumerate(rows, start=1):
            yield number, [_json_cell(row.get(name)) if name else "" for name in used]

    return Table("", layout, (), read_rows)


def _json_cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_json_cell, value))
    if isinstance(value, dict):
        return _json_cell(value.get("ip_address") or value.get("Name"))
    return "" if value is None else str(value)


def _list_document(
    name: str, rows: object, read: Callable[[Sequence[object], Skipped], Iterator[VMInterface]]
) -> FileReading:
    if not isinstance(rows, list):
        raise file_error("wrong_type", "a list is expected", rows)
    if len(rows) > MOST_ROWS:
        raise _too_many_rows_error()
    items: list[object] = rows
    return FileReading(name, lambda skipped: read(items, skipped), len(items))


def _program_rows(rows: Sequence[object]) -> Iterator[VMInterface]:
    """Yield the interfaces of rows that a program sent; each deviation is a problem of its row."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, dict):
            yield _row(number, row)
        else:
            error = problem("", "wrong_type", "an object is expected")
            yield VMInterface(number, "", "", (), problems=(error,), refused=True)


def _row(number: int, row: dict[str, object]) -> VMInterface:
    problems: list[FieldProblem] = []
    for key in row:
        if key not in _FIELDS:
            message = f"unknown field; known here: {', '.join(_FIELDS)}"
            problems.append(problem(errors.display_value(key), "unknown_field", message))
    texts = {key: _text(row, key, problems) for key in _FIELDS if key != "ips"}
    ips = cells.parse_addresses(*_ips(row.get("ips"), problems), aside=False)
    raw_mac = str(row["mac"]) if texts["mac"] else ""
    if not raw_mac.isprintable():  # trailing line breaks are errors
        problems += cells.parse_mac(raw_mac)
    return cells.read_interface(
        number, texts["vm"], texts["mac"], ips, problems=problems,
        port_group=texts["network"], namespace=texts["namespace"], note=texts["note"],
    )  # fmt: skip


def _text(row: dict[str, object], key: str, problems: list[FieldProblem]) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        problems.append(problem(key, "wrong_type", "a string is expected", value))
        return ""
    text, error = cells.parse_text(key, value)
    problems += [error] if error else []
    return text


def _ips(value: object, problems: list[FieldProblem]) -> list[str]:
    if isinstance(value, str):
        return [value]
    addresses = value if isinstance(value, list) else []
    if value is not None and (
        not isinstance(value, list) or not all(isinstance(ip, str) for ip in addresses)
    ):
        message = 'a list of addresses is expected, such as ["10.0.0.5/24"]'
        problems.append(problem("ips", "wrong_type", message, value))
        return []
    return [ip for ip in addresses if isinstance(ip, str)]
