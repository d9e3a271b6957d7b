"""Where an API server keeps what: the paths of resources."""

from __future__ import annotations

from typing import Protocol
from urllib import parse

from pools.clusters import faults


class Resource(Protocol):
    """A kind of object as one version of its group serves it (pools.core.resources)."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...


def of_group(group: str, version: str) -> str:
    """`/apis/cilium.io/v2`, and `/api/v1` for the group without a name."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def of(resource: Resource, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of a collection, of an object, or of its subresource, percent-encoded.

    Without a namespace a namespaced collection is that of all namespaces. Raises ObjectAbsent for
    the names `.` and `..`.
    """
    parts = [of_group(resource.group, resource.version)]
    if namespace and resource.namespaced:
        parts += ["namespaces", _quoted(namespace)]
    parts.append(resource.plural)
    if name:
        parts.append(_quoted(name))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def _quoted(name: str) -> str:
    if not name.strip("."):
        # They would be other paths.
        raise faults.ObjectAbsent(f"no object has the name {name}")
    return parse.quote(name, safe="")
