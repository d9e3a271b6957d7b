"""Differences between a desired manifest and an observed object, by field, with the field's managers.

A field that the desired manifest does not have is no difference, unless our own manager owns it: then
the next server-side apply removes it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pools.core import object_reader
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.managed_fields import Element, MemberKey, MemberValue, Path

Names = tuple[str, ...]  # of the fields of a path, without list members


@dataclass(frozen=True)
class Structure:
    """How server-side apply merges the lists and objects of a kind.

    `lists` maps the path of a list to the key fields of its members; without key fields the list is a
    set. Any other list is one value. `atomic` objects are one value; other objects merge by field.
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
# These fields identify the object; the API server validates them.
_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


@dataclass(frozen=True)
class FieldDifference:
    """A field that differs; None means absent. `managers` own it in the observed object, sorted."""

    path: str
    desired: object
    observed: object
    managers: tuple[str, ...] = ()


def find_differences(
    desired: object_reader.Json,
    observed: object_reader.Json,
    *,
    structure: Structure = POD_IP_POOL,
    manager: str = "",
) -> list[FieldDifference]:
    """Return the differences in the order of the desired manifest, then those that remove a field.

    A field of `manager` that the desired manifest no longer has is removed. Null means absent. Values
    are compared literally: `fd00::0` and `fd00::` differ.
    """
    owners = managed_fields.parse(observed)
    differing_values = list(_compare(desired, observed, (), structure))
    differing_values += [
        (path, None, value)
        for owner in owners
        if manager and owner.manager == manager and not owner.subresource
        for path in sorted(owner.leaves(), key=managed_fields.format_path)
        if (value := _value_at(observed, path)) is not None and _value_at(desired, path) is None
    ]
    return [
        FieldDifference(
            path=managed_fields.format_path(path),
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
    """Return the part of a manifest that `manager` can apply without a field of another manager.

    A field that only other managers own is omitted. A shared field keeps its observed value. `take` has
    the paths (FieldDifference.path) of fields that are applied regardless of their managers.
    """
    owners = managed_fields.parse(observed)

    def leaf(path: Path, desired_value: Any, observed_value: Any) -> Any:
        names = {owner.manager for owner in owners if owner.owns_within(path)}
        if path in _IDENTITY or not names - {manager} or managed_fields.format_path(path) in take:
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
        remaining_parts = {name: part for name, part in parts.items() if part is not _LEFT_OUT}
        return remaining_parts or _LEFT_OUT
    if isinstance(desired, list) and names in structure.lists:
        return _members_part(desired, observed, path, structure, leaf)
    return leaf(path, desired, observed)


def _members_part(
    desired: list[Any], observed: object, path: Path, structure: Structure, leaf: Any
) -> Any:
    keys = structure.lists[tuple(element for element in path if isinstance(element, str))]
    remaining_members = []
    for element, desired_member, observed_member in _pair_members(desired, observed, keys):
        part = _part(desired_member, observed_member, (*path, element), structure, leaf)
        if isinstance(desired_member, dict):
            fields = {} if part is _LEFT_OUT else part
            identity = {key: desired_member[key] for key in keys if key in desired_member}
            if not fields.keys() - set(keys) and desired_member.keys() - set(keys):
                continue  # other managers own all of its fields
            part = identity | fields
        if part is not _LEFT_OUT:
            remaining_members.append(part)
    return remaining_members or _LEFT_OUT


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
        below = _pair_members(desired, observed, structure.lists[names])
    else:
        if managed_fields.canonical_json(desired) != managed_fields.canonical_json(observed):
            yield path, desired, observed
        return
    for element, desired_value, observed_value in below:
        yield from _compare(desired_value, observed_value, (*path, element), structure)


def _is_merged(desired: object, observed: object) -> bool:
    # An empty desired object is a value: it is present or absent.
    if not isinstance(desired, dict):
        return False
    return isinstance(observed, dict) or (observed is None and bool(desired))


def _pair_members(
    desired: list[Any], observed: object, keys: tuple[str, ...]
) -> Iterator[tuple[Element, Any, Any]]:
    observed_members = _members(observed, keys) if isinstance(observed, list) else {}
    for element, desired_member in _members(desired, keys).items():
        yield element, desired_member, observed_members.get(element)


def _members(listed: list[Any], keys: tuple[str, ...]) -> dict[Element, Any]:
    if not keys:
        return {MemberValue(managed_fields.canonical_json(member)): member for member in listed}
    return {
        managed_fields.member_key({key: member.get(key) for key in keys}): member
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
