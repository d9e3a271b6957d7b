"""The address index: the MACs and addresses of entries, claims and workloads.

Code that writes entries, claims or workloads calls `write` in the same transaction; code that deletes
them calls `remove` first. Both check the changed MACs and addresses for conflicts, and sync the blocks
of the networks' pools (claims/address_index/{conflicts,block_sync}.py).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from claims.address_index import block_sync, conflicts
from claims.address_index.block_sync import ChangedKeys
from claims.models import Entry, IPAMClaim, IPPool, Workload
from claims.models.workloads import WorkloadKind
from pools.platform import database

OWNERS = ("entry", "claim", "workload")


@dataclass(frozen=True)
class _IndexEntry:
    """A row of the index without its owner and its conflict flags."""

    network_id: int
    address: str | None
    mac: str | None
    namespace: str
    vm: str
    holds: bool = True

    @property
    def names_something(self) -> bool:
        return bool(self.address or self.mac or self.vm)


@dataclass
class IndexChange:
    """Rows of the index to delete and to create, with the MACs and addresses that change."""

    gone: list[int] = field(default_factory=list)  # ids of index entries
    new: list[tuple[str, int, _IndexEntry]] = field(default_factory=list)  # column, owner id, row
    changed_keys: ChangedKeys = field(default_factory=ChangedKeys)


def write(
    *,
    entries: Sequence[Entry] = (),
    claims: Sequence[IPAMClaim] = (),
    workloads: Sequence[Workload] = (),
) -> None:
    """Index saved rows. Unchanged rows cost one read and no write."""
    _apply(compare(entries=entries, claims=claims, workloads=workloads))


def compare(
    *,
    entries: Sequence[Entry] = (),
    claims: Sequence[IPAMClaim] = (),
    workloads: Sequence[Workload] = (),
) -> IndexChange:
    """Return the difference between the index and these rows."""
    change = IndexChange()
    ippools = IPPool.objects.filter(pk__in={entry.ippool_id for entry in entries})
    networks = dict(ippools.values_list("pk", "network_id"))
    _compare(change, "entry", entries, lambda entry: _of_entry(entry, networks[entry.ippool_id]))
    _compare(change, "claim", claims, _of_claim)
    _compare(change, "workload", workloads, _of_workload)
    return change


def remove(
    *, entries: Collection[int] = (), claims: Collection[int] = (), workloads: Collection[int] = ()
) -> None:
    """Remove the rows with these ids from the index; the caller deletes the rows afterwards."""
    change = IndexChange()
    for column, ids in zip(OWNERS, (entries, claims, workloads), strict=True):
        for rows in _existing_rows(column, ids).values():
            for index_entry_id, row, holder in rows:
                change.gone.append(index_entry_id)
                change.changed_keys.add(row.network_id, row.mac, row.address, holder)
    _apply(change)


def _of_entry(entry: Entry, network_id: int) -> Iterator[_IndexEntry]:
    for text in entry.ips:
        yield _IndexEntry(network_id, _host(text), entry.mac, entry.namespace, entry.vm)


def _of_claim(claim: IPAMClaim) -> Iterator[_IndexEntry]:
    granted_hosts = dict.fromkeys(_host(text) for text in claim.ips)
    requested_hosts = dict.fromkeys(_host(text) for text in claim.ips_requested)
    rows: list[tuple[str | None, bool]] = [(host, True) for host in granted_hosts]
    rows += [(host, False) for host in requested_hosts if host not in granted_hosts]
    for address, holds in rows or [(None, False)]:
        yield _IndexEntry(claim.network_id, address, claim.mac, claim.namespace, claim.vm, holds)


def _of_workload(workload: Workload) -> Iterator[_IndexEntry]:
    addresses: list[str | None] = list(dict.fromkeys(_host(text) for text in workload.ips))
    for address in addresses or [None]:
        yield _IndexEntry(
            workload.network_id, address, workload.mac, workload.namespace, workload.name
        )


def _host(text: str) -> str:
    return text.partition("/")[0]


def _compare(
    change: IndexChange,
    column: str,
    owners: Sequence[Any],
    rows_of: Callable[[Any], Iterable[_IndexEntry]],
) -> None:
    existing_rows = _existing_rows(column, [owner.pk for owner in owners])
    for owner in owners:
        desired_rows = [row for row in rows_of(owner) if row.names_something]
        holder = _holder(column, owner)
        for index_entry_id, row, former in existing_rows.get(owner.pk, ()):
            if row in desired_rows and former == holder:
                desired_rows.remove(row)  # only once: an entry may name an address twice
            else:
                change.gone.append(index_entry_id)
                change.changed_keys.add(row.network_id, row.mac, row.address, former)
        for row in desired_rows:
            change.new.append((column, owner.pk, row))
            change.changed_keys.add(row.network_id, row.mac, row.address, None)


def _holder(column: str, owner: Any) -> tuple[str, str]:
    if column == "workload":
        kind = "pod" if owner.kind == WorkloadKind.POD else "vm"
        return kind, block_sync.full_name(owner.namespace, owner.name)
    return block_sync.holder_name(owner.namespace, owner.vm, owner.mac)


def _existing_rows(
    column: str, ids: Collection[int]
) -> dict[int, list[tuple[int, _IndexEntry, tuple[str, str]]]]:
    rows_by_owner: dict[int, list[tuple[int, _IndexEntry, tuple[str, str]]]] = {}
    if not ids:
        return rows_by_owner
    for owner, index_entry_id, network, address, mac, namespace, vm, holds, kind in database.rows(
        _EXISTING.format(owner=sql.Identifier("p", f"{column}_id")),
        [database.join_values(ids)],
        prepare=False,
    ):
        row = _IndexEntry(network, address, mac and str(mac), namespace, vm, holds)
        name = (
            (kind, block_sync.full_name(namespace, vm))
            if kind
            else block_sync.holder_name(namespace, vm, row.mac)
        )
        rows_by_owner.setdefault(owner, []).append((index_entry_id, row, name))
    return rows_by_owner


_EXISTING = sql.SQL(
    """
    SELECT {owner}, p.id, p.network_id, host(p.address), p.mac::text, p.namespace, p.vm,
        p.holds, CASE w.kind WHEN 'vmi' THEN 'vm' ELSE w.kind END
    FROM claims_indexentry p LEFT JOIN claims_workload w ON w.id = p.workload_id
    WHERE {owner} = ANY(string_to_array(%s, ',')::bigint[])
    ORDER BY p.id
    """
)


def _apply(change: IndexChange) -> None:
    block_sync.lock_pools(change.changed_keys.networks)
    index(change)
    if change.changed_keys:
        block_sync.sync_blocks(change.changed_keys)


def index(change: IndexChange) -> None:
    """Apply a change to the index and its conflict flags, without syncing blocks."""
    if change.gone:
        database.rows(_DELETE, [database.join_values(change.gone)], prepare=False)
    if change.new:
        database.copy("claims_indexentry", _COLUMNS, map(_column_values, change.new))
    if change.changed_keys:
        conflicts.recheck(change.changed_keys)


_DELETE = """
    DELETE FROM claims_indexentry WHERE id = ANY(string_to_array(%s, ',')::bigint[]) RETURNING id
"""
_COLUMNS = (
    "entry_id", "claim_id", "workload_id", "network_id", "address", "mac", "namespace", "vm", "holds",
)  # fmt: skip


def _column_values(new: tuple[str, int, _IndexEntry]) -> tuple[object, ...]:
    column, owner, row = new
    owners = [owner if column == owner_column else None for owner_column in OWNERS]
    return (*owners, row.network_id, row.address, row.mac, row.namespace, row.vm, row.holds)
