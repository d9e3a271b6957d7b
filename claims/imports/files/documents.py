"""Import rows from JSON and YAML documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from claims.core import ippool
from claims.core.ipamclaims import ipamclaim
from claims.core.vm_import import cells, inventory, manifests, vm_interface
from claims.core.vm_import.vm_interface import Skipped, VMInterface, problem
from pools.core import errors
from pools.core.errors import FieldProblem
from pools.platform import documents
from pools.platform.files import archives
from pools.platform.files.archives import file_error
from pools.platform.files.texts import Text

MOST_ROWS = 100_000
_MOST_ITEMS = 1000  # list items in which duplicate keys of entries are accepted
_REPEATABLE = frozenset({ippool.ENTRIES})
_REPEATABLE_IN_LISTS = _REPEATABLE | {
    ("items", str(n), *ippool.ENTRIES) for n in range(_MOST_ITEMS)
}
_YAML = re.compile(
    r"(?:---|[\"']?(?:apiVersion|kind|metadata|spec|items)[\"']?\s*:)(?:\s|$)", re.MULTILINE
)
_FIELDS = ("vm", "mac", "ips", "network", "namespace", "note")
_FORMATS = {ippool.KIND: "ippool-yaml", ipamclaim.KIND: "ipamclaim-yaml"}


@dataclass(frozen=True)
class ImportDocument:
    format: str
    rows: Callable[[Skipped], Iterator[VMInterface]]
    total: int | None = None


def too_many_rows_error() -> errors.InvalidInput:
    return file_error("too_many_rows", f"a file may have at most {MOST_ROWS:,} rows")


def sniff(text: Text) -> str:
    """Return `json`, `yaml`, or "" for any other text."""
    with text.open() as stream:
        head = stream.read(8192)
    if head.lstrip()[:1] in ("{", "["):
        return "json"
    return "yaml" if _YAML.match(_first_line(head)) else ""


def _first_line(head: str) -> str:
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith(("#", "%")))
    return next(lines, "")


def parse_document(text: str, kind: str) -> ImportDocument:
    """Parse a text of the kind `json` or `yaml` and recognise its documents.

    Raises InvalidInput: the codes of pools.platform.documents, unsupported_document.
    """
    repeatable = _REPEATABLE_IN_LISTS if "items" in text else _REPEATABLE
    if kind == "json":
        limit = archives.LARGEST
        data = documents.load_json_value(text, limit=limit, repeatable=repeatable)
        values = data if isinstance(data, list) else [data]
    else:
        loaded = documents.load_yaml(text, limit=archives.LARGEST, repeatable=repeatable)
        values = [document.data for document in loaded]
    return _document(values)


def _document(documents_: list[object]) -> ImportDocument:
    first = documents_[0] if documents_ else None
    if len(documents_) == 1 and isinstance(first, dict):
        if "rows" in first:
            return _list_document("rows", first["rows"], lambda rows, _: from_rows(rows))
        if "vms" in first and not inventory.is_vm(first):
            return _list_document("forklift", first["vms"], inventory.vms)
    objects = manifests.objects(documents_)
    kinds = [manifests.kind_of(document) for document in objects]
    kind = next((kind for kind in kinds if kind), "")
    if kind:
        return ImportDocument(_FORMATS[kind], lambda _: manifests.rows(objects))
    if objects and all(inventory.is_plan(document) for document in objects):
        return ImportDocument("forklift", lambda _: _plan_rows(objects), len(objects))
    if objects and all(inventory.is_vm(document) for document in objects):
        return _list_document("forklift", objects, inventory.vms)
    if objects and all(isinstance(document, dict) and "mac" in document for document in objects):
        return _list_document("rows", objects, lambda rows, _: from_rows(rows))
    message = "expected VMs of MTV's inventory, a Plan, an IPPool, an IPAMClaim or a list of rows"
    raise file_error("unsupported_document", message)


def _list_document(
    name: str, rows: object, read: Callable[[Sequence[object], Skipped], Iterator[VMInterface]]
) -> ImportDocument:
    if not isinstance(rows, list):
        raise file_error("wrong_type", "a list is expected", rows)
    if len(rows) > MOST_ROWS:
        raise too_many_rows_error()
    items: list[object] = rows
    return ImportDocument(name, lambda skipped: read(items, skipped), len(items))


def _plan_rows(objects: Sequence[object]) -> Iterator[VMInterface]:
    for row, document in enumerate(objects, start=1):
        if isinstance(document, dict):
            yield from inventory.plan(row, document)


def from_rows(rows: Sequence[object]) -> Iterator[VMInterface]:
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
    if texts["mac"]:
        raw_mac = str(row["mac"])  # with trailing line breaks, which are errors
        problems += cells.parse_mac(texts["mac"] if raw_mac.isprintable() else raw_mac)
    is_refused = bool(problems) or ips.unread
    row_problems, no_mac = vm_interface.add_missing_problems(
        texts["mac"], ips.ips, (*problems, *ips.problems)
    )
    return VMInterface(
        number,
        texts["vm"],
        texts["mac"],
        ips.ips,
        texts["network"],
        texts["namespace"],
        note=texts["note"],
        problems=row_problems,
        refused=is_refused or no_mac,
    )


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
