"""AdmissionReview v1: parse the request of an API server, build the response."""

import base64
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from pools.core import errors, object_reader
from pools.platform import documents

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
LARGEST = 3 * 1024 * 1024  # bytes; the limit of API servers for requests
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
# Limits of API servers: they cut longer warnings and drop those beyond the total.
LONGEST_WARNING = 256  # characters
ALL_WARNINGS = 4096  # characters
_CAUSES = 20
_GENERATED = "00000"  # placeholder for the suffix that the API server will generate


@dataclass(frozen=True)
class Review:
    """The change to validate.

    `new` is None for DELETE; `old` is None for CREATE and if the request does not contain it.
    """

    uid: str
    operation: str
    name: str
    version: str  # in which the request was made, e.g. v2
    new: object_reader.Json | None
    old: object_reader.Json | None
    namespace: str = ""
    dry_run: bool = False


@dataclass
class ReviewResult:
    """The result of a review: refused if `refusals` is not empty; clients see warnings in any case.

    `patch` (RFC 6902) has the changes of a mutating webhook to an object that is not refused.
    """

    refusals: list[errors.IpamError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    patch: list[dict[str, Any]] | None = None

    def refuse(self, refusal: errors.IpamError) -> None:
        self.refusals.append(refusal)

    def warn(self, message: str, field: str = "") -> None:
        self.warnings.append(f"{field}: {message}" if field else message)


def parse(body: bytes, *, group: str, plurals: Collection[str]) -> Review:
    """Return the review of a body, for a resource of this group with one of these plural names.

    Raises InvalidInput: the codes of documents.load_json, required, wrong_type, unsupported_kind
    (no AdmissionReview v1, or another resource), invalid_choice (another operation).
    """
    report = object_reader.ProblemReport(strict=False)
    document = object_reader.Fields(documents.load_json(body, limit=LARGEST), "", report)
    if (document.data.get("apiVersion"), document.data.get("kind")) != (API_VERSION, KIND):
        message = f"an {KIND} of {API_VERSION} is expected"
        report.add("kind", "unsupported_kind", message, document.data.get("kind"))
        report.raise_any()
    request = document.section("request")
    resource = request.section("resource")
    requested_plural = resource.data.get("resource")
    if (resource.data.get("group") or "") != group or requested_plural not in plurals:
        names = " and ".join(f"{plural}.{group}".rstrip(".") for plural in plurals)
        message = f"this webhook reviews {names}"
        report.add(resource.base_path, "unsupported_kind", message, requested_plural)
    # The version of the original request: the API server converts it with matchPolicy Equivalent.
    requested_resource = request.section("requestResource")
    operation = request.parse("operation", _operation) or ""
    old, new = request.mapping("oldObject"), request.mapping("object")
    if new is None and operation in {CREATE, UPDATE}:
        report.add(request.path("object"), "required", "is required")
    review = Review(
        uid=request.parse("uid", _text) or "",
        operation=operation,
        name=_name(new or old or {}, request),
        version=str((requested_resource.data or resource.data).get("version") or ""),
        new=None if operation == DELETE else new,
        old=None if operation == CREATE else old,
        namespace=request.parse("namespace", _text) or "" if request.data.get("namespace") else "",
        dry_run=request.flag("dryRun"),
    )
    report.raise_any()
    return review


def answer(review: Review, result: ReviewResult) -> dict[str, Any]:
    """Return the AdmissionReview with the response."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not result.refusals}
    if result.refusals:
        response["status"] = _status(result.refusals)
    elif result.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(result.patch).encode()).decode()
    if result.warnings:
        response["warnings"] = shorten_warnings(result.warnings)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def shorten_warnings(warnings: Iterable[str]) -> list[str]:
    """Return printable warnings of at most 256 characters each and 4096 in total.

    If some do not fit, the last warning has their number.
    """
    texts = [_cut(_printable(text)) for text in warnings]
    if sum(map(len, texts)) <= ALL_WARNINGS:
        return texts
    selected: list[str] = []
    remaining = ALL_WARNINGS - len(_more(len(texts)))
    for text in texts:
        remaining -= len(text)
        if remaining < 0:
            break
        selected.append(text)
    return [*selected, _more(len(texts) - len(selected))]


def _more(count: int) -> str:
    return f"and {count} more warnings"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WARNING else text[: LONGEST_WARNING - 1] + "…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _status(refusals: list[errors.IpamError]) -> dict[str, Any]:
    """Return the Status of a refusal: 422 if the object is invalid, else 403.

    Not 409: clients treat it as a conflict with another writer and retry at once.
    """
    problems = [problem for refusal in refusals for problem in _problems(refusal)]
    messages = [
        f"{problem.field}: {problem.message}" if problem.field else problem.message
        for problem in problems
    ]
    unlisted = len(messages) - _CAUSES
    is_invalid = all(
        isinstance(problem, errors.InvalidInput | errors.ImmutableInUse) for problem in refusals
    )
    return {
        "code": 422 if is_invalid else 403,
        "reason": "Invalid" if is_invalid else "Forbidden",
        "message": _printable(
            "; ".join(messages[:_CAUSES]) + (f"; and {unlisted} more" * (unlisted > 0))
        ),
        "details": {
            "causes": [
                {
                    "reason": problem.code,
                    "field": problem.field,
                    "message": _printable(problem.message),
                }
                for problem in problems[:_CAUSES]
            ]
        },
    }


def _problems(refusal: errors.IpamError) -> Iterable[errors.FieldProblem]:
    return refusal.problems or (errors.FieldProblem("", refusal.code, refusal.message),)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or not value:
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected", value)
    return value


def _operation(value: object, field: str) -> str:
    if value not in (CREATE, UPDATE, DELETE):
        message = f"must be {CREATE}, {UPDATE} or {DELETE}"
        raise errors.InvalidInput.for_field(field, "invalid_choice", message, value)
    return str(value)


def _name(manifest: object_reader.Json, request: object_reader.Fields) -> str:
    """Return the name of the object.

    The request has none if it deletes a collection or if the name is to be generated.
    """
    metadata = manifest.get("metadata")
    metadata_object = metadata if isinstance(metadata, dict) else {}
    name = metadata_object.get("name") or request.data.get("name")
    if not name and isinstance(metadata_object.get("generateName"), str):
        name = metadata_object["name"] = metadata_object["generateName"] + _GENERATED
    if not name:
        request.report.add(request.path("name"), "required", "is required")
        return ""
    return _text(name, request.path("name"))
