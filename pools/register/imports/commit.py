"""Commit a draft: create its containers, pools and reserved ranges, and hold its addresses, in one transaction.

The locks come first, in the order of every other writer: earlier runs of a mirror, the address plan, existing pools by id. Then the
rows are validated again, so that the commit writes by the present state of the register. Pools that the import
creates are invisible to others until the end; they and their blocks are written in bulk.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.db.models import F, prefetch_related_objects

from pools.core.addresses import LONGEST_PREFIX, AddressRange
from pools.core.register_import.attributes import Definitions
from pools.core.register_import.parsing import CONTAINER, HELD, POOL, RESERVED
from pools.models import (
    AddressSpace,
    Container,
    Pool,
    PoolCIDR,
    RegisterImport,
    RegisterRow,
    ReservedRange,
)
from pools.models.attributes import ATTRIBUTES
from pools.models.imports import RowStatus
from pools.models.pools import Category
from pools.platform import advisory_locks, database, events
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Step
from pools.register import block_sync
from pools.register.allocator import window
from pools.register.imports import attributes, comparison, rows as import_rows, vanished
from pools.sql import statements

BATCH = 10_000
_WRITTEN = (RowStatus.NEW, RowStatus.CHANGED)


def write(register_import: RegisterImport, *, author: events.Author, step: Step) -> dict[str, int]:
    """Write the new and the changed rows of a draft, and return the number of rows by status.

    `step` is called with the number of rows done. Raises ImportHasBadRows unless `skip_bad`.
    """
    if register_import.mirror:
        vanished.forget_earlier_runs(register_import)
    advisory_locks.lock_plan()
    _lock_pools(register_import)
    import_rows.resolve_again(register_import)
    counts = states.count_rows(register_import)
    states.check_rows(register_import, counts)
    write_rows(register_import, step)
    if register_import.mirror:
        vanished.add_rows(register_import, author=author)
        released = register_import.rows.filter(status=RowStatus.RELEASED).exists()
        counts = (
            _write_grown_ranges(register_import, step)
            if released
            else states.count_rows(register_import)
        )
        register_import.rows.filter(status=RowStatus.UNCHANGED).delete()
    return counts


def _write_grown_ranges(register_import: RegisterImport, step: Step) -> dict[str, int]:
    """Write the reserved ranges that overlapped, or lay in, those that they were before; return the number of rows by status."""
    statuses = [RowStatus.CONFLICT, RowStatus.UNCHANGED]
    ranges = register_import.rows.filter(values__target=RESERVED, status__in=statuses, verdict="")
    if rows := list(ranges):
        comparison.compare(register_import, rows)
        import_rows.save(rows)
        write_rows(register_import, step)
    return states.count_rows(register_import)


def _lock_pools(register_import: RegisterImport) -> None:
    cidrs = register_import.rows.order_by().values_list("values__pool_cidr_id", flat=True)
    existing = PoolCIDR.objects.filter(pk__in=filter(None, cidrs.distinct()))
    window.lock(*existing.values_list("pool_id", flat=True))


def write_rows(register_import: RegisterImport, step: Step) -> None:
    """Write the new and the changed rows that are not written yet, and mark them as written."""
    unwritten = register_import.rows.filter(status__in=_WRITTEN, written=False)
    rows = list(unwritten.defer("texts", "problems", "reasons").order_by("number"))
    definitions = attributes.definitions(lock=True)
    new = [row for row in rows if row.status == RowStatus.NEW]
    done = (register_import.rows_total or 0) - len(rows)
    step(done)
    spaces = _spaces(new)
    _create_containers([row for row in new if row.target == CONTAINER], spaces, definitions)
    new_pools = [row for row in new if row.target == POOL]
    created = _create_pools(register_import, new_pools, spaces, definitions)
    cidrs = _cidrs_of_rows(rows, created)
    _reserve([row for row in new if row.target == RESERVED], cidrs)
    held = [row for row in new if row.target == HELD]
    prefetch_related_objects([*created.values()], "reserved_ranges")
    for cidr in created.values():
        free = window.layout(cidr).allocatable(window.reserved_ranges(cidr))
        window.add_free_spans(cidr, free)
    done += len(rows) - len(held)
    step(done)
    for pool, batch in _by_pool(held, cidrs):
        kind = register_import.holder_kind
        holders = {
            row.first: block_sync.AddressHolder(kind, row.holder_id, org=row.org) for row in batch
        }
        block_sync.hold(pool, holders)
        done += len(batch)
        step(done)
    database.analyze("pools_block")
    _change([row for row in rows if row.status == RowStatus.CHANGED], definitions)
    with database.hash_joins_only(many=len(rows) > BATCH):
        database.fetch(_RECORD, {"import": register_import.pk})


_RECORD = statements.read("pools/record_register_rows")


def _spaces(rows: Iterable[RegisterRow]) -> dict[tuple[int, str], AddressSpace]:
    """Return the address spaces of the rows, and create those that a VRF has not had yet."""
    names = {(row.cluster_id, row.space_name) for row in rows}
    existing = AddressSpace.objects.filter(cluster__in={cluster for cluster, _ in names})
    spaces = {(space.cluster_id, space.name): space for space in existing}
    for cluster_id, name in sorted(names - spaces.keys()):
        spaces[cluster_id, name] = AddressSpace.objects.create(cluster_id=cluster_id, name=name)
    return spaces


def _create_containers(
    rows: Iterable[RegisterRow],
    spaces: dict[tuple[int, str], AddressSpace],
    definitions: Mapping[str, Definitions],
) -> None:
    created = []
    for row in rows:
        space = spaces[row.cluster_id, row.space_name]
        container = Container(space=space, cidr=row.cidr, description=row.description)
        attributes.follow(container, {}, row.details, definitions[CONTAINER])
        created.append(container)
    Container.objects.bulk_create(created)


def _create_pools(
    register_import: RegisterImport,
    rows: Sequence[RegisterRow],
    spaces: dict[tuple[int, str], AddressSpace],
    definitions: Mapping[str, Definitions],
) -> dict[int, PoolCIDR]:
    """Create the pools of the rows with their CIDRs, and return the CIDRs by the number of their row.

    Rows that name the same pool become CIDRs of one pool.
    """
    by_name: dict[tuple[int, str], list[RegisterRow]] = defaultdict(list)
    for row in rows:
        by_name[row.cluster_id, row.pool_name].append(row)
    pools = {key: _new_pool(register_import, same, spaces) for key, same in by_name.items()}
    Pool.objects.bulk_create(pools.values())
    cidrs = {}
    for key, same in by_name.items():
        pool = pools[key]
        for position, row in enumerate(same):
            cidr = PoolCIDR(pool=pool, space_id=pool.space_id, cidr=row.cidr, position=position)
            attributes.follow(cidr, {}, row.details, definitions[POOL])
            cidrs[row.number] = cidr
    PoolCIDR.objects.bulk_create(cidrs.values())
    return cidrs


def _new_pool(
    register_import: RegisterImport,
    rows: Sequence[RegisterRow],
    spaces: dict[tuple[int, str], AddressSpace],
) -> Pool:
    first = rows[0]
    versions = {row.first.version for row in rows}
    usable = all("is_pool" in row.details for row in rows)
    return Pool(
        cluster_id=first.cluster_id,
        space=spaces[first.cluster_id, first.space_name],
        name=first.pool_name,
        category=Category.VM,
        mask_size_v4=LONGEST_PREFIX[4] if 4 in versions else None,
        mask_size_v6=LONGEST_PREFIX[6] if 6 in versions else None,
        allow_first_ip=usable,
        allow_last_ip=usable,
        cooldown_seconds=register_import.cooldown_seconds,
        description=first.description,
    )


def _cidrs_of_rows(
    rows: Iterable[RegisterRow], created: Mapping[int, PoolCIDR]
) -> dict[int, PoolCIDR]:
    """Return the CIDR that each address and range lies in, by the number of the row."""
    rows = [row for row in rows if row.target in {HELD, RESERVED}]
    existing = PoolCIDR.objects.select_related("pool").in_bulk(
        {row.pool_cidr_id for row in rows if row.pool_cidr_id}
    )

    return {
        row.number: existing[row.pool_cidr_id] if row.pool_cidr_id else created[row.pool_row or 0]
        for row in rows
    }


def _reserve(rows: Sequence[RegisterRow], cidrs: dict[int, PoolCIDR]) -> None:
    ranges = [
        ReservedRange(
            pool_id=cidrs[row.number].pool_id,
            pool_cidr=cidrs[row.number],
            first=row.first,
            last=row.last,
            reason=_reason(row),
        )
        for row in rows
    ]
    ReservedRange.objects.bulk_create(ranges, batch_size=BATCH)
    for row in rows:
        cidr = cidrs[row.number]
        if row.pool_cidr_id:
            touched = window.layout(cidr).span_touching(AddressRange(row.first, row.last))
            if touched is not None:
                window.remove_free_span(cidr, touched)


def _reason(row: RegisterRow) -> str:
    return str(row.description or row.details.get("status", ""))


def _by_pool(
    rows: Iterable[RegisterRow], cidrs: Mapping[int, PoolCIDR]
) -> Iterator[tuple[Pool, list[RegisterRow]]]:
    """Yield the addresses of each pool in batches, in the order of the pools' locks."""
    grouped: dict[Pool, list[RegisterRow]] = defaultdict(list)
    for row in rows:
        grouped[cidrs[row.number].pool].append(row)
    for pool in sorted(grouped, key=lambda pool: pool.pk):
        for first in range(0, len(grouped[pool]), BATCH):
            yield pool, grouped[pool][first : first + BATCH]


def _change(rows: Sequence[RegisterRow], definitions: Mapping[str, Definitions]) -> None:
    """Write descriptions and attributes of changed containers, pools and ranges, holders and organizations of addresses."""
    for row in rows:
        if row.target == CONTAINER:
            container = Container.objects.get(pk=row.object_id or 0)
            container.description, container.version = row.description, container.version + 1
            attributes.follow(container, _details_before(row), row.details, definitions[CONTAINER])
            container.save(update_fields=["description", "version", *ATTRIBUTES])
        elif row.target == POOL:
            cidr = PoolCIDR.objects.select_related("pool").get(pk=row.object_id or 0)
            follows = attributes.follow(cidr, _details_before(row), row.details, definitions[POOL])
            if follows or cidr.pool.description != row.description:
                window.lock(cidr.pool_id)
                cidr.save(update_fields=ATTRIBUTES)
                pools = Pool.objects.filter(pk=cidr.pool_id)
                pools.update(description=row.description, version=F("version") + 1)
        elif row.target == RESERVED:
            ranges = ReservedRange.objects.filter(pk=row.object_id or 0)
            ranges.update(reason=_reason(row))
    held = [row for row in rows if row.target == HELD]
    values = [{"id": row.object_id, "holder": row.holder_id, "org": row.org} for row in held]
    if values:
        database.fetch(_CHANGE_HOLDERS, {"rows": json.dumps(values)})


def _details_before(row: RegisterRow) -> Mapping[str, str]:
    """Return what the source said until now."""
    return (row.before or {}).get("details") or {}


_CHANGE_HOLDERS = statements.read("pools/change_holders_of_blocks")
