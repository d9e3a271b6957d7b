"""From a request to its answer: access, discovery, reads, writes."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.kube.fake import discovery, refusals, selectors, watching
from tests.kube.fake.access import Question, User
from tests.kube.fake.journal import Request
from tests.kube.fake.kinds import Kind
from tests.kube.fake.paths import Target
from tests.kube.fake.store import Page, Stored, encode
from tests.kube.fake.webhooks import Webhooks
from tests.kube.fake.writes import Write

if TYPE_CHECKING:
    from tests.kube.fake.cluster import FakeCluster

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCHES = {"application/merge-patch+json", "application/strategic-merge-patch+json"}
_TRUE = {"1", "true", "True"}


@dataclass(frozen=True)
class Answer:
    """What goes back: a body, or the lines of a watch."""

    code: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    lines: Iterator[bytes] | None = None


@dataclass(frozen=True)
class Call:
    """One request to one cluster."""

    cluster: FakeCluster
    request: Request
    target: Target | None
    account: User | None

    @property
    def user(self) -> User:
        """Refused 401 for a token that nobody has."""
        if self.account is None:
            raise refusals.Refused(401, "Unauthorized")
        return self.account

    def flag(self, name: str) -> bool:
        return self.request.query.get(name) in _TRUE

    def text(self, name: str) -> str:
        return self.request.query.get(name, "")

    def number(self, name: str) -> int:
        text = self.text(name)
        if text and not text.isdigit():
            raise refusals.bad_request(f"invalid {name}: {text!r}")
        return int(text or 0)


def answer(call: Call) -> Answer:
    """Refused or NoSuchPath where there is none."""
    target = call.target
    if target is not None and target.plural == "selfsubjectaccessreviews":
        return _review(call)
    if target is None:
        return _about_the_server(call)
    _authorize(call, _question(call.request.verb, target, selected=call.text("fieldSelector")))
    kind = _kind(call, target)
    if call.request.verb == "list":
        return _list(call, target, kind)
    if call.request.verb == "watch":
        return _watch(call, target, kind)
    if call.request.verb == "get":
        stored = _write(call, target, kind, Webhooks([], call.user)).existing()
        return Answer(200, stored.encoded(target.version))
    return _change(call, target, kind)


def _question(verb: str, target: Target, *, selected: str = "") -> Question:
    # A namespace is asked for within itself.
    inside = target.name if target.plural == "namespaces" and not target.group else ""
    # A list of one name is a request for this name.
    name = target.name or selected.partition("metadata.name=")[2]
    return Question(verb, target.group, target.resource, target.namespace or inside, name)


def _authorize(call: Call, question: Question) -> None:
    accounts = call.cluster.accounts
    if accounts.may(call.user, question):
        return
    refusal = accounts.refusal(call.user, question)
    if question.path:
        raise refusals.Refused(403, refusal, details={})
    subject = f"{question.resource.partition('/')[0]}"
    subject += f".{question.group}" if question.group else ""
    name = f' "{question.name}"' if question.name else ""
    details = {"group": question.group} if question.group else {}
    details |= {"kind": question.resource.partition("/")[0]}
    details |= {"name": question.name} if question.name else {}
    raise refusals.Refused(403, f"{subject}{name} is forbidden: {refusal}", details=details)


def _about_the_server(call: Call) -> Answer:
    path = call.request.path
    _authorize(call, Question(call.request.verb, path=path))
    if path in {"/healthz", "/livez", "/readyz"}:
        return Answer(200, b"ok", content_type="text/plain")
    document = discovery.answer(path, call.cluster.kinds, call.cluster.minor)
    if document is None:
        raise refusals.NoSuchPath
    return Answer(200, encode(document))


def _kind(call: Call, target: Target) -> Kind:
    kind = call.cluster.kind(target.group, target.plural)
    version = kind.versions.get(target.version) if kind else None
    if kind is not None and version is not None and version.served:
        if not target.subresource or (target.subresource == "status" and version.status):
            return kind
        raise refusals.not_found(kind, target.name)
    builtin = any(kind.group == target.group and kind.builtin for kind in call.cluster.kinds)
    if builtin:
        raise refusals.Refused(404, "the server could not find the requested resource", details={})
    raise refusals.NoSuchPath


def _review(call: Call) -> Answer:
    """SelfSubjectAccessReview: may I?"""
    assert call.target is not None
    _authorize(call, _question(call.request.verb, call.target))
    body = _parsed(call)
    spec = body.get("spec", {})
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        other = spec.get("nonResourceAttributes", {})
        question = Question(other.get("verb", ""), path=other.get("path", ""))
    else:
        resource, sub = attributes.get("resource", ""), attributes.get("subresource", "")
        question = Question(
            attributes.get("verb", ""),
            attributes.get("group", ""),
            f"{resource}/{sub}" if sub else resource,
            attributes.get("namespace", ""),
            attributes.get("name", ""),
        )
    status: dict[str, Any] = {"allowed": call.cluster.accounts.may(call.user, question)}
    return Answer(201, encode(body | {"status": status}))


# --- reads --------------------------------------------------------------------------------------


def _selected(call: Call) -> selectors.Test | None:
    return selectors.parse(call.text("labelSelector"), call.text("fieldSelector"))


def _page(call: Call, target: Target, kind: Kind) -> Page:
    return call.cluster.store.page(
        kind,
        target.namespace,
        limit=call.number("limit"),
        token=call.text("continue"),
        test=_selected(call),
    )


def _list(call: Call, target: Target, kind: Kind) -> Answer:
    page = _page(call, target, kind)
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    head = {
        "apiVersion": kind.api_version(target.version),
        "kind": kind.list_kind,
        "metadata": metadata,
    }
    items = b",".join([item.encoded(target.version, listed=True) for item in page.objects])
    return Answer(200, encode(head)[:-1] + b',"items":[' + items + b"]}")


def _watch(call: Call, target: Target, kind: Kind) -> Answer:
    seconds = call.number("timeoutSeconds") or 1800 + secrets.randbelow(1800)
    watch = watching.Watch(
        store=call.cluster.store,
        kind=kind,
        version=target.version,
        namespace=target.namespace,
        test=_selected(call),
        since=call.number("resourceVersion"),
        seconds=seconds,
        bookmarks=call.flag("allowWatchBookmarks"),
        ended=call.cluster.ended,
        bookmark_seconds=call.cluster.bookmark_seconds,
    )
    return Answer(200, b"", lines=watch.lines())


# --- writes -------------------------------------------------------------------------------------


def _parsed(call: Call) -> Any:
    try:
        return json.loads(call.request.body)
    except ValueError as wrong:
        raise refusals.bad_request(f"the object provided is unrecognized: {wrong}") from wrong


def _write(call: Call, target: Target, kind: Kind, hooks: Webhooks) -> Write:
    manager = call.text("fieldManager") or re.split("[/ ]", call.request.user_agent)[0]
    return Write(
        call.cluster.store,
        kind,
        target.version,
        namespace=target.namespace,
        name=target.name,
        subresource=target.subresource,
        manager=manager[:128] or "unknown",
        dry_run=_is_dry(call, target),
        strict=call.text("fieldValidation") == "Strict" and call.cluster.minor >= 25,
        minor=call.cluster.minor,
        user=call.user.name,
        admit=hooks.admit,
    )


def _is_dry(call: Call, target: Target) -> bool:
    """The options of a DELETE come from its body, and from the query only when it has none."""
    dry = call.text("dryRun")
    if call.request.method == "DELETE" and call.request.body and target.name:
        dry = "".join(_parsed(call).get("dryRun") or ())
    if dry not in {"", "All"}:
        raise refusals.bad_request(f'dryRun: Unsupported value: "{dry}": supported values: "All"')
    return dry == "All"


def _change(call: Call, target: Target, kind: Kind) -> Answer:
    if kind.namespaced and not target.namespace:
        raise refusals.Refused(
            405, "the server does not allow this method on the requested resource"
        )
    if "protobuf" in call.request.content_type:
        raise refusals.Refused(415, "the fake reads JSON and YAML only")
    hooks = Webhooks.for_user(call.cluster, call.user)
    write = _write(call, target, kind, hooks)
    with call.cluster.store.changed:
        code, body, stored = _done(call, write)
        if not write.dry_run:
            deleted = call.request.method == "DELETE"
            gone = stored.key not in call.cluster.store.shelf(kind).objects
            call.cluster.noticed(kind, stored, gone=deleted and gone)
    return Answer(code, body, warnings=hooks.warnings)


def _done(call: Call, write: Write) -> tuple[int, bytes, Stored]:
    version = write.version
    match call.request.method:
        case "POST":
            _check_namespace(call, write)
            stored = write.create(_parsed(call))
            return 201, stored.encoded(version), stored
        case "PUT":
            stored = write.replace(_parsed(call))
        case "PATCH":
            return _patched(call, write)
        case "DELETE":
            return _deleted(call, write)
        case _:
            raise refusals.Refused(405, "the server does not allow this method")
    return 200, stored.encoded(version), stored


def _check_namespace(call: Call, write: Write) -> None:
    if not write.namespace:
        return
    namespaces = call.cluster.kind("", "namespaces")
    assert namespaces is not None
    if call.cluster.store.get(namespaces, write.namespace) is None:
        raise refusals.not_found(namespaces, write.namespace)


def _patched(call: Call, write: Write) -> tuple[int, bytes, Stored]:
    how = call.request.content_type.partition(";")[0]
    if how == _APPLY:
        if not call.text("fieldManager"):
            cause = {
                "reason": "FieldValueRequired",
                "message": "Required value: is required for apply patch",
                "field": "fieldManager",
            }
            raise refusals.Refused(
                422,
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required'
                " for apply patch",
                details={"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause]},
            )
        _check_namespace(call, write)
        stored, created = write.apply(_parsed(call), force=call.flag("force"))
        return 201 if created else 200, stored.encoded(write.version), stored
    strategic = how == "application/strategic-merge-patch+json" and not write.kind.builtin
    if strategic or (how != _JSON_PATCH and how not in _MERGE_PATCHES):
        raise refusals.Refused(
            415,
            "the body of the request was in an unknown format - accepted media types include:"
            f" {_JSON_PATCH}, application/merge-patch+json, {_APPLY}",
        )
    stored = write.patch(_parsed(call), json_patch=how == _JSON_PATCH)
    return 200, stored.encoded(write.version), stored


def _deleted(call: Call, write: Write) -> tuple[int, bytes, Stored]:
    if not write.name:
        raise refusals.Refused(405, "the fake does not delete collections")
    options = _parsed(call) if call.request.body else {}
    stored, gone = write.delete(options)
    if not gone or write.kind.plural == "pods":
        return 200, stored.encoded(write.version), stored
    kind = write.kind
    details = refusals.about(kind, write.name, kind=kind.plural, uid=stored.item["metadata"]["uid"])
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    return 200, encode(status), stored
