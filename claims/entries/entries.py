"""Entries of an IPPool: written with as few statements as possible, requested by VM owners, searched.

New rows are written by COPY, changed and deleted rows by one statement each, so that a hundred thousand
take seconds. The address index, the conflict flags and the blocks of the network's pool are updated in
the same transaction (claims/address_index/index.py).
"""

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import QuerySet

from claims.access import namespaces
from claims.address_index import duplicates, index
from claims.core.entries import EntrySpec
from claims.entries import ippools
from claims.models import Entry, IPPool, Network
from claims.models.networks import EntrySource
from pools.core import errors
from pools.platform import database, events
from pools.sql import statements


class EntryRow(NamedTuple):
    """A stored entry. No model instance, because there may be a hundred thousand."""

    pk: int
    mac: str
    ips: tuple[str, ...]
    vm: str
    namespace: str
    note: str


@dataclass
class EntryDiff:
    """The entries to create, to change (with their new values) and to delete (ids)."""

    new: list[EntrySpec] = field(default_factory=list)
    changed: list[EntryRow] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def add(
    ippool_id: int,
    specs: Sequence[EntrySpec],
    *,
    source: str,
    author: events.Author,
    version: int | None = None,
    requester: Any = None,
) -> list[Entry]:
    """Add all entries or none, duplicates included. Return them in the order of `specs`.

    What a `requester` asks for is checked once more under the locks: somebody else may have got it meanwhile.

    Raises NotFound, VersionMismatch, ClusterDecides, and QuotaExceeded for requests of VM owners.
    """
    is_request = source == EntrySource.REQUEST
    owner_namespaces = [spec.namespace or "" for spec in specs] if is_request else []
    cluster_id = IPPool.objects.filter(pk=ippool_id).values_list("cluster_id", flat=True).first()
    with (
        events.recorded_by(author),
        namespaces.enforce_quota(cluster_id or 0, owner_namespaces),
        ippools.lock_for_change(ippool_id, author=author, version=version) as ippool_change,
    ):
        if requester is not None:
            check_request(requester, ippool_change.ippool, specs)
        entries = _store(ippool_change.ippool, EntryDiff(new=list(specs)), source)
    return entries  # noqa: RET504  # mypy: a context manager may swallow


def change(
    entry_id: int, spec: EntrySpec, *, author: events.Author, version: database.Version = None
) -> Entry:
    """Change an entry; a field of `spec` that is None keeps its value.

    Raises NotFound, VersionMismatch (`version` is that of the entry), ClusterDecides.
    """
    with ippools.lock_for_change(_ippool_of(entry_id), author=author) as ippool_change:
        row = _entry(ippool_change.ippool, entry_id)  # all who change it lock its IPPool first
        database.require_version(row, version)
        diff = EntryDiff()
        _add_change(
            diff, EntryRow(row.pk, row.mac, tuple(row.ips), row.vm, row.namespace, row.note), spec
        )
        if diff:
            _store(ippool_change.ippool, diff, row.source)
    return Entry.objects.select_related("ippool__network", "ippool__cluster").get(pk=entry_id)


def delete(ids: Sequence[int], *, author: events.Author) -> int:
    """Delete entries of any IPPools. Return the number of entries deleted. Raises ClusterDecides."""
    by_ippool: dict[int, list[int]] = {}
    rows = Entry.objects.filter(pk__in=ids).order_by("ippool_id", "pk")
    for pk, ippool_id in rows.values_list("pk", "ippool_id"):
        by_ippool.setdefault(ippool_id, []).append(pk)
    with events.recorded_by(author):
        ippools.take_locks(Network.objects.filter(ippool__in=by_ippool), author=author)
        for ippool_id, gone in by_ippool.items():
            with ippools.lock_for_change(ippool_id, author=author) as ippool_change:
                _store(ippool_change.ippool, EntryDiff(gone=gone), "")
    return sum(map(len, by_ippool.values()))


def replace(
    ippool_id: int,
    specs: Sequence[EntrySpec],
    *,
    source: str,
    author: events.Author,
    version: int | None = None,
) -> EntryDiff:
    """Replace the entries of an IPPool; entries that are equal to a spec stay unchanged.

    Raises NotFound, VersionMismatch, ClusterDecides.
    """
    with ippools.lock_for_change(ippool_id, author=author, version=version) as ippool_change:
        diff = difference(entry_rows(ippool_change.ippool), specs)
        _store(ippool_change.ippool, diff, source)
    return diff


def apply_diff(
    ippool: IPPool, diff: EntryDiff, values: dict[str, Any], *, author: events.Author
) -> None:
    """Apply a diff from a cluster's object, and store `values` in the IPPool's row."""
    with ippools.lock_for_change(ippool.pk, author=author) as ippool_change:
        _store(ippool_change.ippool, diff, EntrySource.CLUSTER)
        ippool_change.values = values


def entry_rows(ippool: IPPool) -> list[EntryRow]:
    """Return the entries of an IPPool, oldest first."""
    return [
        EntryRow(pk, mac, tuple(ips), vm, namespace, note)
        for pk, mac, ips, vm, namespace, note in database.rows(
            _EXISTING, [ippool.pk], prepare=False
        )
    ]


_EXISTING = """
    SELECT id, mac::text, ips, vm, namespace, note FROM claims_entry WHERE ippool_id = %s ORDER BY id
"""


def difference(rows: Iterable[EntryRow], desired_specs: Sequence[EntrySpec]) -> EntryDiff:
    """Return the diff from the rows to the specs.

    Rows and specs are matched by MAC; those with the same MAC by addresses, then by order.
    """
    diff = EntryDiff()
    present: dict[str, list[EntryRow]] = {}
    for row in rows:
        present.setdefault(row.mac, []).append(row)
    specs_by_mac: dict[str, list[EntrySpec]] = {}
    for spec in desired_specs:
        specs_by_mac.setdefault(spec.mac, []).append(spec)
    for mac, specs in specs_by_mac.items():
        _pair(diff, present.pop(mac, []), specs)
    diff.gone += [row.pk for same_mac in present.values() for row in same_mac]
    return diff


def _pair(diff: EntryDiff, rows: list[EntryRow], specs: list[EntrySpec]) -> None:
    rows_by_ips: dict[tuple[str, ...], deque[EntryRow]] = {}
    for row in rows:
        rows_by_ips.setdefault(row.ips, deque()).append(row)
    unmatched_specs = []
    for spec in specs:
        if same_ips := rows_by_ips.get(spec.ips):
            _add_change(diff, same_ips.popleft(), spec)
        else:
            unmatched_specs.append(spec)
    remaining_rows = deque(row for same_ips in rows_by_ips.values() for row in same_ips)
    for spec in unmatched_specs:
        if remaining_rows:
            _add_change(diff, remaining_rows.popleft(), spec)
        else:
            diff.new.append(spec)
    diff.gone += [row.pk for row in remaining_rows]


def _add_change(diff: EntryDiff, row: EntryRow, spec: EntrySpec) -> None:
    changed_row = row._replace(
        mac=spec.mac,
        ips=spec.ips,
        vm=row.vm if spec.vm is None else spec.vm,
        namespace=row.namespace if spec.namespace is None else spec.namespace,
        note=row.note if spec.note is None else spec.note,
    )
    if changed_row != row:
        diff.changed.append(changed_row)


def _store(ippool: IPPool, diff: EntryDiff, source: str) -> list[Entry]:
    """Write and index a diff. Return the new entries."""
    if diff.gone:
        index.remove(entries=diff.gone)
        database.fetch(_DELETE, {"ids": database.join_values(diff.gone)})
    if diff.changed:
        database.fetch(_UPDATE, {"rows": json.dumps([row._asdict() for row in diff.changed])})
    new_entries = _insert(ippool, diff.new, source) if diff.new else []
    if diff.changed or new_entries:
        changed = [Entry(ippool_id=ippool.pk, **row._asdict()) for row in diff.changed]
        index.write(entries=[*changed, *new_entries])
    return new_entries


_DELETE = """
    DELETE FROM claims_entry WHERE id = ANY(string_to_array(%(ids)s, ',')::bigint[]) RETURNING id
"""
_UPDATE = statements.read("claims/update_entries")


def _insert(ippool: IPPool, specs: Sequence[EntrySpec], source: str) -> list[Entry]:
    now = database.now()
    ids = database.fetch(_NUMBERS, {"count": len(specs)})
    entries = [
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
        "claims_entry",
        _COLUMNS,
        (tuple(getattr(row, name) for name in _COLUMNS) for row in entries),
    )
    return entries


_NUMBERS = """
    SELECT nextval(pg_get_serial_sequence('claims_entry', 'id')) AS id
    FROM generate_series(1, %(count)s)
"""
_COLUMNS = (
    "id", "ippool_id", "mac", "ips", "vm", "namespace", "source", "note", "created_at",
)  # fmt: skip


def _ippool_of(entry_id: int) -> int:
    ippool_id = Entry.objects.filter(pk=entry_id).values_list("ippool_id", flat=True).first()
    if ippool_id is None:
        raise errors.NotFound("There is no such object.")
    return ippool_id


def _entry(ippool: IPPool, entry_id: int) -> Entry:
    entry = Entry.objects.filter(ippool=ippool, pk=entry_id).first()
    if entry is None:
        raise errors.NotFound("There is no such object.")
    return entry


def find_by_mac(rows: QuerySet[Entry], network_id: int, mac: str) -> Entry | None:
    """Return the entry of `rows` that applies to a MAC address of a network: the oldest."""
    entries = rows.filter(ippool__network=network_id, mac=mac).order_by("pk")
    return entries.first()


def check_request(user: Any, ippool: IPPool, specs: Sequence[EntrySpec]) -> None:
    """Check that a user may create these entries, each for a VM in a namespace of the user.

    Rule `taken-address-names-nobody` refuses addresses and MACs that are used elsewhere or by the
    network itself. Conflicts among rows that the user may see are allowed, as for administrators.
    Raises NotAllowed, InvalidInput, AlreadyAllocated, ReservedAddress.
    """
    if not user.has_perm("claims.add_entry") and not user.has_perm("claims.request_address"):
        raise errors.NotAllowed("This needs the permission claims.request_address.")
    scope = namespaces.owner_scope(user)
    problems = []
    for position, spec in enumerate(specs):
        prefix = f"{position}." if len(specs) > 1 else ""
        problems += [
            errors.FieldProblem(f"{prefix}{name}", "required", "required: select one of your VMs")
            for name in ("namespace", "vm")
            if not getattr(spec, name)
        ]
    if problems:
        raise errors.InvalidInput.all(problems)
    for namespace in dict.fromkeys(spec.namespace or "" for spec in specs):
        namespaces.require_request(user, ippool.cluster_id, namespace)
    candidates = [
        duplicates.Candidate(
            ippool.network,
            spec.mac,
            [ip.partition("/")[0] for ip in spec.ips],
            spec.vm or "",
            spec.namespace or "",
        )
        for spec in specs
    ]
    duplicates.require_free(*candidates, scope=scope, reserved="for the network itself")


def require_free(entry: Entry, spec: EntrySpec, scope: namespaces.Scope) -> None:
    """Raise AlreadyAllocated or ReservedAddress if a changed entry would take what the scope does not show."""
    candidate = duplicates.Candidate(
        entry.ippool.network,
        spec.mac,
        [ip.partition("/")[0] for ip in spec.ips],
        entry.vm if spec.vm is None else spec.vm,
        entry.namespace if spec.namespace is None else spec.namespace,
        entry_id=entry.pk,
    )
    duplicates.require_free(candidate, scope=scope, reserved="for the network itself")


def may_withdraw(user: Any, entry: Entry) -> bool:
    """Return True if the user may delete the entry: any entry, or the request of an owner of its VM."""
    if user.has_perm("claims.delete_entry"):
        return True
    if entry.source != EntrySource.REQUEST or not user.has_perm("claims.request_address"):
        return False
    return namespaces.owner_scope(user).has(entry.ippool.cluster_id, entry.namespace)


def require_withdrawal(user: Any, entry: Entry) -> None:
    """Raise NotAllowed unless the user may delete the entry."""
    if not may_withdraw(user, entry):
        raise errors.NotAllowed("This needs the permission claims.delete_entry.")


_NAMESPACES = statements.read("claims/used_namespaces")


def used_namespaces(limit: int) -> list[str]:
    """Return the first namespaces that entries name, in their order."""
    return [namespace for (namespace,) in database.rows(_NAMESPACES, {"most": limit})]
