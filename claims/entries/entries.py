"""Entries of an IPPool: one, many, or the whole set, with as few writes as bring it about.

New rows come in by COPY, changed and removed ones in one statement each, so that a hundred thousand
cost seconds; the index of places, the flags of duplicates and the blocks of the network's pool follow
in the same transaction (claims/address_index/index.py).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import QuerySet

from claims.address_index import index
from claims.core.entries import EntrySpec
from claims.entries import ippools
from claims.models import Entry, IPPool
from claims.models.ippools import Source
from pools.core import errors
from pools.platform import database, events


class Known(NamedTuple):
    """An entry as it is stored, without the cost of a model: there may be a hundred thousand."""

    pk: int
    mac: str
    ips: tuple[str, ...]
    vm: str
    namespace: str
    note: str


@dataclass
class Difference:
    """What brings the entries of an IPPool to what is wanted; changed ones have their new values."""

    new: list[EntrySpec] = field(default_factory=list)
    changed: list[Known] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def add(
    ippool_id: int,
    wanted: Sequence[EntrySpec],
    *,
    source: str,
    author: events.Author,
    version: int | None = None,
) -> list[Entry]:
    """Add entries, duplicates or not, all or nothing; in the order in which they were given.

    Raises NotFound, VersionMismatch, ClusterDecides.
    """
    with ippools.changing(ippool_id, author=author, version=version) as changed:
        made = _store(changed.ippool, Difference(new=list(wanted)), source)
    return made  # noqa: RET504  # mypy: a context manager may swallow


def change(entry_id: int, wanted: EntrySpec, *, author: events.Author) -> Entry:
    """Bring one entry to what is wanted; of its texts, those that are not None.

    Raises NotFound, ClusterDecides.
    """
    with ippools.changing(_ippool_of(entry_id), author=author) as changed:
        row = _entry(changed.ippool, entry_id)
        found = Difference()
        _bring(
            found, Known(row.pk, row.mac, tuple(row.ips), row.vm, row.namespace, row.note), wanted
        )
        if found:
            _store(changed.ippool, found, row.source)
    return _one(entry_id)


def delete(ids: Sequence[int], *, author: events.Author) -> int:
    """Remove entries, of several IPPools if need be; how many there were. Raises ClusterDecides."""
    by_ippool: dict[int, list[int]] = {}
    rows = Entry.objects.filter(pk__in=ids).order_by("ippool_id", "pk")
    for pk, ippool_id in rows.values_list("pk", "ippool_id"):
        by_ippool.setdefault(ippool_id, []).append(pk)
    with events.recorded(author):
        for ippool_id, gone in by_ippool.items():
            with ippools.changing(ippool_id, author=author) as changed:
                _store(changed.ippool, Difference(gone=gone), "")
    return sum(map(len, by_ippool.values()))


def replace(
    ippool_id: int,
    wanted: Sequence[EntrySpec],
    *,
    source: str,
    author: events.Author,
    version: int | None = None,
) -> Difference:
    """Make these the entries of the IPPool; what is there already stays as it is.

    Raises NotFound, VersionMismatch, ClusterDecides.
    """
    with ippools.changing(ippool_id, author=author, version=version) as changed:
        found = difference(known(changed.ippool), wanted)
        _store(changed.ippool, found, source)
    return found


def bring(ippool: IPPool, found: Difference, values: dict[str, Any], *, author: events.Author) -> None:
    """Store a difference that a cluster's object makes, and what else is known of the IPPool."""
    with ippools.changing(ippool.pk, author=author) as changed:
        _store(changed.ippool, found, Source.CLUSTER)
        changed.values = values


def known(ippool: IPPool) -> list[Known]:
    """The entries of an IPPool, in the order in which they were made."""
    return [
        Known(pk, mac, tuple(ips), vm, namespace, note)
        for pk, mac, ips, vm, namespace, note in database.rows(_KNOWN, [ippool.pk], prepare=False)
    ]


_KNOWN = """
    SELECT id, mac::text, ips, vm, namespace, note FROM claims_entry WHERE ippool_id = %s ORDER BY id
"""


def difference(rows: Iterable[Known], wanted: Sequence[EntrySpec]) -> Difference:
    """Entries are told apart by MAC, those of one MAC by their addresses, then by their order."""
    found = Difference()
    present: dict[str, list[Known]] = {}
    for row in rows:
        present.setdefault(row.mac, []).append(row)
    asked: dict[str, list[EntrySpec]] = {}
    for spec in wanted:
        asked.setdefault(spec.mac, []).append(spec)
    for mac, specs in asked.items():
        _pair(found, present.pop(mac, []), specs)
    found.gone += [row.pk for left in present.values() for row in left]
    return found


def _pair(found: Difference, rows: list[Known], specs: list[EntrySpec]) -> None:
    there: dict[tuple[str, ...], deque[Known]] = {}
    for row in rows:
        there.setdefault(row.ips, deque()).append(row)
    others = []
    for spec in specs:
        if same := there.get(spec.ips):
            _bring(found, same.popleft(), spec)
        else:
            others.append(spec)
    left = deque(row for same in there.values() for row in same)
    for spec in others:
        if left:
            _bring(found, left.popleft(), spec)
        else:
            found.new.append(spec)
    found.gone += [row.pk for row in left]


def _bring(found: Difference, row: Known, spec: EntrySpec) -> None:
    wanted = row._replace(
        mac=spec.mac,
        ips=spec.ips,
        vm=row.vm if spec.vm is None else spec.vm,
        namespace=row.namespace if spec.namespace is None else spec.namespace,
        note=row.note if spec.note is None else spec.note,
    )
    if wanted != row:
        found.changed.append(wanted)


def _store(ippool: IPPool, found: Difference, source: str) -> list[Entry]:
    """Write a difference and index it; the entries that are new."""
    if found.gone:
        index.remove(entries=found.gone)
        database.fetch(_DELETE, {"ids": database.joined(found.gone)})
    if found.changed:
        database.fetch(_UPDATE, {"rows": json.dumps([row._asdict() for row in found.changed])})
    made = _insert(ippool, found.new, source) if found.new else []
    if found.changed or made:
        changed = [Entry(ippool_id=ippool.pk, **row._asdict()) for row in found.changed]
        index.write(entries=[*changed, *made])
    return made


_DELETE = """
    DELETE FROM claims_entry WHERE id = ANY(string_to_array(%(ids)s, ',')::bigint[]) RETURNING id
"""
_UPDATE = """
    UPDATE claims_entry e SET mac = w.mac, ips = w.ips, vm = w.vm, namespace = w.namespace,
        note = w.note
    FROM jsonb_to_recordset(%(rows)s::jsonb)
        AS w(pk bigint, mac macaddr, ips varchar[], vm text, namespace text, note text)
    WHERE e.id = w.pk RETURNING e.id
"""


def _insert(ippool: IPPool, specs: Sequence[EntrySpec], source: str) -> list[Entry]:
    now = database.now()
    ids = database.fetch(_NUMBERS, {"count": len(specs)})
    made = [
        Entry(
            pk=number["id"],
            ippool_id=ippool.pk,
            mac=spec.mac,
            ips=list(spec.ips),
            vm=spec.vm or "",
            namespace=spec.namespace or "",
            source=source,
            note=spec.note or "",
            created_at=now,
        )
        for number, spec in zip(ids, specs, strict=True)
    ]
    database.copy(
        "claims_entry", _COLUMNS, (tuple(getattr(row, name) for name in _COLUMNS) for row in made)
    )
    return made


_NUMBERS = """
    SELECT nextval(pg_get_serial_sequence('claims_entry', 'id')) AS id
    FROM generate_series(1, %(count)s)
"""
_COLUMNS = (
    "id", "ippool_id", "mac", "ips", "vm", "namespace", "source", "note", "created_at",
)  # fmt: skip


def _ippool_of(entry_id: int) -> int:
    found = Entry.objects.filter(pk=entry_id).values_list("ippool_id", flat=True).first()
    if found is None:
        raise errors.NotFound("There is no such object.")
    return found


def _entry(ippool: IPPool, entry_id: int) -> Entry:
    found = Entry.objects.filter(ippool=ippool, pk=entry_id).first()
    if found is None:
        raise errors.NotFound("There is no such object.")
    return found


def _one(entry_id: int) -> Entry:
    return Entry.objects.select_related("ippool__network", "ippool__cluster").get(pk=entry_id)


def for_mac(rows: QuerySet[Entry], network_id: int, mac: str) -> Entry | None:
    """Among some entries the one that counts for a MAC address of a network: the oldest."""
    found = rows.filter(ippool__network=network_id, mac=mac).order_by("pk")
    return found.first()
