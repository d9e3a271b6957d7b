"""The kinds that are served: a few of the core, and those of custom resource definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.kube.fake import refusals

Schema = dict[str, Any]

_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
    "x-kubernetes-preserve-unknown-fields": True,
}
_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True)
class Version:
    """One served version; without a schema everything is kept, as the core kinds are here."""

    name: str
    schema: Schema | None = None
    status: bool = False
    served: bool = True
    storage: bool = True


@dataclass(frozen=True, eq=False)
class Kind:
    """A resource of the API, in all its versions."""

    group: str
    plural: str
    kind: str
    namespaced: bool
    versions: dict[str, Version]
    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    builtin: bool = False
    uid: str = field(default="")

    @property
    def resource(self) -> str:
        """`ciliumpodippools.cilium.io`, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.plural

    @cached_property
    def storage(self) -> Version:
        return next(version for version in self.versions.values() if version.storage)

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """Schema of each version, metadata included."""
        return {name: _whole(version.schema) for name, version in self.versions.items()}

    def check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name) or len(name) > 253:
            cause = {
                "reason": "FieldValueInvalid",
                "message": f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of'
                " lower case alphanumeric characters, '-' or '.', and must start and end with an"
                " alphanumeric character",
                "field": "metadata.name",
            }
            raise refusals.invalid(self, name, [cause])

    def check_labels(self, name: str, labels: dict[str, Any]) -> None:
        causes = [
            {
                "reason": "FieldValueInvalid",
                "message": f'Invalid value: "{value}": a valid label must be an empty string or'
                " consist of alphanumeric characters, '-', '_' or '.'",
                "field": "metadata.labels",
            }
            for value in labels.values()
            if not _LABEL.fullmatch(str(value)) or len(str(value)) > 63
        ]
        if causes:
            raise refusals.invalid(self, name, causes)


def _whole(schema: Schema | None) -> Schema:
    if schema is None:
        return {
            "type": "object",
            "properties": {"metadata": _METADATA},
            "x-kubernetes-preserve-unknown-fields": True,
        }
    standard = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
    return schema | {"properties": schema.get("properties", {}) | standard}


def _core(
    plural: str,
    kind: str,
    *,
    group: str = "",
    version: str = "v1",
    namespaced: bool = False,
    status: bool = False,
    short: tuple[str, ...] = (),
) -> Kind:
    return Kind(
        group=group,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        versions={version: Version(version, status=status)},
        singular=kind.lower(),
        short=short,
        list_kind=f"{kind}List",
        builtin=True,
    )


def core() -> list[Kind]:
    """The built-in kinds that this project reads, and those that define others."""
    return [
        _core("namespaces", "Namespace", status=True, short=("ns",)),
        _core("nodes", "Node", status=True, short=("no",)),
        _core("pods", "Pod", namespaced=True, status=True, short=("po",)),
        _core("services", "Service", namespaced=True, status=True, short=("svc",)),
        _core("configmaps", "ConfigMap", namespaced=True, short=("cm",)),
        _core("secrets", "Secret", namespaced=True),
        _core("leases", "Lease", group="coordination.k8s.io", namespaced=True),
        _core(
            "rolebindings",
            "RoleBinding",
            group="rbac.authorization.k8s.io",
            namespaced=True,
        ),
        _core(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            group="apiextensions.k8s.io",
            status=True,
            short=("crd",),
        ),
        *(
            _core(f"{word}webhookconfigurations", kind, group="admissionregistration.k8s.io")
            for word, kind in (
                ("validating", "ValidatingWebhookConfiguration"),
                ("mutating", "MutatingWebhookConfiguration"),
            )
        ),
    ]


def from_definition(manifest: dict[str, Any], uid: str = "") -> Kind:
    """The kind that a CustomResourceDefinition (apiextensions.k8s.io/v1) describes."""
    spec = manifest["spec"]
    names = spec["names"]
    versions = {
        version["name"]: Version(
            version["name"],
            schema=version.get("schema", {}).get("openAPIV3Schema", {"type": "object"}),
            status="status" in version.get("subresources", {}),
            served=version["served"],
            storage=version["storage"],
        )
        for version in spec["versions"]
    }
    return Kind(
        group=spec["group"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        versions=versions,
        singular=names.get("singular", names["kind"].lower()),
        short=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        list_kind=names.get("listKind", f"{names['kind']}List"),
        uid=uid,
    )
