"""What a cluster has, compared with what was seen before; only differences are read or written.

A list is taken for an object's end only when it was complete, and only the second time: the object
may have been created between two pages, or a cache may have answered (I16, I17).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import DataError, transaction

from pools import database
from pools.clusters import faults
from pools.clusters.client import Manifest
from pools.models import ObservedObject
from pools.reconcile.kinds import Place

UNSTORABLE = "unstorable"  # the problem of an object that is stored without its content
GRACE = 30  # seconds between the two lists that an object has to be absent from
BATCH = 1000  # rows in one statement
LARGEST_BATCH = 8_000_000  # characters of manifests in one statement
_LONGEST = {"uid": 64, "resourceVersion": 64, "name": 253, "namespace": 253}
# What JSON can say and PostgreSQL's jsonb cannot hold: NUL, and half a surrogate pair.
_SUSPICIOUS = re.compile(r"\\u(0000|d[89a-f])")
_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")


class Row(NamedTuple):
    """What is compared of a row that is pending, has a problem, or was missed.

    `overdue`: a list was without it, long enough ago.
    """

    id: int
    version: str
    open: bool  # pending, or with a problem
    missed: bool
    overdue: bool


@dataclass(frozen=True)
class Known:
    """What was seen before: of all that is well nothing but `uid version`."""

    well: frozenset[str]
    others: Mapping[str, Row]  # by uid


@dataclass
class Comparison:
    """How a complete list differs from the rows. Ids are those of rows."""

    news: list[Manifest] = field(default_factory=list)  # new and changed
    again: list[Manifest] = field(default_factory=list)  # unchanged, and open
    back: list[int] = field(default_factory=list)  # were missed and are there
    absent: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)  # of these, for the first time
    gone: list[int] = field(default_factory=list)  # of these, again, and long enough


def known(cluster_id: int, kind: str) -> Known:
    """The rows. Asked BEFORE the list: what came in meanwhile is not missed in it (R1)."""
    # One text, because ten thousand rows take as long to read as the list itself.
    ((text,),) = database.rows(_WELL, [cluster_id, kind])
    others = database.rows(_OTHERS, [GRACE, cluster_id, kind])
    return Known(frozenset(text.split("\n")) - {""}, {uid: Row(*values) for uid, *values in others})


_WELL = """
    SELECT COALESCE(string_agg(uid || ' ' || resource_version, E'\\n'), '') FROM pools_observedobject
    WHERE cluster_id = %s AND kind = %s
        AND NOT (pending OR problem_code <> '' OR missed_at IS NOT NULL)
"""
_OTHERS = """
    SELECT uid, id, resource_version, pending OR problem_code <> '', missed_at IS NOT NULL,
        COALESCE(missed_at <= ipam_now() - make_interval(secs => %s), false)
    FROM pools_observedobject WHERE cluster_id = %s AND kind = %s
        AND (pending OR problem_code <> '' OR missed_at IS NOT NULL)
"""


def identity(manifest: Manifest) -> tuple[str, str]:
    """(uid, resourceVersion). Raises Garbled: no API server leaves them out."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise faults.Garbled("the answer has an object without metadata")
    uid, version = _text(metadata, "uid"), _text(metadata, "resourceVersion")
    if not (uid and version) or " " in uid or "\n" in uid + version:
        raise faults.Garbled("the answer has an object without uid or resourceVersion")
    return uid, version


def place(manifest: Manifest) -> Place:
    """(namespace, name)."""
    metadata = manifest["metadata"]
    return _text(metadata, "namespace"), _text(metadata, "name")


def compare(cluster_id: int, kind: str, before: Known, items: Iterable[Manifest]) -> Comparison:
    """A complete list against the rows; nothing of a manifest is read but its identity."""
    found, listed, left = Comparison(), set(), set(before.well)
    for manifest in items:
        uid, version = identity(manifest)
        same = f"{uid} {version}"
        if same in before.well:
            left.discard(same)
            continue
        if uid in listed:
            continue
        listed.add(uid)
        row = before.others.get(uid)
        if row is None or row.version != version:
            found.news.append(manifest)
        elif row.open:
            found.again.append(manifest)
        if row is not None and row.missed:
            found.back.append(row.id)
    found.missed = _ids(cluster_id, kind, {same.split(" ")[0] for same in left} - listed)
    absent = [row for uid, row in before.others.items() if uid not in listed]
    found.missed += [row.id for row in absent if not row.missed]
    found.gone = [row.id for row in absent if row.overdue]
    found.absent = [*found.missed, *(row.id for row in absent if row.missed)]
    return found


def _ids(cluster_id: int, kind: str, uids: Collection[str]) -> list[int]:
    if not uids:
        return []
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=kind, uid__in=uids)
    return list(rows.values_list("id", flat=True))


def replaced(absent: Sequence[int], items: Iterable[Manifest]) -> list[int]:
    """Those of the absent rows whose name another object has: there is no doubt that they are gone."""
    if not absent:
        return []
    taken = {place(manifest) for manifest in items}
    rows = ObservedObject.objects.filter(pk__in=absent).values_list("id", "namespace", "name")
    return [pk for pk, *where in rows if tuple(where) in taken]


def batches(manifests: Iterable[Manifest]) -> Iterable[list[tuple[Manifest, str]]]:
    """Manifests, each with its JSON text, so many at once that one statement can carry them.

    The text is "" for what has none that the database could hold.
    """
    batch: list[tuple[Manifest, str]] = []
    size = 0
    for manifest in manifests:
        text = _json(manifest)
        if batch and (len(batch) == BATCH or size + len(text) > LARGEST_BATCH):
            yield batch
            batch, size = [], 0
        batch.append((manifest, text))
        size += len(text)
    if batch:
        yield batch


def store(
    cluster_id: int, kind: str, api_version: str, batch: Sequence[tuple[Manifest, str]]
) -> list[ObservedObject]:
    """New or changed objects as rows, in the order of the batch, which names each uid once.

    What the database cannot hold is stored without its content, with the problem `unstorable`.
    """
    texts = [text or _stub(manifest) for manifest, text in batch]
    try:
        with transaction.atomic():
            rows = _stored(cluster_id, kind, api_version, batch, texts)
    except DataError:
        if len(batch) == 1:
            rows = _stored(cluster_id, kind, api_version, batch, [_stub(batch[0][0])])
            texts = [""]
        else:
            middle = len(batch) // 2
            return [
                *store(cluster_id, kind, api_version, batch[:middle]),
                *store(cluster_id, kind, api_version, batch[middle:]),
            ]
    return [
        row if text == kept else _unstorable(row)
        for row, (_, text), kept in zip(rows, batch, texts, strict=True)
    ]


def _stored(
    cluster_id: int,
    kind: str,
    api_version: str,
    batch: Sequence[tuple[Manifest, str]],
    texts: Sequence[str],
) -> list[ObservedObject]:
    columns: dict[str, list[str]] = {name: [] for name in _LONGEST}
    for manifest, _ in batch:
        for name, column in columns.items():
            column.append(_text(manifest["metadata"], name))
    values: dict[str, object] = {
        "cluster": cluster_id,
        "kind": kind,
        "api_version": api_version,
        "uids": columns["uid"],
        "versions": columns["resourceVersion"],
        "namespaces": columns["namespace"],
        "names": columns["name"],
        "manifests": f"[{','.join(texts)}]",
    }
    ids = {row["uid"]: row for row in database.fetch(_STORE, values)}
    # By position, which is several times as fast as by name.
    same = ("", "", False)  # no problem, not pending
    return [
        ObservedObject.from_db(
            "default",
            _FIELDS,
            (
                ids[uid]["id"], cluster_id, kind, api_version, namespace, name, uid, version,
                manifest, *same, ids[uid]["first_seen_at"], ids[uid]["changed_at"], None,
            ),
        )
        for uid, version, name, namespace, (manifest, _) in zip(
            *columns.values(), batch, strict=True
        )
    ]  # fmt: skip


# In the order of the model, which a test compares.
_FIELDS = (
    "id", "cluster_id", "kind", "api_version", "namespace", "name", "uid", "resource_version",
    "manifest", "problem_code", "problem", "pending", "first_seen_at", "changed_at", "missed_at",
)  # fmt: skip

_STORE = """
    INSERT INTO pools_observedobject (cluster_id, kind, api_version, uid, resource_version, namespace,
        name, manifest, problem_code, problem, pending, first_seen_at, changed_at)
    SELECT %(cluster)s, %(kind)s, %(api_version)s, uid, version, namespace, name, manifest,
        '', '', false, ipam_now(), ipam_now()
    FROM ROWS FROM (unnest(%(uids)s::text[]), unnest(%(versions)s::text[]),
        unnest(%(namespaces)s::text[]), unnest(%(names)s::text[]),
        jsonb_array_elements(%(manifests)s::jsonb))
        AS given (uid, version, namespace, name, manifest)
    ON CONFLICT (cluster_id, kind, uid) DO UPDATE SET
        api_version = EXCLUDED.api_version, resource_version = EXCLUDED.resource_version,
        namespace = EXCLUDED.namespace, name = EXCLUDED.name, manifest = EXCLUDED.manifest,
        problem_code = '', problem = '', pending = false, missed_at = NULL,
        changed_at = EXCLUDED.changed_at
    RETURNING id, uid, first_seen_at, changed_at
"""


def _unstorable(row: ObservedObject) -> ObservedObject:
    row.problem_code = UNSTORABLE
    row.problem = "the object holds text or numbers that the database cannot hold"
    return row


def _json(manifest: Manifest) -> str:
    try:
        text = json.dumps(manifest, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return ""
    return text if not _SUSPICIOUS.search(text) or _holdable(text) else ""


def _holdable(text: str) -> bool:
    """Whether what looks unstorable is only an escaped backslash, or both halves of a pair."""
    value = json.dumps(json.loads(text), ensure_ascii=False)
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return _NUL.search(value) is None


def _stub(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    names = {name: _text(metadata, name) for name in _LONGEST if name in metadata}
    return json.dumps({"metadata": names})


def _text(metadata: Manifest, name: str) -> str:
    """A text of the metadata as a column can hold it."""
    value = metadata.get(name)
    if not isinstance(value, str):
        return ""
    if not (value.isascii() and "\0" not in value):
        value = value.replace("\0", "").encode(errors="replace").decode()
    return value[: _LONGEST[name]]
