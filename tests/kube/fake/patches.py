"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396)."""

from __future__ import annotations

import copy
from typing import Any

from tests.kube.fake import refusals


def merge(target: Any, patch: Any) -> Any:
    """The target after a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise refusals.bad_request(f"not a JSON pointer: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _find(document: Any, parts: list[str]) -> Any:
    for part in parts:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _add(parent: Any, last: str, value: Any) -> None:
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), value)
    else:
        parent[last] = value


def _drop(parent: Any, last: str) -> Any:
    return parent.pop(int(last)) if isinstance(parent, list) else parent.pop(last)


def _step(document: Any, operation: dict[str, Any]) -> None:
    *inner, last = _parts(operation["path"])
    parent = _find(document, inner)
    match operation["op"]:
        case "add":
            _add(parent, last, operation["value"])
        case "remove":
            _drop(parent, last)
        case "replace":
            _drop(parent, last)
            _add(parent, last, operation["value"])
        case "test":
            if _find(parent, [last]) != operation["value"]:
                raise ValueError(f"testing value {operation['path']} failed")
        case "move":
            *origin, name = _parts(operation["from"])
            _add(parent, last, _drop(_find(document, origin), name))
        case "copy":
            _add(parent, last, copy.deepcopy(_find(document, _parts(operation["from"]))))
        case other:
            raise ValueError(f"unknown operation {other}")


def json_patch(target: Any, operations: Any) -> Any:
    """The target after all operations; Refused 422 when one cannot be done, also a failed test."""
    document = copy.deepcopy(target)
    if not isinstance(operations, list):
        raise refusals.bad_request("a JSON patch is a list of operations")
    try:
        for operation in operations:
            _step(document, operation)
    except (KeyError, IndexError, ValueError, TypeError) as wrong:
        raise refusals.Refused(
            422, f"the server rejected our request due to an error in our request: {wrong}"
        ) from wrong
    return document
