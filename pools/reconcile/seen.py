"""What a cluster has, compared with what was seen before; only differences are read or written.

A list is taken for an object's end only when it was complete, and only the second time: the object
may have been created between two pages, or a cache may have answered (I16, I17).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pools.clusters.client import Manifest
from pools.models import ObservedObject
from pools.models.fields import Now

GRACE = timedelta(seconds=30)  # between the two lists that an object has to be absent from
BATCH = 500  # rows in one statement


@dataclass
class Comparison:
    """How a complete list differs from the rows; the uids of `missed` are not in the list."""

    new: list[Manifest] = field(default_factory=list)
    changed: list[tuple[int, Manifest]] = field(default_factory=list)  # (row's id, manifest)
    back: list[int] = field(default_factory=list)  # ids of rows that were missed and are there
    missed: list[int] = field(default_factory=list)  # for the first time
    gone: list[int] = field(default_factory=list)  # again, and long enough


def identity(manifest: Manifest) -> tuple[str, str]:
    """(uid, resourceVersion); "" for what an object has not, which no API server sends."""
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("uid", "")), str(metadata.get("resourceVersion", ""))


def compare(cluster_id: int, kind: str, items: Iterable[Manifest]) -> Comparison:
    """A complete list against the rows: one query, and no manifest of them is read."""
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=kind)
    known = {
        uid: (pk, version, missed)
        for pk, uid, version, missed in rows.values_list(
            "id", "uid", "resource_version", "missed_at"
        )
    }
    found, listed = Comparison(), set()
    for manifest in items:
        uid, version = identity(manifest)
        listed.add(uid)
        row = known.get(uid)
        if row is None:
            found.new.append(manifest)
            continue
        if row[1] != version:
            found.changed.append((row[0], manifest))
        if row[2] is not None:
            found.back.append(row[0])
    absent = {uid: row for uid, row in known.items() if uid not in listed}
    over = set(
        rows.filter(missed_at__lte=Now() - GRACE, uid__in=absent).values_list("id", flat=True)
        if absent
        else ()
    )
    found.missed = [pk for pk, _, missed in absent.values() if missed is None]
    found.gone = [pk for pk, _, _ in absent.values() if pk in over]
    return found


def rows_for(
    cluster_id: int, kind: str, api_version: str, manifests: Sequence[Manifest]
) -> list[ObservedObject]:
    """New or changed objects as rows that are stored, in the order of the manifests."""
    stored: list[ObservedObject] = []
    for first in range(0, len(manifests), BATCH):
        stored += ObservedObject.objects.bulk_create(
            [
                _row(cluster_id, kind, api_version, manifest)
                for manifest in manifests[first : first + BATCH]
            ],
            update_conflicts=True,
            unique_fields=["cluster", "kind", "uid"],
            update_fields=[
                "api_version", "namespace", "name", "resource_version", "manifest",
                "problem_code", "problem", "changed_at", "missed_at",
            ],
        )  # fmt: skip
    return stored


def _row(cluster_id: int, kind: str, api_version: str, manifest: Manifest) -> ObservedObject:
    uid, version = identity(manifest)
    metadata = manifest.get("metadata") or {}
    return ObservedObject(
        cluster_id=cluster_id,
        kind=kind,
        api_version=api_version,
        namespace=str(metadata.get("namespace", ""))[:253],
        name=str(metadata.get("name", ""))[:253],
        uid=uid,
        resource_version=version,
        manifest=manifest,
        first_seen_at=Now(),
        changed_at=Now(),
    )
