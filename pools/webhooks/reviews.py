"""AdmissionReview v1: the question of an API server, and the answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from pools.core import errors, object_reader
from pools.platform import documents

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
LARGEST = 3 * 1024 * 1024  # bytes; an API server takes no larger request itself
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
# What API servers pass on: longer warnings are cut, and those beyond the total are dropped.
LONGEST_WARNING = 256  # characters
ALL_WARNINGS = 4096
_CAUSES = 20
_GENERATED = "00000"  # stands for the suffix that the server will choose


@dataclass(frozen=True)
class Review:
    """What is to be judged: `new` is None on DELETE, `old` on CREATE (and where it was left out)."""

    uid: str
    operation: str
    name: str
    version: str  # in which the request was made, e.g. v2
    new: object_reader.Json | None
    old: object_reader.Json | None
    namespace: str = ""
    dry_run: bool = False


@dataclass
class Verdict:
    """Refused when there is a refusal; warnings are shown to the caller either way.

    `patch` (RFC 6902) is what a mutating webhook changes in an object that is not refused.
    """

    refusals: list[errors.IpamError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    patch: list[dict[str, Any]] | None = None

    def refuse(self, refusal: errors.IpamError) -> None:
        self.refusals.append(refusal)

    def warn(self, message: str, at: str = "") -> None:
        self.warnings.append(f"{at}: {message}" if at else message)


def parse(body: bytes, *, group: str, plurals: Collection[str]) -> Review:
    """The review of a resource of that group that has one of these names.

    Raises InvalidInput: those of documents.load_json, required, wrong_type, unsupported_kind (no
    AdmissionReview v1, or of another resource), invalid_choice (another operation).
    """
    report = object_reader.ProblemReport(strict=False)
    review = object_reader.Fields(documents.load_json(body, limit=LARGEST), "", report)
    if (review.data.get("apiVersion"), review.data.get("kind")) != (API_VERSION, KIND):
        message = f"an {KIND} of {API_VERSION} is expected"
        report.add("kind", "unsupported_kind", message, review.data.get("kind"))
        report.raise_any()
    request = review.section("request")
    resource = request.section("resource")
    asked_for = resource.data.get("resource")
    if (resource.data.get("group") or "") != group or asked_for not in plurals:
        names = " and ".join(f"{plural}.{group}".rstrip(".") for plural in plurals)
        message = f"reviews of {names} are answered here"
        report.add(resource.base_path, "unsupported_kind", message, asked_for)
    # Another version than that of the objects when only an equivalent one is registered for.
    asked = request.section("requestResource")
    operation = request.parse("operation", _operation) or ""
    old, new = request.mapping("oldObject"), request.mapping("object")
    if new is None and operation in {CREATE, UPDATE}:
        report.add(request.path("object"), "required", "is required")
    found = Review(
        uid=request.parse("uid", _text) or "",
        operation=operation,
        name=_name(new or old or {}, request),
        version=str((asked.data or resource.data).get("version") or ""),
        new=None if operation == DELETE else new,
        old=None if operation == CREATE else old,
        namespace=request.parse("namespace", _text) or "" if request.data.get("namespace") else "",
        dry_run=request.flag("dryRun"),
    )
    report.raise_any()
    return found


def answer(review: Review, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview that answers it."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not verdict.refusals}
    if verdict.refusals:
        response["status"] = _status(verdict.refusals)
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(verdict.patch).encode()).decode()
    if verdict.warnings:
        response["warnings"] = shortened(verdict.warnings)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def shortened(warnings: Iterable[str]) -> list[str]:
    """Printable, at most 256 characters each and 4096 in all; the last one counts what is left."""
    texts = [_cut(_printable(text)) for text in warnings]
    if sum(map(len, texts)) <= ALL_WARNINGS:
        return texts
    shown: list[str] = []
    room = ALL_WARNINGS - len(_more(len(texts)))
    for text in texts:
        room -= len(text)
        if room < 0:
            break
        shown.append(text)
    return [*shown, _more(len(texts) - len(shown))]


def _more(count: int) -> str:
    return f"and {count} more warnings"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WARNING else text[: LONGEST_WARNING - 1] + "…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _status(refusals: list[errors.IpamError]) -> dict[str, Any]:
    """403 for what the register forbids, 422 for what is wrong with the object itself.

    Not 409: clients take that for a race with another writer, and try again at once.
    """
    problems = [problem for refusal in refusals for problem in _problems(refusal)]
    told = [f"{each.field}: {each.message}" if each.field else each.message for each in problems]
    left = len(told) - _CAUSES
    wrong = all(isinstance(each, errors.InvalidInput | errors.ImmutableInUse) for each in refusals)
    return {
        "code": 422 if wrong else 403,
        "reason": "Invalid" if wrong else "Forbidden",
        "message": _printable("; ".join(told[:_CAUSES]) + (f"; and {left} more" * (left > 0))),
        "details": {
            "causes": [
                {"reason": each.code, "field": each.field, "message": _printable(each.message)}
                for each in problems[:_CAUSES]
            ]
        },
    }


def _problems(refusal: errors.IpamError) -> Iterable[errors.FieldProblem]:
    return refusal.problems or (errors.FieldProblem("", refusal.code, refusal.message),)


def _text(value: object, at: str) -> str:
    if not isinstance(value, str) or not value:
        raise errors.InvalidInput.for_field(at, "wrong_type", "a text is expected", value)
    return value


def _operation(value: object, at: str) -> str:
    if value not in (CREATE, UPDATE, DELETE):
        message = f"must be {CREATE}, {UPDATE} or {DELETE}"
        raise errors.InvalidInput.for_field(at, "invalid_choice", message, value)
    return str(value)


def _name(manifest: object_reader.Json, request: object_reader.Fields) -> str:
    """The object's, which a request for a collection has not; older servers name it afterwards."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    name = named.get("name") or request.data.get("name")
    if not name and isinstance(named.get("generateName"), str):
        name = named["name"] = named["generateName"] + _GENERATED
    return _text(name, request.path("name")) if name else _absent(request)


def _absent(request: object_reader.Fields) -> str:
    request.report.add(request.path("name"), "required", "is required")
    return ""
