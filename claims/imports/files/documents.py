"""JSON and YAML: what the documents of a text are, and their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from claims.core import ippool
from claims.core.ipamclaims import ipamclaim
from claims.core.vm_import import cells, inventory, manifests, vm_interface
from claims.core.vm_import.vm_interface import Skipped, VMInterface, problem
from claims.imports.files import archives
from claims.imports.files import texts as file_texts
from claims.imports.files.archives import refused
from pools.core import errors
from pools.core.errors import FieldProblem
from pools.platform import documents

_MOST_ITEMS = 1000  # of a list whose objects may have a key twice
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


def sniff(text: file_texts.Text) -> str:
    """json, yaml, or "" for anything else."""
    with text.opened() as stream:
        head = stream.read(8192)
    if head.lstrip()[:1] in ("{", "["):
        return "json"
    return "yaml" if _YAML.match(_first_line(head)) else ""


def _first_line(head: str) -> str:
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith(("#", "%")))
    return next(lines, "")


def opened(text: str, kind: str) -> ImportDocument:
    """Raises InvalidInput: the codes of pools.platform.documents, unsupported_document."""
    repeatable = _REPEATABLE_IN_LISTS if "items" in text else _REPEATABLE
    if kind == "json":
        limit = archives.LARGEST
        data = documents.load_json_value(text, limit=limit, repeatable=repeatable)
        values = data if isinstance(data, list) else [data]
    else:
        loaded = documents.load_yaml(text, limit=archives.LARGEST, repeatable=repeatable)
        values = [document.data for document in loaded]
    return _document(values)


def _document(listed: list[object]) -> ImportDocument:
    first = listed[0] if listed else None
    if len(listed) == 1 and isinstance(first, dict):
        if "rows" in first:
            return _listed("rows", first["rows"], lambda rows, _: from_rows(rows))
        if "vms" in first and not inventory.is_vm(first):
            return _listed("forklift", first["vms"], inventory.vms)
    objects = manifests.objects(listed)
    kinds = [manifests.kind_of(document) for document in objects]
    kind = next((kind for kind in kinds if kind), "")
    if kind:
        return ImportDocument(_FORMATS[kind], lambda _: manifests.rows(objects))
    if objects and all(inventory.is_plan(document) for document in objects):
        return ImportDocument("forklift", lambda _: _plans(objects), len(objects))
    if objects and all(inventory.is_vm(document) for document in objects):
        return _listed("forklift", objects, inventory.vms)
    if objects and all(isinstance(document, dict) and "mac" in document for document in objects):
        return _listed("rows", objects, lambda rows, _: from_rows(rows))
    message = (
        "neither VMs of MTV's inventory, nor a Plan, nor an IPPool or IPAMClaim, nor a list of rows"
    )
    raise refused("unsupported_document", message)


def _listed(
    name: str, rows: object, read: Callable[[Sequence[object], Skipped], Iterator[VMInterface]]
) -> ImportDocument:
    if not isinstance(rows, list):
        raise refused("wrong_type", "a list is expected", rows)
    if len(rows) > file_texts.MOST_ROWS:
        raise file_texts.too_many_rows()
    listed: list[object] = rows
    return ImportDocument(name, lambda skipped: read(listed, skipped), len(listed))


def _plans(objects: Sequence[object]) -> Iterator[VMInterface]:
    for row, document in enumerate(objects, start=1):
        if isinstance(document, dict):
            yield from inventory.plan(row, document)


def from_rows(rows: Sequence[object]) -> Iterator[VMInterface]:
    """Rows that a program wrote, each read strictly: what it is not is a problem of the row."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, dict):
            yield _row(number, row)
        else:
            wrong = problem("", "wrong_type", "an object is expected")
            yield VMInterface(number, "", "", (), problems=(wrong,), refused=True)


def _row(number: int, row: dict[str, object]) -> VMInterface:
    problems: list[FieldProblem] = []
    for key in row:
        if key not in _FIELDS:
            message = f"unknown field; known here: {', '.join(_FIELDS)}"
            problems.append(problem(errors.shown(key), "unknown_field", message))
    texts = {key: _text(row, key, problems) for key in _FIELDS if key != "ips"}
    ips = cells.parse_addresses(*_ips(row.get("ips"), problems), aside=False)
    if texts["mac"]:
        whole = str(row["mac"])  # a line break at its end, too
        problems += cells.parse_mac(texts["mac"] if whole.isprintable() else whole)
    refused = bool(problems) or ips.unread
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
        refused=refused or no_mac,
    )


def _text(row: dict[str, object], key: str, problems: list[FieldProblem]) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        problems.append(problem(key, "wrong_type", "a text is expected", value))
        return ""
    text, wrong = cells.parse_text(key, value)
    problems += [wrong] if wrong else []
    return text


def _ips(value: object, problems: list[FieldProblem]) -> list[str]:
    if isinstance(value, str):
        return [value]
    listed = value if isinstance(value, list) else []
    if value is not None and (
        not isinstance(value, list) or not all(isinstance(ip, str) for ip in listed)
    ):
        message = 'a list of addresses is expected, such as ["10.0.0.5/24"]'
        problems.append(problem("ips", "wrong_type", message, value))
        return []
    return [ip for ip in listed if isinstance(ip, str)]
