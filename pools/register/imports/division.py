"""Division of a registered part by prefixes that its source has added since, and the undo of it.

The part's CIDR gives way to those of the rows that name it (`pool_cidr_id`): prefixes in which it has something and what
is left of it stay in its pool, with their blocks and reserved ranges; prefixes in which it has nothing become pools or
containers of their own. No block changes. The rows keep what the undo needs as their former values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from django.db import connection
from django.db.models import F, Max

from pools.core import addresses, blocks, errors
from pools.core.register_import.attributes import Definitions
from pools.core.register_import.parsing import CONTAINER, POOL, RESERVED
from pools.models import (
    Block,
    Pool,
    PoolCIDR,
    RegisterImport,
    RegisterRecord,
    RegisterRow,
    ReservedRange,
)
from pools.models.attributes import ATTRIBUTES
from pools.models.register_imports import RowStatus
from pools.platform import database
from pools.register import orphans, pools
from pools.register.allocator import window
from pools.register.imports import attributes
from pools.register.imports.draft_rows import DraftRow

Divided = Mapping[int, Sequence[PoolCIDR]]  # what a pool has instead of a part, by the part's id
KEY = "divided"  # of the former values of a row
_RECORD = ("target", "first", "last", "holder_id", "description", "details")
_RECORD_IDS = ("register_import_id", "source_id", "external_id")


def is_planned(register_import: RegisterImport) -> bool:
    """Return True if new rows of a draft divide parts."""
    rows = register_import.rows.filter(status=RowStatus.NEW, target__in=[CONTAINER, POOL])
    return bool(rows.exclude(pool_cidr_id=None).exists())


def divide_parts(
    register_import: RegisterImport, rows: Iterable[DraftRow], definitions: Definitions
) -> Divided:
    """Divide the parts that new prefixes lie in; return the CIDRs that their pools have instead, by the part's id.

    The locks of `commit.write` are held. Raises CIDRInUse if a block would lie in none of them.
    """
    by_part: dict[int, list[DraftRow]] = defaultdict(list)
    for row in rows:
        if row.target in {CONTAINER, POOL} and row.pool_cidr_id:
            by_part[row.pool_cidr_id].append(row)
    divided = {}
    for part in PoolCIDR.objects.filter(pk__in=by_part).select_related("pool"):
        same = by_part[part.pk]
        staying = [row for row in same if row.stays_in(part)]
        networks = [ip_network(row.cidr or "") for row in staying]
        _refuse_uncovered(part, networks)
        numbers = [row.number for row in same]
        affected = RegisterRow.objects.filter(register_import=register_import, number__in=numbers)
        affected.update(before={KEY: _former(part, networks)})
        cidrs = _regroup(part.pool, [part], networks)
        for cidr, row in zip(cidrs, staying, strict=True):
            if row.is_part:
                attributes.assign(cidr, attributes.of_object(part))
            else:
                attributes.follow(cidr, {}, row.details, definitions)
            cidr.save(update_fields=ATTRIBUTES)
        divided[part.pk] = cidrs
    return divided


def has_cidr(row: DraftRow, divided: Divided) -> bool:
    """Return True for a prefix that has become a CIDR of the pool whose part it divides."""
    return any(str(cidr) == row.cidr for cidr in divided.get(row.pool_cidr_id or 0, ()))


def find_cidr(row: DraftRow, divided: Divided) -> PoolCIDR | None:
    """Return the CIDR that an address or a range lies in; None if that was not divided."""
    cidrs = divided.get(row.pool_cidr_id or 0, ())
    return next((cidr for cidr in cidrs if ip_address(row.first) in cidr.cidr), None)


def _refuse_uncovered(part: PoolCIDR, networks: Sequence[addresses.Network]) -> None:
    for block in pools.blocks_in_use(part):
        if not any(block.cidr.subnet_of(network) for network in networks):
            raise errors.CIDRInUse(
                f"{part} of the pool {part.pool} cannot be divided: {block.cidr} is in use,"
                " and no row that is imported has it."
            )


def _former(part: PoolCIDR, networks: Sequence[addresses.Network]) -> dict[str, Any]:
    """Return what the undo needs, and delete what the import said about the part and about ranges that are dropped."""
    dropped = [
        reserved
        for reserved in part.reserved_ranges.all()
        if not any(reserved.first in network for network in networks)
    ]
    records = RegisterRecord.objects.filter(
        space=part.space_id, target=POOL, first=part.cidr.network_address
    ).filter(last=part.cidr.broadcast_address)
    for reserved in dropped:
        records |= RegisterRecord.objects.filter(
            space=part.space_id, target=RESERVED, first=reserved.first, last=reserved.last
        )
    former = {
        "cidr": str(part.cidr),
        "pool": part.pool_id,
        "position": part.position,
        **{name: getattr(part, name) for name in ATTRIBUTES},
        "ranges": [
            {"first": str(row.first), "last": str(row.last), "reason": row.reason}
            for row in dropped
        ],
        "records": [
            {name: getattr(record, name) for name in (*_RECORD, *_RECORD_IDS)}
            | {"first": str(record.first), "last": str(record.last)}
            for record in records
        ],
    }
    records.delete()
    return former


def _regroup(
    pool: Pool,
    replaced: Sequence[PoolCIDR],
    networks: Sequence[addresses.Network],
    more_ranges: Iterable[Mapping[str, str]] = (),
) -> list[PoolCIDR]:
    """Put other CIDRs in the place of some of a pool, with their reserved ranges; blocks in use do not change."""
    stored = ReservedRange.objects.filter(pool_cidr__in=replaced)
    ranges = [*stored.values("first", "last", "reason"), *more_ranges]
    for cidr in replaced:
        orphans.withhold_blocks(cidr)
        _forget_cooled_blocks(cidr)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.regrouping', 'on', true)")
        PoolCIDR.objects.filter(pk__in=[cidr.pk for cidr in replaced]).delete()
        cursor.execute("SELECT set_config('ipam.regrouping', '', true)")
    last = pool.cidrs.aggregate(last=Max("position"))["last"]
    cidrs = []
    for position, network in enumerate(networks, start=0 if last is None else last + 1):
        cidr = PoolCIDR(pool=pool, space_id=pool.space_id, cidr=network, position=position)
        database.save(cidr)
        for values in ranges:
            if ip_address(str(values["first"])) in network:
                ReservedRange.objects.create(pool=pool, pool_cidr=cidr, **values)
        grid = window.layout(cidr)
        withheld = grid.withheld(window.reserved_ranges(cidr))
        window.end_withholding(cidr, blocks.Span(0, grid.count - 1), still_withheld=withheld)
        cidrs.append(cidr)
    Pool.objects.filter(pk=pool.pk).update(version=F("version") + 1)
    return cidrs


def _forget_cooled_blocks(cidr: PoolCIDR) -> None:
    """Delete the rows of blocks whose cooldown has ended, as the removal of a CIDR does."""
    in_use = pools.blocks_in_use(cidr).values("pk")
    grid = window.layout(cidr)
    rows = Block.objects.filter(space=cidr.space_id, cidr__gte=str(grid.block_at(0)))
    rows.filter(cidr__lte=str(grid.block_at(grid.count - 1))).exclude(pk__in=in_use).delete()


def merge_parts(register_import: RegisterImport) -> None:
    """Restore the parts that an import has divided, after all else that it has created is gone."""
    for former in _former_parts(register_import):
        pool = Pool.objects.filter(pk=former["pool"]).first()
        if pool is None:
            continue  # deleted since, as all that it had
        network = ip_network(former["cidr"])
        inside = list(pool.cidrs.filter(cidr__net_contained_or_equal=former["cidr"]))
        (part,) = _regroup(pool, inside, [network], former["ranges"])
        part.position = former["position"]
        for name in ATTRIBUTES:
            setattr(part, name, former[name])
        part.save(update_fields=["position", *ATTRIBUTES])
        RegisterRecord.objects.bulk_create(
            RegisterRecord(space_id=part.space_id, **values) for values in former["records"]
        )


def pools_of_parts(register_import: RegisterImport) -> set[int]:
    """Return the ids of the pools of which an import has divided a part."""
    return {former["pool"] for former in _former_parts(register_import)}


def _former_parts(register_import: RegisterImport) -> list[dict[str, Any]]:
    rows = register_import.rows.filter(written=True, before__has_key=KEY).order_by("number")
    former = [before[KEY] for before in rows.values_list("before", flat=True) if before]
    return list({(values["pool"], values["cidr"]): values for values in former}.values())
