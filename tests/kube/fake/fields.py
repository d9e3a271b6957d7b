"""Paths of fields, as server-side apply counts them (structured-merge-diff).

A path is a tuple of elements in the notation of `fieldsV1`: `f:name` for a field, `k:{…}` for an item
of a map-like list, `v:…` for an item of a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.kube.fake import schema as schemas

Path = tuple[str, ...]
Paths = frozenset[Path]
Schema = dict[str, Any] | None

_PRESENT = object()
# What no manager owns (the server's own fields).
_SERVERS = (
    *("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields"),
    *("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"),
)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _element(item: Any, schema: Schema) -> str:
    letter = "k" if (schema or {}).get("x-kubernetes-list-type") == "map" else "v"
    return f"{letter}:{_compact(schemas.identity(item, schema))}"


def granular(value: Any, schema: Schema) -> bool:
    """Whether managers own parts of the value, and not only all of it."""
    if isinstance(value, dict):
        return (schema or {}).get("x-kubernetes-map-type") != "atomic"
    listed = isinstance(value, list)
    return listed and (schema or {}).get("x-kubernetes-list-type") in {"map", "set"}


def _walk(
    value: Any, schema: Schema, path: Path, *, inner_nodes: bool = False
) -> Iterator[tuple[Path, Any]]:
    if not granular(value, schema):
        yield path, value
        return
    if inner_nodes and path:
        yield path, _PRESENT
    if isinstance(value, list):
        for item in value:
            inner = (*path, _element(item, schema))
            yield inner, _PRESENT
            below = _walk(item, schemas.items(schema), inner, inner_nodes=inner_nodes)
            yield from below if isinstance(item, dict) else ()
        return
    for name, item in value.items():
        inner = (*path, f"f:{name}")
        if name not in (schema or {}).get("properties", {}) or item == {} or item is None:
            yield inner, _PRESENT
        below = _walk(item, schemas.child(schema, name), inner, inner_nodes=inner_nodes)
        yield from below if item != {} else ()


def flat(item: dict[str, Any], schema: Schema, *, inner_nodes: bool = False) -> dict[Path, Any]:
    """Every owned path of an object with its value, without the server's own fields.

    An update owns the inner nodes that it creates, an apply only what it lists.
    """
    metadata = {k: v for k, v in item.get("metadata", {}).items() if k not in _SERVERS}
    owned = {k: v for k, v in item.items() if k not in {"apiVersion", "kind", "metadata"}}
    return dict(
        _walk(
            owned | ({"metadata": metadata} if metadata else {}),
            schema,
            (),
            inner_nodes=inner_nodes,
        )
    )


def merge(live: Any, config: Any, schema: Schema) -> Any:
    """The live value with the applied one on top."""
    if type(live) is not type(config) or not granular(config, schema):
        return config
    if isinstance(config, dict):
        return live | {
            name: merge(live[name], item, schemas.child(schema, name)) if name in live else item
            for name, item in config.items()
        }
    applied = {_element(item, schema): item for item in config}
    merged = []
    for item in live:
        other = applied.pop(_element(item, schema), item)
        merged.append(merge(item, other, schemas.items(schema)))
    return merged + list(applied.values())


def remove(value: Any, schema: Schema, paths: Paths, path: Path = ()) -> Any:
    """The value without these paths and what is below them; None when nothing is left."""
    if not granular(value, schema):
        return value
    if isinstance(value, list):
        stored = [
            remove(item, schemas.items(schema), paths, inner) if isinstance(item, dict) else item
            for item in value
            if (inner := (*path, _element(item, schema))) not in paths
        ]
        return stored or None
    remaining = {}
    for name, item in value.items():
        inner = (*path, f"f:{name}")
        if inner in paths:
            continue
        if any(path[: len(inner)] == inner for path in paths):
            remaining[name] = remove(item, schemas.child(schema, name), paths, inner)
        else:
            remaining[name] = item
    return remaining or None


def encode(paths: Iterable[Path]) -> dict[str, Any]:
    """As `fieldsV1`."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _without_needless_dots(tree)


def _without_needless_dots(node: dict[str, Any]) -> dict[str, Any]:
    """A leaf is written {}; only an inner node that is owned itself has its dot."""
    if set(node) == {"."}:
        return {}
    return {
        name: inner if name == "." else _without_needless_dots(inner)
        for name, inner in sorted(node.items())
    }


def decode(tree: dict[str, Any], path: Path = ()) -> Iterator[Path]:
    """The paths of a `fieldsV1`."""
    if not tree and path:
        yield path
    for name, inner in tree.items():
        if name == ".":
            yield path
        else:
            yield from decode(inner, (*path, name))


def shown(path: Path) -> str:
    """`.spec.ipv4.pool[cidr="10.0.0.0/16"].reservedRanges`, as conflicts are told."""
    text = ""
    for element in path:
        letter, _, rest = element.partition(":")
        if letter == "f":
            text += f".{rest}"
        elif letter == "k":
            keys = json.loads(rest)
            text += f"[{','.join(f'{key}={_compact(value)}' for key, value in keys.items())}]"
        else:
            text += f"[={rest}]"
    return text
