"""Who owns a field of an object: metadata.managedFields, in the form FieldsV1.

A path is a tuple of elements: a field's name, or for a member of a list a Key (of a list that is a
map by some of its members' fields) or a Value (of a list that is a set).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pools.core import object_reader


@dataclass(frozen=True)
class MemberKey:
    """The member of a list whose fields have these values."""

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

    `paths` are its leaves, and the objects that it owns as such (".").
    """

    manager: str
    operation: str
    subresource: str
    paths: frozenset[Path]

    def owns(self, path: Path) -> bool:
        """Whether it owns the path, something inside it, or all of what the path is in."""
        return self.owns_within(path) or any(path[: len(owned)] == owned for owned in self.leaves())

    def owns_within(self, path: Path) -> bool:
        """Return True if it owns the path or something inside it, as an apply of the path would meet."""
        return any(owned[: len(path)] == path for owned in self.paths)

    def leaves(self) -> Iterator[Path]:
        """What it owns whole: fields, atomic lists and objects, empty objects."""
        parents = {owned[:size] for owned in self.paths for size in range(len(owned))}
        return (owned for owned in self.paths if owned not in parents)


def parse(manifest: object_reader.Json) -> list[FieldOwner]:
    """The owners, in the order of the object; what is not FieldsV1 is passed over."""
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


def upgraded(manifest: object_reader.Json, api_version: str) -> list[Any] | None:
    """Return the entries of managedFields with all fields in one version; None if they are so already.

    An API server converts an object to the version of each entry before it applies anything, which
    fails for what an older version of the kind does not know. The fields have the same names in all
    versions; entries of one manager that now have one version become one.
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
            fields = _united(before["fieldsV1"], fields)
        merged[identity] = entry | {"apiVersion": api_version, "fieldsV1": fields}
    return list(merged.values())


def without(entries: Sequence[object_reader.Json], path: str) -> list[object_reader.Json]:
    """Return the entries of managedFields without a field, `spec.ipv4.cidrs`: nobody owns it."""
    remaining = copy.deepcopy(list(entries))
    *parents, name = [f"f:{part}" for part in path.split(".")]
    for entry in remaining:
        fields = entry.get("fieldsV1") or {}
        for parent in parents:
            fields = fields.get(parent) or {}
        fields.pop(name, None)
    return remaining


def _united(some: object_reader.Json, others: object_reader.Json) -> object_reader.Json:
    both = {
        name: _united(some[name], others[name]) if name in some and name in others else fields
        for name, fields in {**some, **others}.items()
    }
    return dict(sorted(both.items()))


def key_of(fields: object_reader.Json) -> MemberKey:
    """The member of a list that has these fields."""
    return MemberKey(tuple(sorted((name, _hashable(value)) for name, value in fields.items())))


def show(path: Path) -> str:
    """`spec.ipv4.pool[cidr=10.0.0.0/16].reservedRanges`; a name with a dot stands in brackets."""
    shown = ""
    for element in path:
        if not isinstance(element, str):
            shown += str(element)
        elif "." in element or "/" in element:
            shown += f"[{element}]"
        else:
            shown += f".{element}" if shown else element
    return shown


def canonical(value: object) -> str:
    """One text for equal JSON values; true is not 1."""
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
    kind, _, rest = name.partition(":")
    if kind == "f":
        return rest
    try:
        value = json.loads(rest)
    except ValueError:
        return None
    if kind == "k" and isinstance(value, dict):
        return key_of(value)
    return MemberValue(canonical(value)) if kind == "v" else None


def _hashable(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else canonical(value)
