"""What the server says of itself: groups, versions, resources, OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.kube.fake.kinds import Kind, Version

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_REVIEWS = "authorization.k8s.io"


def version(minor: int) -> dict[str, str]:
    return {
        "major": "1",
        "minor": str(minor),
        "gitVersion": f"v1.{minor}.2",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.19",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _groups(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {_REVIEWS: ["v1"]}
    for kind in kinds:
        if kind.group:
            versions = result.setdefault(kind.group, [])
            versions += [
                item.name
                for item in kind.versions.values()
                if item.served and item.name not in versions
            ]
    return {group: sorted(versions, key=_priority) for group, versions in result.items()}


def _priority(name: str) -> tuple[int, str]:
    """v2 before v1, both before betas and alphas."""
    stable = name[1:].isdigit()
    return (-int(name[1:]), "") if stable else (1, name)


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{item}", "version": item} for item in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kinds: Iterable[Kind], group: str, version_name: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for kind in kinds:
        definition = kind.versions.get(version_name)
        if kind.group != group or definition is None or not definition.served:
            continue
        result.append(_resource(kind))
        if definition.status:
            result.append(
                {
                    "name": f"{kind.plural}/status",
                    "singularName": "",
                    "namespaced": kind.namespaced,
                    "kind": kind.kind,
                    "verbs": ["get", "patch", "update"],
                }
            )
    if group == _REVIEWS:
        result.append(
            {
                "name": "selfsubjectaccessreviews",
                "singularName": "",
                "namespaced": False,
                "kind": "SelfSubjectAccessReview",
                "verbs": ["create"],
            }
        )
    return result


def _resource(kind: Kind) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": VERBS,
    }
    if kind.short:
        resource["shortNames"] = list(kind.short)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    return resource


def answer(path: str, kinds: list[Kind], minor: int) -> dict[str, Any] | None:
    """The document of a discovery path; None when there is none."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return version(minor)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in _groups(kinds).items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in _groups(kinds):
            document = _group(group, _groups(kinds)[group])
            return {"kind": "APIGroup", "apiVersion": "v1"} | document
        case ["api", "v1"]:
            return _resource_list(kinds, "", "v1", "v1")
        case ["apis", group, one] if one in _groups(kinds).get(group, []):
            return _resource_list(kinds, group, one, f"{group}/{one}")
        case ["openapi", *rest]:
            return _openapi(rest, kinds, minor)
    return None


def _resource_list(kinds: list[Kind], group: str, group_version: str, name: str) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": name,
        "resources": _resources(kinds, group, group_version),
    }


def _definition_name(kind: Kind, definition: Version) -> str:
    if not kind.group:
        return f"io.k8s.api.core.{definition.name}.{kind.kind}"
    return ".".join([*reversed(kind.group.split(".")), definition.name, kind.kind])


def _definitions(kinds: Iterable[Kind], group: str | None, version_name: str) -> dict[str, Any]:
    return {
        _definition_name(kind, item): {
            **(item.schema or {"type": "object"}),
            "x-kubernetes-group-version-kind": [
                {"group": kind.group, "version": item.name, "kind": kind.kind}
            ],
        }
        for kind in kinds
        for item in kind.versions.values()
        if item.served and (group is None or (kind.group == group and item.name == version_name))
    }


def _openapi(rest: list[str], kinds: list[Kind], minor: int) -> dict[str, Any] | None:
    match rest:
        case ["v2"]:
            return {"swagger": "2.0", "paths": {}, "definitions": _definitions(kinds, None, "")}
        case ["v3"] if minor >= 24:
            names = ["api/v1"] + [
                f"apis/{group}/{item}"
                for group, versions in _groups(kinds).items()
                for item in versions
            ]
            return {"paths": {n: {"serverRelativeURL": f"/openapi/v3/{n}?hash=0"} for n in names}}
        case ["v3", "api", one] if minor >= 24:
            schemas = _definitions(kinds, "", one)
        case ["v3", "apis", group, one] if minor >= 24 and one in _groups(kinds).get(group, []):
            schemas = _definitions(kinds, group, one)
        case _:
            return None
    return {"openapi": "3.0.0", "paths": {}, "components": {"schemas": schemas}}
