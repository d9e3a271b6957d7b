"""Field managers: who owns which field, and what an apply or an update does to that."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from typing import Any

from tests.kube.fake import fields, refusals
from tests.kube.fake.fields import Path, Paths, Schema


@dataclass(frozen=True)
class Owner:
    """One entry of metadata.managedFields."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    paths: Paths

    def same(self, other: Owner) -> bool:
        """Whether both are one entry; an applier keeps its entry over versions."""
        return (self.manager, self.operation, self.subresource) == (
            other.manager,
            other.operation,
            other.subresource,
        ) and (self.operation == "Apply" or self.api_version == other.api_version)

    def entry(self) -> dict[str, Any]:
        written = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields.encode(self.paths),
        }
        return written | ({"subresource": self.subresource} if self.subresource else {})


@functools.lru_cache(maxsize=4096)
def _decoded(text: str) -> Paths:
    return frozenset(fields.decode(json.loads(text)))


def owners(item: dict[str, Any]) -> list[Owner]:
    """Those of a stored object."""
    return [
        Owner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", "Update"),
            api_version=entry.get("apiVersion", ""),
            subresource=entry.get("subresource", ""),
            time=entry.get("time", ""),
            paths=_decoded(json.dumps(entry.get("fieldsV1", {}), sort_keys=True)),
        )
        for entry in item["metadata"].get("managedFields", ())
    ]


def entries(listed: list[Owner]) -> list[dict[str, Any]]:
    ordered = sorted(listed, key=lambda owner: (owner.operation, owner.time, owner.manager))
    return [item.entry() for item in ordered if item.paths]


def _changed(before: dict[str, Any], after: dict[str, Any], schema: Schema) -> tuple[Paths, Paths]:
    """Paths that are new or have another value, and paths that are gone."""
    old = fields.flat(before, schema, inner_nodes=True)
    new = fields.flat(after, schema, inner_nodes=True)
    altered = frozenset(path for path in new if path not in old or old[path] != new[path])
    return altered, frozenset(old.keys() - new.keys())


def _under(path: Path, roots: Paths) -> bool:
    return any(path[:length] in roots for length in range(1, len(path) + 1))


def after_update(
    listed: list[Owner],
    me: Owner,
    before: dict[str, Any],
    after: dict[str, Any],
    schema: Schema,
) -> list[Owner]:
    """A write that is no apply takes what it changes, and others lose it."""
    altered, removed = _changed(before, after, schema)
    if not altered and not removed:
        return listed
    result = []
    mine = replace(me, paths=altered)
    for item in listed:
        stored = frozenset(path for path in item.paths if not _under(path, removed))
        if item.same(me):
            mine = replace(me, paths=stored | altered)
        else:
            result.append(replace(item, paths=stored - altered))
    return [*result, mine]


def apply(
    live: dict[str, Any],
    config: dict[str, Any],
    *,
    me: Owner,
    listed: list[Owner],
    schema: Schema,
    force: bool,
) -> tuple[dict[str, Any], list[Owner]]:
    """The merged object and its owners; Refused 409 with the fields that others own."""
    applied = frozenset(fields.flat(config, schema))
    mine = next((item for item in listed if item.same(me)), replace(me, paths=frozenset()))
    others = [item for item in listed if not item.same(me)]
    merged = fields.merge(live, config, schema)
    stored = applied.union(*(other.paths for other in others))
    gone = frozenset(
        path
        for path in mine.paths - stored
        if not any(other[: len(path)] == path for other in stored)
    )
    if gone:
        merged = fields.remove(merged, schema, gone) or {}
    altered, removed = _changed(live, merged, schema)
    if not force:
        _refuse_conflicts(others, altered)
    if mine.paths != applied or mine.api_version != me.api_version:
        mine = replace(me, paths=applied)
    rest = [
        replace(other, paths=(other.paths - altered) - removed) if altered or removed else other
        for other in others
    ]
    return merged, [*rest, mine]


def _refuse_conflicts(others: list[Owner], altered: Paths) -> None:
    result = [(other, path) for other in others for path in sorted(other.paths & altered)]
    if not result:
        return
    causes = []
    for owner, path in result:
        via = f" using {owner.api_version}" if owner.operation == "Update" else ""
        timestamp = f" at {owner.time}" if via and owner.time else ""
        sub = f' with subresource "{owner.subresource}"' if owner.subresource else ""
        causes.append(
            {
                "reason": "FieldManagerConflict",
                "message": f'conflict with "{owner.manager}"{sub}{via}{timestamp}',
                "field": fields.shown(path),
            }
        )
    many = "s" if len(causes) > 1 else ""
    text = "\n".join(f"- {cause['message']}: {cause['field']}" for cause in causes)
    if not many:
        text = f"{causes[0]['message']}: {causes[0]['field']}"
    raise refusals.Refused(
        409, f"Apply failed with {len(causes)} conflict{many}: {text}", details={"causes": causes}
    )
