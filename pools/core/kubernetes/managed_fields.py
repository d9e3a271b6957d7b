"""Owners of the fields of an object: metadata.managedFields in the format FieldsV1.

A path is a tuple of elements: the name of a field, or for a member of a list a MemberKey (the list is
a map by key fields of its members) or a MemberValue (the list is a set).
"""

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pools.core import object_reader


@dataclass(frozen=True)
class MemberKey:
    """The member of a list whose key fields have these values."""

    fields: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return "[" + ",".join(f"{name}={value}" for name, value in self.fields) + "]"


@dataclass(frozen=True)
class MemberValue:
    """A member of a set, as canonical JSON."""

    text: str

    def __str__(self) -> str:
        return f"[{self.text}]"


Element = str | MemberKey | MemberValue
Path = tuple[Element, ...]


@dataclass(frozen=True)
class FieldOwner:
    """One entry of managedFields: a manager, and the paths it owns.

    `paths` has the leaves, and the objects that the manager owns themselves (".").
    """

    manager: str
    operation: str
    subresource: str
    paths: frozenset[Path]

    def owns(self, path: Path) -> bool:
        """Return True if the manager owns the path, a field inside it, or a whole value around it."""
        return self.owns_within(path) or any(path[: len(owned)] == owned for owned in self.leaves())

    def owns_within(self, path: Path) -> bool:
        """Return True if the manager owns the path or a field inside it, so that an apply conflicts."""
        return any(owned[: len(path)] == path for owned in self.paths)

    def leaves(self) -> Iterator[Path]:
        """Return the paths that the manager owns whole: fields, atomic lists and objects, empty objects."""
        parents = {owned[:size] for owned in self.paths for size in range(len(owned))}
        return (owned for owned in self.paths if owned not in parents)


def parse(manifest: object_reader.Json) -> list[FieldOwner]:
    """Return the owners in the order of the object; entries that are not FieldsV1 are skipped."""
    metadata = manifest.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return [
        FieldOwner(
            manager=str(entry.get("manager", "")),
            operation=str(entry.get("operation", "")),
            subresource=str(entry.get("subresource", "")),
            paths=frozenset(_paths(entry.get("fieldsV1") or {})),
        )
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and entry.get("fieldsType", "FieldsV1") == "FieldsV1"
    ]


def upgrade_entries(manifest: object_reader.Json, api_version: str) -> list[Any] | None:
    """Return the entries of managedFields in one version; None if they already have this version.

    An API server converts an object to the version of each entry before an apply. That fails for fields
    that an older version of the kind does not have. Fields have the same names in all versions; entries
    of one manager are merged.
    """
    entries = manifest.get("metadata", {}).get("managedFields") or []
    if all(entry.get("apiVersion") == api_version for entry in entries):
        return None
    merged: dict[tuple[object, ...], dict[str, Any]] = {}
    for entry in entries:
        identity = tuple(entry.get(key) for key in ("manager", "operation", "subresource"))
        before = merged.get(identity)
        fields = entry.get("fieldsV1") or {}
        if before is not None:
            fields = _merge_fields(before["fieldsV1"], fields)
        merged[identity] = entry | {"apiVersion": api_version, "fieldsV1": fields}
    return list(merged.values())


def remove_field(entries: Sequence[object_reader.Json], path: str) -> list[object_reader.Json]:
    """Return the entries of managedFields without a field such as `spec.ipv4.cidrs`, for all managers."""
    remaining = copy.deepcopy(list(entries))
    *parents, name = [f"f:{part}" for part in path.split(".")]
    for entry in remaining:
        fields = entry.get("fieldsV1") or {}
        for parent in parents:
            fields = fields.get(parent) or {}
        fields.pop(name, None)
    return remaining


def _merge_fields(first: object_reader.Json, second: object_reader.Json) -> object_reader.Json:
    merged_fields = {
        name: _merge_fields(first[name], second[name])
        if name in first and name in second
        else fields
        for name, fields in {**first, **second}.items()
    }
    return dict(sorted(merged_fields.items()))


def member_key(fields: object_reader.Json) -> MemberKey:
    """Return the key of the list member with these fields."""
    return MemberKey(tuple(sorted((name, _hashable(value)) for name, value in fields.items())))


def format_path(path: Path) -> str:
    """Return `spec.ipv4.pool[cidr=10.0.0.0/16].reservedRanges`; a name with a dot is in brackets."""
    shown = ""
    for element in path:
        if not isinstance(element, str):
            shown += str(element)
        elif "." in element or "/" in element:
            shown += f"[{element}]"
        else:
            shown += f".{element}" if shown else element
    return shown


def canonical_json(value: object) -> str:
    """Return the same string for equal JSON values; true and 1 differ."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _paths(fields: object, above: Path = ()) -> Iterator[Path]:
    if not isinstance(fields, dict):
        return
    if not fields and above:
        yield above
    for name, below in fields.items():
        if name == ".":
            yield above
        elif (element := _element(name)) is not None:
            yield from _paths(below, (*above, element))


def _element(name: str) -> Element | None:
    kind, _, content = name.partition(":")
    if kind == "f":
        return content
    try:
        value = json.loads(content)
    except ValueError:
        return None
    if kind == "k" and isinstance(value, dict):
        return member_key(value)
    return MemberValue(canonical_json(value)) if kind == "v" else None


def _hashable(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else canonical_json(value)
