"""Endpoints with the schema of a custom resource, and extraction of the schema from their responses.

/openapi/v2 has all kinds in one response and comes last; /openapi/v3 exists since Kubernetes 1.24.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pools.core.kubernetes.resources import Resource

Schema = dict[str, Any]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema_endpoints(
    resource: Resource,
) -> list[tuple[str, Callable[[Schema, Resource], Schema | None]]]:
    """Return the URL paths in order of preference, each with a function that extracts the schema."""
    return [
        (f"{_DEFINITIONS}/{resource.plural}.{resource.group}", _schema_of_definition),
        (f"/openapi/v3/apis/{resource.group}/{resource.version}", _schema_of_openapi3),
        ("/openapi/v2", _schema_of_openapi2),
    ]


def _schema_of_definition(answer: Schema, resource: Resource) -> Schema | None:
    for version in _list(_dict(answer.get("spec")).get("versions")):
        if version.get("name") == resource.version:
            return _dict(_dict(version.get("schema")).get("openAPIV3Schema")) or None
    return None


def _schema_of_openapi3(answer: Schema, resource: Resource) -> Schema | None:
    return _find_definition(_dict(_dict(answer.get("components")).get("schemas")), resource)


def _schema_of_openapi2(answer: Schema, resource: Resource) -> Schema | None:
    return _find_definition(_dict(answer.get("definitions")), resource)


def _find_definition(definitions: Schema, resource: Resource) -> Schema | None:
    group_version_kind = {
        "group": resource.group,
        "version": resource.version,
        "kind": resource.kind,
    }
    for definition in definitions.values():
        if group_version_kind in _list(_dict(definition).get("x-kubernetes-group-version-kind")):
            return _dict(definition)
    return None


def _dict(value: object) -> Schema:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Schema]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
