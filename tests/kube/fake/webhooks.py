"""Admission webhooks, called as the API server calls them (admission.k8s.io/v1)."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.parse
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pools.core.kubernetes import label_selector
from tests.kube.fake import patches, refusals
from tests.kube.fake.access import User

if TYPE_CHECKING:
    from tests.kube.fake.cluster import FakeCluster
    from tests.kube.fake.writes import Item, Write

_DEFAULT_SECONDS = 10


def _matches(rule: dict[str, Any], write: Write, operation: str) -> bool:
    resource = (
        f"{write.kind.plural}/{write.subresource}" if write.subresource else write.kind.plural
    )
    served = set(write.kind.versions)  # matchPolicy Equivalent
    return (
        bool({"*", write.kind.group} & set(rule["apiGroups"]))
        and bool(({"*"} | served) & set(rule["apiVersions"]))
        and bool({"*", operation} & set(rule["operations"]))
        and bool({"*", resource, "*/*"} & set(rule["resources"]))
    )


def _selects(hook: dict[str, Any], namespace: dict[str, str], *objects: Item | None) -> bool:
    """Whether the objectSelector takes the object before or after, and the namespace is taken."""
    by_object = label_selector.parse(hook.get("objectSelector") or {})
    by_namespace = label_selector.parse(hook.get("namespaceSelector") or {})
    labels = [item["metadata"].get("labels") or {} for item in objects if item is not None]
    return any(map(by_object.matches, labels)) and by_namespace.matches(namespace)


@dataclass
class Webhooks:
    """The webhooks that one request may meet; mutating ones come first."""

    hooks: list[tuple[bool, dict[str, Any]]]
    user: User
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)  # their labels
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def for_user(cls, cluster: FakeCluster, user: User) -> Self:
        hooks = []
        for word in ("mutating", "validating"):
            result = cluster.objects(f"{word}webhookconfigurations")
            for configuration in sorted(result, key=lambda item: str(item["metadata"]["name"])):
                hooks += [(word == "mutating", item) for item in configuration.get("webhooks", ())]
        metadata = (item["metadata"] for item in cluster.objects("namespaces")) if hooks else ()
        namespaces = {
            item["name"]: {"kubernetes.io/metadata.name": item["name"], **item.get("labels", {})}
            for item in metadata
        }
        return cls(hooks, user, namespaces)

    def admit(self, write: Write, operation: str, before: Item | None, after: Item | None) -> None:
        """Refused when one denies, or cannot be asked and its policy is Fail; may change `after`."""
        for mutating, hook in self.hooks:
            if not any(_matches(rule, write, operation) for rule in hook.get("rules", ())):
                continue
            if not _selects(hook, self.namespaces.get(write.namespace or "", {}), before, after):
                continue
            if write.dry_run and hook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
                raise refusals.bad_request(
                    f'admission webhook "{hook["name"]}" does not support dry run'
                )
            self._ask(mutating, hook, _review(self.user, write, operation, before, after), after)

    def _ask(
        self, mutating: bool, hook: dict[str, Any], review: dict[str, Any], after: Item | None
    ) -> None:
        name = hook["name"]
        try:
            response = _post(hook, review)
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as wrong:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return
            raise refusals.Refused(
                500, f'Internal error occurred: failed calling webhook "{name}": {wrong}'
            ) from wrong
        self.warnings += response.get("warnings", ())
        if not response["allowed"]:
            raise _denied(name, response.get("status") or {})
        if mutating and after is not None and response.get("patch"):
            changed = patches.json_patch(after, json.loads(base64.b64decode(response["patch"])))
            after.clear()
            after.update(changed)


def _denied(name: str, status: dict[str, Any]) -> refusals.Refused:
    code = status.get("code") or 400
    text = f'admission webhook "{name}" denied the request'
    message = status.get("message") or status.get("reason")
    return refusals.Refused(
        max(code, 400),
        f"{text}: {message}" if message else f"{text} without explanation",
        reason=status.get("reason") or refusals.REASONS.get(code, "BadRequest"),
        details=status.get("details"),
    )


def _review(
    user: User, write: Write, operation: str, before: Item | None, after: Item | None
) -> dict[str, Any]:
    kind, version = write.kind, write.version
    names = {"group": kind.group, "version": version}
    name = write.name or (after or {}).get("metadata", {}).get("name", "")
    option = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": names | {"kind": kind.kind},
        "resource": names | {"resource": kind.plural},
        "requestKind": names | {"kind": kind.kind},
        "requestResource": names | {"resource": kind.plural},
        "name": name,
        "operation": operation,
        "userInfo": {"username": user.name, "groups": [*user.groups, "system:authenticated"]},
        "object": after,
        "oldObject": before,
        "dryRun": write.dry_run,
        "options": {"kind": option[operation], "apiVersion": "meta.k8s.io/v1"},
    }
    if write.namespace:
        request["namespace"] = write.namespace
    if write.subresource:
        request["subResource"] = request["requestSubResource"] = write.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _post(hook: dict[str, Any], review: dict[str, Any]) -> dict[str, Any]:
    """The response part of the answer; its errors are the webhook's failure."""
    client = hook["clientConfig"]
    url = urllib.parse.urlsplit(client["url"])
    ca = base64.b64decode(client["caBundle"]).decode() if client.get("caBundle") else None
    connection = http.client.HTTPSConnection(
        url.hostname or "",
        url.port or 443,
        timeout=hook.get("timeoutSeconds", _DEFAULT_SECONDS),
        context=ssl.create_default_context(cadata=ca),
    )
    try:
        body = json.dumps(review)
        connection.request("POST", url.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise ValueError(f"the server answered {answer.status}")
        response: dict[str, Any] = json.loads(content)["response"]
        if response["uid"] != review["request"]["uid"]:
            raise ValueError("expected response.uid to be that of the request")
        return response
    finally:
        connection.close()
