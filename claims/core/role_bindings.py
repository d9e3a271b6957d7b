"""RoleBindings and OpenShift's groups: whom a cluster itself lets work in its namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from claims.core.workloads import vm_objects

Manifest = dict[str, Any]

USER, GROUP = "User", "Group"
ROLES = {"ClusterRole", "Role"}
LONGEST = 150  # of a user or group of ours; nobody has a longer name
_SYSTEM = "system:"  # of Kubernetes itself: system:authenticated is everybody


@dataclass(frozen=True)
class Binding:
    """A RoleBinding; `subjects` are (kind, name) of its users and groups, each once."""

    namespace: str
    name: str
    role: str
    subjects: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Members:
    """A Group of user.openshift.io/v1 and its users' names, each once."""

    name: str
    users: tuple[str, ...] = ()


def binding(manifest: Manifest) -> Binding:
    """What is understood of a RoleBinding; what is not makes nobody an owner."""
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


def members(manifest: Manifest) -> Members:
    """What is understood of a Group."""
    listed = manifest.get("users")
    users = _usable((USER, name) for name in (listed if isinstance(listed, list) else ()))
    name = vm_objects.text(manifest, "metadata", "name")
    return Members(name, tuple(dict.fromkeys(user for _, user in users)))


def counts(manifest: Manifest, roles: Collection[str]) -> bool:
    """Whether it binds somebody to one of these roles."""
    role_binding = binding(manifest)
    return role_binding.role in roles and bool(role_binding.subjects)


def _role(manifest: Manifest) -> str:
    is_role = vm_objects.text(manifest, "roleRef", "kind") in ROLES
    return vm_objects.text(manifest, "roleRef", "name") if is_role else ""


def _usable(subjects: Any) -> Iterator[tuple[str, str]]:
    """Of users and groups, names that somebody here may have."""
    for kind, name in subjects:
        if kind not in {USER, GROUP} or not isinstance(name, str):
            continue
        if 0 < len(name) <= LONGEST and name.isprintable() and not name.startswith(_SYSTEM):
            yield kind, name
