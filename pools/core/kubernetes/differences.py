"""Where an observed object differs from what is desired, field by field, and who owns the field.

The desired manifest says only what is wanted: what it leaves out does not differ, unless our own
manager owns it, for then the next server-side apply would remove it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pools.core import object_reader
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.managed_fields import Element, Key, Path, Value

Names = tuple[str, ...]  # of the fields on the way; members of lists are left out


@dataclass(frozen=True)
class Structure:
    """How server-side apply merges the lists and objects of a kind.

    `lists` are maps by these fields of their members, or sets when there are none; any other list
    is one value. `atomic` objects are one value, any other object is merged field by field.
    """

    lists: Mapping[Names, tuple[str, ...]] = field(default_factory=dict)
    atomic: frozenset[Names] = frozenset()


POD_IP_POOL = Structure(
    lists={
        ("spec", "ipv4", "pool"): ("cidr",),
        ("spec", "ipv6", "pool"): ("cidr",),
        ("metadata", "finalizers"): (),
    },
    atomic=frozenset({("spec", "podSelector"), ("spec", "namespaceSelector")}),
)
# They name the object; the API server sees to it that they fit.
_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


@dataclass(frozen=True)
class Difference:
    """One field; None is absence. `managers` own it in the observed object, sorted."""

    path: str
    desired: object
    observed: object
    managers: tuple[str, ...] = ()


def find(
    desired: object_reader.Json,
    observed: object_reader.Json,
    *,
    structure: Structure = POD_IP_POOL,
    manager: str = "",
) -> list[Difference]:
    """The differences in the order of the desired manifest, then what `manager` no longer wants.

    Null is absence. Nothing is canonicalised: `fd00::0` and `fd00::` differ.
    """
    owners = managed_fields.parse(observed)
    found = list(_compare(desired, observed, (), structure))
    found += [
        (path, None, value)
        for owner in owners
        if manager and owner.manager == manager and not owner.subresource
        for path in sorted(owner.leaves(), key=managed_fields.show)
        if (value := _value_at(observed, path)) is not None and _value_at(desired, path) is None
    ]
    return [
        Difference(
            path=managed_fields.show(path),
            desired=wanted,
            observed=seen,
            managers=tuple(sorted({owner.manager for owner in owners if owner.owns(path)})),
        )
        for path, wanted, seen in found
        if path not in _IDENTITY
    ]


def part_to_apply(
    desired: object_reader.Json,
    observed: object_reader.Json,
    *,
    structure: Structure = POD_IP_POOL,
    manager: str,
    take: Collection[str] = (),
) -> object_reader.Json:
    """Return what of a manifest `manager` can apply without touching a field of another manager.

    A field that only others own is left out, one that it shares with others keeps its observed value.
    `take` are the paths, as Difference has them, that are wanted all the same.
    """
    owners = managed_fields.parse(observed)

    def leaf(path: Path, wanted: Any, seen: Any) -> Any:
        names = {owner.manager for owner in owners if owner.owns_within(path)}
        if path in _IDENTITY or not names - {manager} or managed_fields.show(path) in take:
            return wanted
        if manager in names:
            return wanted if seen is None else seen
        return _LEFT_OUT

    part: object_reader.Json = _part(desired, observed, (), structure, leaf)
    return part


_LEFT_OUT = object()


def _part(desired: Any, observed: Any, path: Path, structure: Structure, leaf: Any) -> Any:
    names = tuple(element for element in path if isinstance(element, str))
    if _is_merged(desired, observed) and names not in structure.atomic:
        seen = observed or {}
        parts = {
            name: _part(wanted, seen.get(name), (*path, name), structure, leaf)
            for name, wanted in desired.items()
        }
        kept = {name: part for name, part in parts.items() if part is not _LEFT_OUT}
        return kept or _LEFT_OUT
    if isinstance(desired, list) and names in structure.lists:
        return _members_part(desired, observed, path, structure, leaf)
    return leaf(path, desired, observed)


def _members_part(
    desired: list[Any], observed: object, path: Path, structure: Structure, leaf: Any
) -> Any:
    keys = structure.lists[tuple(element for element in path if isinstance(element, str))]
    kept = []
    for element, wanted, seen in _beside(desired, observed, keys):
        part = _part(wanted, seen, (*path, element), structure, leaf)
        if isinstance(wanted, dict):
            fields = {} if part is _LEFT_OUT else part
            identity = {key: wanted[key] for key in keys if key in wanted}
            if not fields.keys() - set(keys) and wanted.keys() - set(keys):
                continue  # all that it says is of others
            part = identity | fields
        if part is not _LEFT_OUT:
            kept.append(part)
    return kept or _LEFT_OUT


_Found = tuple[Path, object, object]


def _compare(desired: Any, observed: Any, path: Path, structure: Structure) -> Iterator[_Found]:
    names = tuple(element for element in path if isinstance(element, str))
    below: Iterable[tuple[Element, Any, Any]]
    if desired is None:
        return
    if _is_merged(desired, observed) and names not in structure.atomic:
        below = ((name, wanted, (observed or {}).get(name)) for name, wanted in desired.items())
    elif isinstance(desired, list) and names in structure.lists:
        below = _beside(desired, observed, structure.lists[names])
    else:
        if managed_fields.canonical(desired) != managed_fields.canonical(observed):
            yield path, desired, observed
        return
    for element, wanted, seen in below:
        yield from _compare(wanted, seen, (*path, element), structure)


def _is_merged(desired: object, observed: object) -> bool:
    # A desired object without content is itself a value: it is there or not.
    if not isinstance(desired, dict):
        return False
    return isinstance(observed, dict) or (observed is None and bool(desired))


def _beside(
    desired: list[Any], observed: object, keys: tuple[str, ...]
) -> Iterator[tuple[Element, Any, Any]]:
    seen = _members(observed, keys) if isinstance(observed, list) else {}
    for element, wanted in _members(desired, keys).items():
        yield element, wanted, seen.get(element)


def _members(listed: list[Any], keys: tuple[str, ...]) -> dict[Element, Any]:
    if not keys:
        return {Value(managed_fields.canonical(member)): member for member in listed}
    return {
        managed_fields.key_of({key: member.get(key) for key in keys}): member
        for member in listed
        if isinstance(member, dict)
    }


def _value_at(manifest: object, path: Path) -> Any:
    value: Any = manifest
    for element in path:
        if isinstance(element, str):
            value = value.get(element) if isinstance(value, dict) else None
        elif isinstance(value, list):
            keys = tuple(name for name, _ in element.fields) if isinstance(element, Key) else ()
            value = _members(value, keys).get(element)
        else:
            return None
    return value
