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
from pools.core.kubernetes.managed_fields import Element, MemberKey, MemberValue, Path

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
class FieldDifference:
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
) -> list[FieldDifference]:
    """The differences in the order of the desired manifest, then what `manager` no longer wants.

    Null is absence. Nothing is canonicalised: `fd00::0` and `fd00::` differ.
    """
    owners = managed_fields.parse(observed)
    differing_values = list(_compare(desired, observed, (), structure))
    differing_values += [
        (path, None, value)
        for owner in owners
        if manager and owner.manager == manager and not owner.subresource
        for path in sorted(owner.leaves(), key=managed_fields.show)
        if (value := _value_at(observed, path)) is not None and _value_at(desired, path) is None
    ]
    return [
        FieldDifference(
            path=managed_fields.show(path),
            desired=desired_value,
            observed=observed_value,
            managers=tuple(sorted({owner.manager for owner in owners if owner.owns(path)})),
        )
        for path, desired_value, observed_value in differing_values
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

    def leaf(path: Path, desired_value: Any, observed_value: Any) -> Any:
        names = {owner.manager for owner in owners if owner.owns_within(path)}
        if path in _IDENTITY or not names - {manager} or managed_fields.show(path) in take:
            return desired_value
        if manager in names:
            return desired_value if observed_value is None else observed_value
        return _LEFT_OUT

    part: object_reader.Json = _part(desired, observed, (), structure, leaf)
    return part


_LEFT_OUT = object()


def _part(desired: Any, observed: Any, path: Path, structure: Structure, leaf: Any) -> Any:
    names = tuple(element for element in path if isinstance(element, str))
    if _is_merged(desired, observed) and names not in structure.atomic:
        observed_fields = observed or {}
        parts = {
            name: _part(desired_value, observed_fields.get(name), (*path, name), structure, leaf)
            for name, desired_value in desired.items()
        }
        kept_parts = {name: part for name, part in parts.items() if part is not _LEFT_OUT}
        return kept_parts or _LEFT_OUT
    if isinstance(desired, list) and names in structure.lists:
        return _members_part(desired, observed, path, structure, leaf)
    return leaf(path, desired, observed)


def _members_part(
    desired: list[Any], observed: object, path: Path, structure: Structure, leaf: Any
) -> Any:
    keys = structure.lists[tuple(element for element in path if isinstance(element, str))]
    kept_members = []
    for element, desired_member, observed_member in _beside(desired, observed, keys):
        part = _part(desired_member, observed_member, (*path, element), structure, leaf)
        if isinstance(desired_member, dict):
            fields = {} if part is _LEFT_OUT else part
            identity = {key: desired_member[key] for key in keys if key in desired_member}
            if not fields.keys() - set(keys) and desired_member.keys() - set(keys):
                continue  # all that it says is of others
            part = identity | fields
        if part is not _LEFT_OUT:
            kept_members.append(part)
    return kept_members or _LEFT_OUT


_DifferingValue = tuple[Path, object, object]


def _compare(
    desired: Any, observed: Any, path: Path, structure: Structure
) -> Iterator[_DifferingValue]:
    names = tuple(element for element in path if isinstance(element, str))
    below: Iterable[tuple[Element, Any, Any]]
    if desired is None:
        return
    if _is_merged(desired, observed) and names not in structure.atomic:
        below = (
            (name, desired_value, (observed or {}).get(name))
            for name, desired_value in desired.items()
        )
    elif isinstance(desired, list) and names in structure.lists:
        below = _beside(desired, observed, structure.lists[names])
    else:
        if managed_fields.canonical(desired) != managed_fields.canonical(observed):
            yield path, desired, observed
        return
    for element, desired_value, observed_value in below:
        yield from _compare(desired_value, observed_value, (*path, element), structure)


def _is_merged(desired: object, observed: object) -> bool:
    # A desired object without content is itself a value: it is there or not.
    if not isinstance(desired, dict):
        return False
    return isinstance(observed, dict) or (observed is None and bool(desired))


def _beside(
    desired: list[Any], observed: object, keys: tuple[str, ...]
) -> Iterator[tuple[Element, Any, Any]]:
    observed_members = _members(observed, keys) if isinstance(observed, list) else {}
    for element, desired_member in _members(desired, keys).items():
        yield element, desired_member, observed_members.get(element)


def _members(listed: list[Any], keys: tuple[str, ...]) -> dict[Element, Any]:
    if not keys:
        return {MemberValue(managed_fields.canonical(member)): member for member in listed}
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
            keys = (
                tuple(name for name, _ in element.fields) if isinstance(element, MemberKey) else ()
            )
            value = _members(value, keys).get(element)
        else:
            return None
    return value
