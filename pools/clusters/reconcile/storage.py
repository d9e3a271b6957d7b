"""Storage of observed objects as rows, many in one statement, with any content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.db import DataError, IntegrityError, connection, transaction

from pools.clusters.reconcile import comparison
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.platform import database

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
    uids = [comparison.column_text(item.manifest["metadata"], "uid") for item in batch]
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
        comparison.column_text(metadata, "namespace"),
        comparison.column_text(metadata, "name"),
        uid,
        comparison.column_text(metadata, "resourceVersion"),
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
    return json.dumps(
        {"metadata": {name: comparison.column_text(metadata, name) for name in comparison.LONGEST}}
    )
