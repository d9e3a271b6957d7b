"""Parsers of RoleBindings and OpenShift's groups, which grant access to namespaces of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from claims.core.workloads import vm_objects
from pools.core.kubernetes.resources import Manifest

USER, GROUP = "User", "Group"
ROLES = {"ClusterRole", "Role"}
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


def grants_role(manifest: Manifest, roles: Collection[str]) -> bool:
    """Return True if the RoleBinding grants one of these roles to a user or a group."""
    role_binding = parse_binding(manifest)
    return role_binding.role in roles and bool(role_binding.subjects)


def _role(manifest: Manifest) -> str:
    is_role = vm_objects.text(manifest, "roleRef", "kind") in ROLES
    return vm_objects.text(manifest, "roleRef", "name") if is_role else ""


def _usable(subjects: Any) -> Iterator[tuple[str, str]]:
    """Yield the users and groups with names that are possible here."""
    for kind, name in subjects:
        if kind not in {USER, GROUP} or not isinstance(name, str):
            continue
        if 0 < len(name) <= MAX_LENGTH and name.isprintable() and not name.startswith(_SYSTEM):
            yield kind, name
