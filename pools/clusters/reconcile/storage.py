"""Observed objects: their comparison with a list, and their storage as rows, many in one statement, with any content.

Only differences are read or written. An object counts as deleted after two complete lists without it: it may have
been created between two pages, or a cache may have served the list (rule `absence-needs-two-lists`).
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.db import DataError, IntegrityError, connection, transaction

from pools.clusters.reconcile.handler import ObjectKey
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.outbound import faults
from pools.sql import statements

UNSTORABLE = "unstorable"  # problem code of an object that is stored without its content
BATCH = 2000  # rows in one statement
LARGEST_BATCH = 8_000_000  # characters of manifests in one statement
# Valid in JSON, but not in PostgreSQL's jsonb: NUL, and half a surrogate pair.
_SUSPICIOUS = re.compile(r"\\u(0000|d[89a-f])")
_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")
_WITHOUT_CONTENT = "the object has strings or numbers that the database cannot store"


class Item(NamedTuple):
    """An object and its JSON string; "" if the database cannot store it."""

    manifest: Manifest
    text: str


Work = Callable[[Item], object]


def _no_work(_: Item) -> None:
    return


@dataclass(frozen=True)
class ObjectKind:
    """The cluster and the kind of objects, and the apiVersion in which they were read."""

    cluster_id: int
    name: str
    api_version: str


def batches(manifests: Iterable[Manifest]) -> Iterator[list[Item]]:
    """Yield batches of objects that fit into one statement."""
    batch: list[Item] = []
    size = 0
    for manifest in manifests:
        item = Item(manifest, _json(manifest))
        if batch and (len(batch) == BATCH or size + len(item.text) > LARGEST_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item.text)
    if batch:
        yield batch


def store(
    kind: ObjectKind, batch: Sequence[Item], *, new: bool = False, meanwhile: Work = _no_work
) -> list[ObservedObject]:
    """Store new or changed objects; return their rows in the order of the batch. Uids are unique.

    With `new`, existing rows are not searched. An object that the database cannot store is stored without
    its content, with the problem `unstorable`. `meanwhile` is called with items while the database receives
    earlier ones; it may be called several times for an item, or not at all.
    """
    try:
        with transaction.atomic():
            return _store_rows(kind, batch, new=new, meanwhile=meanwhile)
    except (DataError, IntegrityError):
        if len(batch) == 1:
            item = Item(batch[0].manifest, "")
            return _store_rows(kind, [item], new=False, meanwhile=_no_work)
        middle = len(batch) // 2
        halves = batch[:middle], batch[middle:]
        return [row for half in halves for row in store(kind, half, meanwhile=meanwhile)]


def _store_rows(
    kind: ObjectKind, batch: Sequence[Item], *, new: bool, meanwhile: Work
) -> list[ObservedObject]:
    uids = [column_text(item.manifest["metadata"], "uid") for item in batch]
    rows_by_uid: dict[str, tuple[int, datetime]] = {}
    if not new:
        for uid, pk, first_seen in database.rows(_KNOWN, [kind.cluster_id, kind.name, uids]):
            rows_by_uid[uid] = (pk, first_seen)
    news = [uid for uid in uids if uid not in rows_by_uid]
    now, ids = database.rows(_IDS, [len(news)])[0]
    rows_by_uid |= {uid: (pk, now) for uid, pk in zip(news, ids, strict=True)}
    fresh, stamp = set(news), str(now)
    rows: list[ObservedObject] = []
    changed: list[tuple[Any, ...]] = []

    def lines() -> Iterator[tuple[Any, ...]]:
        for item, uid in zip(batch, uids, strict=True):
            line = _row_values(kind, item, uid, rows_by_uid[uid], now)
            if uid in fresh:
                # As strings: psycopg would format the same two timestamps for each row.
                yield (*line[:12], stamp, stamp, None)
            else:
                changed.append(line)
            values = (*line[:8], item.manifest, *line[9:])
            rows.append(ObservedObject.from_db("default", FIELDS, values))
            meanwhile(item)

    database.copy("pools_observedobject", FIELDS, lines())
    if changed:
        _update_rows(changed)
    return rows


def _update_rows(lines: Iterable[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            _UPDATE, [[*line[3:6], *line[7:12], *line[13:], line[0]] for line in lines]
        )


def _row_values(
    kind: ObjectKind, item: Item, uid: str, stored_row: tuple[int, datetime], now: datetime
) -> tuple[Any, ...]:
    """Return the columns of a row in the order of FIELDS."""
    metadata = item.manifest["metadata"]
    problem = ("", "") if item.text else (UNSTORABLE, _WITHOUT_CONTENT)
    return (
        stored_row[0],
        kind.cluster_id,
        kind.name,
        kind.api_version,
        column_text(metadata, "namespace"),
        column_text(metadata, "name"),
        uid,
        column_text(metadata, "resourceVersion"),
        item.text or _stub(metadata),
        *problem,
        False,
        stored_row[1],
        now,
        None,
    )


# In the order of the model, which a test checks: creating an instance by position is several times faster
# than by name.
FIELDS = (
    "id",
    "cluster_id",
    "kind",
    "api_version",
    "namespace",
    "name",
    "uid",
    "resource_version",
    "manifest",
    "problem_code",
    "problem",
    "pending",
    "first_seen_at",
    "changed_at",
    "missed_at",
)
_KNOWN = """
    SELECT uid, id, first_seen_at FROM pools_observedobject
    WHERE cluster_id = %s AND kind = %s AND uid = ANY(%s)
"""
_IDS = """
    SELECT ipam_now(), ARRAY(
        SELECT nextval(name)
        FROM CAST(pg_get_serial_sequence('pools_observedobject', 'id') AS regclass) AS name,
            generate_series(1, %s))
"""
_UPDATE = """
    UPDATE pools_observedobject SET api_version = %s, namespace = %s, name = %s,
        resource_version = %s, manifest = %s::jsonb, problem_code = %s, problem = %s, pending = %s,
        changed_at = %s, missed_at = %s
    WHERE id = %s
"""


def _json(manifest: Manifest) -> str:
    text = _quick_json(manifest)
    if not text:
        try:
            text = json.dumps(manifest, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            return ""
    suspicious = "\\u" in text and _SUSPICIOUS.search(text)
    return text if not suspicious or _fits_jsonb(text) else ""


def _quick_json(manifest: Manifest) -> str:
    """Return the JSON string in a tenth of the time; "" if the slow path is needed."""
    try:
        text = orjson.dumps(manifest)
    except TypeError:  # a large number, half a surrogate pair, too deep
        return ""
    # orjson writes null for NaN, too.
    return "" if b"null" in text else text.decode()


def _fits_jsonb(text: str) -> bool:
    """Return True if jsonb can store the string: escaped backslashes and whole surrogate pairs are valid."""
    value = json.dumps(json.loads(text), ensure_ascii=False)
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return _NUL.search(value) is None


def _stub(metadata: Manifest) -> str:
    return json.dumps({"metadata": {name: column_text(metadata, name) for name in LONGEST}})


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


def written_digest(cluster_id: int, kind: str, uid: str, *, manager: str) -> str:
    """Return the digest of what one of our field managers wrote last to an object; "" if it is not known."""
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=kind, uid=uid)
    return str((rows.values_list("written", flat=True).first() or {}).get(manager, ""))


def store_written(
    cluster_id: int, kind: str, manager: str, digests_by_uid: Mapping[str, str]
) -> None:
    """Store the digests of what was written by one of our field managers, "" to forget them."""
    if digests_by_uid:
        with connection.cursor() as cursor:
            cursor.execute(_WRITTEN, [manager, json.dumps(digests_by_uid), cluster_id, kind])


_WRITTEN = """
    UPDATE pools_observedobject o SET written = COALESCE(written, '{}') || jsonb_build_object(%s, w.value)
    FROM jsonb_each_text(%s::jsonb) w
    WHERE o.cluster_id = %s AND o.kind = %s AND o.uid = w.key
"""
