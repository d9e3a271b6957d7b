"""What grants access: groups of a directory, RoleBindings of a cluster and OpenShift's groups.

A group of a directory grants roles of the site, and VM ownership of a namespace. Both come from two settings: a JSON
object from groups to roles, and a regular expression whose named groups are the namespace and, if the organization
names it in its groups, the cluster.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from claims.core.workloads import vm_objects
from pools.core import errors, holders
from pools.core.kubernetes.resources import Manifest

ROLES = ("viewer", "operator", "administrator")


@dataclass(frozen=True)
class Grants:
    """The roles and namespaces of a person, as (cluster, namespace); the cluster "" stands for each cluster."""

    roles: frozenset[str] = frozenset()
    namespaces: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class GroupMapping:
    """What groups grant; groups are compared exactly, and the pattern matches the whole name."""

    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pattern: re.Pattern[str] | None = None

    def grants(self, groups: Iterable[str]) -> Grants:
        """Return what the groups grant together; a group that grants nothing is ignored."""
        roles: set[str] = set()
        namespaces = set()
        for group in groups:
            roles |= self.roles.get(group, frozenset())
            match = self.pattern.fullmatch(group) if self.pattern else None
            if match and _is_name(match["namespace"]):
                namespaces.add((match.groupdict().get("cluster") or "", match["namespace"]))
        return Grants(frozenset(roles), frozenset(namespaces))


def _is_name(text: str | None) -> bool:
    try:
        holders.parse_label(text, field="namespace")
    except errors.InvalidInput:
        return False
    return True


def parse_mapping(roles: str, pattern: str) -> GroupMapping:
    """Parse both texts; each may be "". Raises ValueError, whose text says what would be valid."""
    return GroupMapping(parse_roles(roles), parse_pattern(pattern))


def parse_roles(text: str) -> dict[str, frozenset[str]]:
    """Parse the JSON object from groups to a role or a list of roles. Raises ValueError."""
    expected = "a JSON object from groups to a role or a list of roles is expected"
    try:
        document = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"{expected}: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(expected)  # noqa: TRY004  # like the other refusals
    mapping = {}
    for group, value in document.items():
        names = value if isinstance(value, list) else [value]
        for name in names:
            if name not in ROLES:
                raise ValueError(f"group {group!r}: {name!r} is none of {', '.join(ROLES)}")
        mapping[group] = frozenset(names)
    return mapping


def parse_pattern(text: str) -> re.Pattern[str] | None:
    """Parse the regular expression of groups that own a namespace. Raises ValueError."""
    if not text:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    names = pattern.groupindex.keys()
    if "namespace" not in names or names - {"namespace", "cluster"}:
        raise ValueError("the named groups must be (?P<namespace>…) and perhaps (?P<cluster>…)")
    return pattern


USER, GROUP = "User", "Group"
ACCESS_ROLES = {"ClusterRole", "Role"}
MAX_LENGTH = 150  # of a user or group name here; a longer one matches nobody
_SYSTEM = "system:"  # of Kubernetes itself; system:authenticated is everybody


@dataclass(frozen=True)
class Binding:
    """A RoleBinding; `subjects` are the distinct (kind, name) of its users and groups."""

    namespace: str
    name: str
    role: str
    subjects: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Members:
    """A Group of user.openshift.io/v1; `users` are the distinct names of its users."""

    name: str
    users: tuple[str, ...] = ()


def parse_binding(manifest: Manifest) -> Binding:
    """Parse a RoleBinding; parts that are not valid are ignored, and grant nothing."""
    subjects = vm_objects.objects(manifest.get("subjects"))
    subject_names = [
        (vm_objects.text(subject, "kind"), vm_objects.text(subject, "name")) for subject in subjects
    ]
    return Binding(
        vm_objects.text(manifest, "metadata", "namespace"),
        vm_objects.text(manifest, "metadata", "name"),
        _role(manifest),
        tuple(dict.fromkeys((kind, name) for kind, name in _usable(subject_names))),
    )


def parse_group(manifest: Manifest) -> Members:
    """Parse a Group; parts that are not valid are ignored."""
    listed = manifest.get("users")
    users = _usable((USER, name) for name in (listed if isinstance(listed, list) else ()))
    name = vm_objects.text(manifest, "metadata", "name")
    return Members(name, tuple(dict.fromkeys(user for _, user in users)))


def _role(manifest: Manifest) -> str:
    is_role = vm_objects.text(manifest, "roleRef", "kind") in ACCESS_ROLES
    return vm_objects.text(manifest, "roleRef", "name") if is_role else ""


def _usable(subjects: Any) -> Iterator[tuple[str, str]]:
    """Yield the users and groups with names that are possible here."""
    for kind, name in subjects:
        if kind not in {USER, GROUP} or not isinstance(name, str):
            continue
        if 0 < len(name) <= MAX_LENGTH and name.isprintable() and not name.startswith(_SYSTEM):
            yield kind, name
