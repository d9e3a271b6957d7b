"""Comparison of a list with the observed objects; only differences are read or written.

An object counts as deleted after two complete lists without it: it may have been created between two
pages, or a cache may have served the list (rule `absence-needs-two-lists`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pools.clusters.reconcile.handler import ObjectKey
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.outbound import faults
from pools.sql import statements

GRACE = 30  # seconds between the two lists that an object has to be absent from
LONGEST = {"uid": 64, "resourceVersion": 64, "name": 253, "namespace": 253}


class ObjectRow(NamedTuple):
    """The compared columns of a row that is pending, has a problem, or was missing from a list.

    `overdue` is True if it has been missing for at least GRACE seconds.
    """

    id: int
    version: str
    needs_work: bool  # pending, or with a problem
    missed: bool
    overdue: bool


@dataclass(frozen=True)
class ObservedRows:
    """The observed objects; `unchanged` has "uid version" of rows without problem or pending work."""

    unchanged: frozenset[str]
    rows_by_uid: Mapping[str, ObjectRow]  # by uid


@dataclass
class Comparison:
    """Differences between a complete list and the rows; ids are those of rows."""

    new: list[Manifest] = field(default_factory=list)
    changed: list[Manifest] = field(default_factory=list)
    retry: list[Manifest] = field(default_factory=list)  # unchanged, and pending or with a problem
    reappeared: list[int] = field(default_factory=list)  # were missing and are listed again
    absent: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)  # of these, missing for the first time
    gone: list[int] = field(default_factory=list)  # of these, missing again, for long enough


def observed_rows(cluster_id: int, kind: str) -> ObservedRows:
    """Return the rows. Call it BEFORE the list (rule `younger-than-the-list-is-not-missed`)."""
    # One string, because reading ten thousand rows takes as long as the list itself.
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
_OTHER_ROWS = statements.read("pools/objects_to_reprocess")


def identity(manifest: Manifest) -> tuple[str, str]:
    """Return (uid, resourceVersion). Raises MalformedResponse: API servers always set them."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise faults.MalformedResponse("the response has an object without metadata")
    uid, version = column_text(metadata, "uid"), column_text(metadata, "resourceVersion")
    if not (uid and version) or " " in uid or "\n" in uid + version:
        raise faults.MalformedResponse("the response has an object without uid or resourceVersion")
    return uid, version


def object_key(manifest: Manifest) -> ObjectKey:
    """Return (namespace, name)."""
    metadata = manifest["metadata"]
    return column_text(metadata, "namespace"), column_text(metadata, "name")


def compare(
    cluster_id: int, kind: str, before: ObservedRows, items: Iterable[Manifest]
) -> Comparison:
    """Compare a complete list with the rows; reads only the identity of a manifest."""
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
    """Return the absent rows whose name another object has, so that they are certainly deleted."""
    if not absent:
        return []
    listed_keys = {object_key(manifest) for manifest in items}
    rows = ObservedObject.objects.filter(pk__in=absent).values_list("id", "namespace", "name")
    return [pk for pk, *key in rows if tuple(key) in listed_keys]


def column_text(metadata: Manifest, name: str) -> str:
    """Return a string of the metadata as a column can store it."""
    value = metadata.get(name)
    if not isinstance(value, str):
        return ""
    if not (value.isascii() and "\0" not in value):
        value = value.replace("\0", "").encode(errors="replace").decode()
    return value[: LONGEST[name]]
