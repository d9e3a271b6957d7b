"""What a cluster has, compared with what was seen before; only differences are read or written.

A list is taken for an object's end only when it was complete, and only the second time: the object
may have been created between two pages, or a cache may have answered (rule `absence-needs-two-lists`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import ObjectKey
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.outbound import faults
from pools.sql import statements

GRACE = 30  # seconds between the two lists that an object has to be absent from
LONGEST = {"uid": 64, "resourceVersion": 64, "name": 253, "namespace": 253}


class ObjectRow(NamedTuple):
    """What is compared of a row that is pending, has a problem, or was missed.

    `overdue`: a list was without it, long enough ago.
    """

    id: int
    version: str
    needs_work: bool  # pending, or with a problem
    missed: bool
    overdue: bool


@dataclass(frozen=True)
class ObservedRows:
    """What was seen before: of all that is well nothing but `uid version`."""

    unchanged: frozenset[str]
    rows_by_uid: Mapping[str, ObjectRow]  # by uid


@dataclass
class Comparison:
    """How a complete list differs from the rows. Ids are those of rows."""

    new: list[Manifest] = field(default_factory=list)
    changed: list[Manifest] = field(default_factory=list)
    retry: list[Manifest] = field(default_factory=list)  # unchanged, and open
    reappeared: list[int] = field(default_factory=list)  # were missed and are there
    absent: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)  # of these, for the first time
    gone: list[int] = field(default_factory=list)  # of these, again, and long enough


def observed_rows(cluster_id: int, kind: str) -> ObservedRows:
    """The rows. Read BEFORE the list (rule `younger-than-the-list-is-not-missed`)."""
    # One text, because ten thousand rows take as long to read as the list itself.
    ((text,),) = database.rows(_WELL_ROWS, [cluster_id, kind])
    others = database.rows(_OTHER_ROWS, {"grace": GRACE, "cluster": cluster_id, "kind": kind})
    return ObservedRows(
        frozenset(text.split("\n")) - {""}, {uid: ObjectRow(*values) for uid, *values in others}
    )


_WELL_ROWS = """
    SELECT COALESCE(string_agg(uid || ' ' || resource_version, E'\\n'), '') FROM pools_observedobject
    WHERE cluster_id = %s AND kind = %s
        AND NOT (pending OR problem_code <> '' OR missed_at IS NOT NULL)
"""
_OTHER_ROWS = statements.read("pools/objects_to_look_at")


def identity(manifest: Manifest) -> tuple[str, str]:
    """(uid, resourceVersion). Raises Garbled: no API server leaves them out."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise faults.MalformedResponse("the answer has an object without metadata")
    uid, version = column_text(metadata, "uid"), column_text(metadata, "resourceVersion")
    if not (uid and version) or " " in uid or "\n" in uid + version:
        raise faults.MalformedResponse("the answer has an object without uid or resourceVersion")
    return uid, version


def object_key(manifest: Manifest) -> ObjectKey:
    """(namespace, name)."""
    metadata = manifest["metadata"]
    return column_text(metadata, "namespace"), column_text(metadata, "name")


def compare(
    cluster_id: int, kind: str, before: ObservedRows, items: Iterable[Manifest]
) -> Comparison:
    """A complete list against the rows; nothing of a manifest is read but its identity."""
    comparison, listed, unlisted = Comparison(), set(), set(before.unchanged)
    well = {well_entry.split(" ")[0] for well_entry in before.unchanged}
    for manifest in items:
        uid, version = identity(manifest)
        well_entry = f"{uid} {version}"
        if well_entry in before.unchanged:
            unlisted.discard(well_entry)
            continue
        if uid in listed:
            continue
        listed.add(uid)
        row = before.rows_by_uid.get(uid)
        if row is None and uid not in well:
            comparison.new.append(manifest)
        elif row is None or row.version != version:
            comparison.changed.append(manifest)
        elif row.needs_work:
            comparison.retry.append(manifest)
        if row is not None and row.missed:
            comparison.reappeared.append(row.id)
    comparison.missed = _ids(
        cluster_id, kind, {well_entry.split(" ")[0] for well_entry in unlisted} - listed
    )
    absent = [row for uid, row in before.rows_by_uid.items() if uid not in listed]
    comparison.missed += [row.id for row in absent if not row.missed]
    comparison.gone = [row.id for row in absent if row.overdue]
    comparison.absent = [*comparison.missed, *(row.id for row in absent if row.missed)]
    return comparison


def _ids(cluster_id: int, kind: str, uids: Collection[str]) -> list[int]:
    if not uids:
        return []
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=kind, uid__in=uids)
    return list(rows.values_list("id", flat=True))


def find_replaced(absent: Sequence[int], items: Iterable[Manifest]) -> list[int]:
    """Those of the absent rows whose name another object has: there is no doubt that they are gone."""
    if not absent:
        return []
    listed_keys = {object_key(manifest) for manifest in items}
    rows = ObservedObject.objects.filter(pk__in=absent).values_list("id", "namespace", "name")
    return [pk for pk, *key in rows if tuple(key) in listed_keys]


def column_text(metadata: Manifest, name: str) -> str:
    """A text of the metadata as a column can hold it."""
    value = metadata.get(name)
    if not isinstance(value, str):
        return ""
    if not (value.isascii() and "\0" not in value):
        value = value.replace("\0", "").encode(errors="replace").decode()
    return value[: LONGEST[name]]
