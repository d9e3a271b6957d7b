"""Division of an imported CIDR by prefixes that its source has added since, and the undo of it.

The CIDR gives way to those of the rows that name it (`pool_cidr_id`): prefixes in which it has something and what
is left of it stay in its pool, with their blocks and reserved ranges; prefixes in which it has nothing become pools or
containers of their own. No block changes. A pool that has no CIDR any more is deleted. The rows keep what the undo
needs as their former values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from django.core import serializers
from django.db.models import F, Max

from pools.core import addresses, errors
from pools.core.register_import.attributes import Definitions
from pools.core.register_import.parsing import CONTAINER, POOL, RESERVED
from pools.models import (
    Container,
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
from pools.register import orphans, pool_cidrs
from pools.register.imports import attributes, division_plan
from pools.register.imports.draft_rows import DraftRow
from pools.register.imports.places import Place, edge_name, edges

Divided = Mapping[int, Sequence[PoolCIDR]]  # what a pool has instead of a part, by the former id
KEY = "divided"  # of the former values of a row
_RANGE = (
    "id",
    "first",
    "last",
    "reason",
)  # with their ids, by which rows of other imports know them
_RECORD = (
    *("target", "first", "last", "holder_id", "description", "details"),
    *("register_import_id", "source_id", "external_id"),
)


def is_planned(register_import: RegisterImport) -> bool:
    """Return True if new rows of a draft divide CIDRs."""
    rows = register_import.rows.filter(status=RowStatus.NEW, target__in=[CONTAINER, POOL])
    return bool(rows.exclude(pool_cidr_id=None).exists())


def divide_cidrs(
    register_import: RegisterImport, rows: Iterable[DraftRow], definitions: Definitions
) -> Divided:
    """Divide the CIDRs that new prefixes lie in; return the CIDRs that their pools have instead, by the former id.

    The locks of `commit.write` are held. Raises CIDRInUse if a block would lie in none of them.
    """
    by_cidr: dict[int, list[DraftRow]] = defaultdict(list)
    for row in rows:
        if row.target in {CONTAINER, POOL} and row.pool_cidr_id:
            by_cidr[row.pool_cidr_id].append(row)
    divided = {}
    for part in PoolCIDR.objects.filter(pk__in=by_cidr).select_related("pool"):
        same = by_cidr[part.pk]
        staying = [row for row in same if row.stays_in(part)]
        networks = [ip_network(row.cidr or "") for row in staying]
        _refuse_uncovered(part, networks)
        is_named = any(row.cidr == str(part) for row in same)
        former = _former(part, staying, register_import, is_named=is_named)
        if not is_named and not register_import.mirror:
            former["container"] = _keep_as_container(part, former)
        _allow_edges(part.pool, first=True, last=True)
        new = dict.fromkeys(networks)
        cidrs = _regroup(part.pool, [part], new, former["ranges"], former["edges"])
        for cidr, row in zip(cidrs, staying, strict=True):
            if row.is_part:
                attributes.assign(cidr, attributes.of_object(part))
            else:
                attributes.follow(cidr, {}, row.details, definitions)
            cidr.save(update_fields=ATTRIBUTES)
        divided[part.pk] = cidrs
        if not part.pool.cidrs.exists():
            former["removed_pool"] = serializers.serialize("json", [part.pool])
            part.pool.delete()
        numbers = [row.number for row in same]
        affected = RegisterRow.objects.filter(register_import=register_import, number__in=numbers)
        affected.update(before={KEY: former})
    return divided


def _keep_as_container(part: PoolCIDR, former: Mapping[str, Any]) -> int | None:
    """Make a container of a CIDR that was a prefix, if the import has only prefixes in it; return its id."""
    records = [values for values in former["records"] if values["target"] == POOL]
    if not records or "part_of" in records[0]["details"]:
        return None
    values = {"description": records[0]["description"]}
    values |= {name: getattr(part, name) for name in ATTRIBUTES}
    container, created = Container.objects.get_or_create(
        space_id=part.space_id, cidr=part.cidr, defaults=values
    )
    if not created:
        return None
    details = {"status": "active", **records[0]["details"]}
    RegisterRecord.objects.create(
        space_id=part.space_id, **{**records[0], "target": CONTAINER, "details": details}
    )
    return container.pk


def _allow_edges(pool: Pool, *, first: bool, last: bool) -> None:
    """Set whether the first and the last address of each CIDR can be used, which users never change."""
    if (pool.allow_first_ip, pool.allow_last_ip) != (first, last):
        pool.allow_first_ip, pool.allow_last_ip = first, last
        with orphans.regrouping():
            pool.save(update_fields=["allow_first_ip", "allow_last_ip"])


def has_cidr(row: DraftRow, divided: Divided) -> bool:
    """Return True for a prefix that has become a CIDR of the pool whose CIDR it divides."""
    return any(str(cidr) == row.cidr for cidr in divided.get(row.pool_cidr_id or 0, ()))


def find_cidr(row: DraftRow, divided: Divided) -> PoolCIDR | None:
    """Return the CIDR that an address or a range lies in; None if that was not divided."""
    cidrs = divided.get(row.pool_cidr_id or 0, ())
    return next((cidr for cidr in cidrs if ip_address(row.first) in cidr.cidr), None)


def _refuse_uncovered(part: PoolCIDR, networks: Sequence[addresses.Network]) -> None:
    for block in pool_cidrs.blocks_in_use(part):
        if not any(block.cidr.subnet_of(network) for network in networks):
            raise errors.CIDRInUse(
                f"{part} of the pool {part.pool} cannot be divided: {block.cidr} is in use,"
                " and no row that is imported has it."
            )


def _former(
    part: PoolCIDR,
    staying: Sequence[DraftRow],
    register_import: RegisterImport,
    *,
    is_named: bool,
) -> dict[str, Any]:
    """Return what the undo needs. What the import said about the part, and about ranges that are dropped, is deleted.

    Dropped are ranges where the pool has nothing any more, and in prefixes those of the network around the part;
    instead the network and the broadcast address of these prefixes are reserved (`edges`), as in a part. So are those of
    the CIDR itself, unless a row of the import names it, from which that follows.
    """
    records = RegisterRecord.objects.filter(space=part.space_id)
    own = records.filter(target=POOL, first=part.cidr.network_address)
    gone = [*own.filter(last=part.cidr.broadcast_address)]
    derived = {
        record.first: record
        for record in records.filter(target=RESERVED, details__has_key="part_of")
    }
    dropped = []
    for reserved in part.reserved_ranges.all():
        row = next((row for row in staying if _contains(row, reserved.first)), None)
        if row is None or (not row.is_part and reserved.first in derived):
            dropped.append(reserved)
            gone += filter(None, [derived.get(reserved.first)])
    former: dict[str, Any] = {
        "id": part.pk,
        "cidr": str(part.cidr),
        "pool": part.pool_id,
        "edges_allowed": [part.pool.allow_first_ip, part.pool.allow_last_ip],
        "position": part.position,
        **{name: getattr(part, name) for name in ATTRIBUTES},
        "ranges": [_values(row, *_RANGE) for row in dropped],
        "records": [_values(record, *_RECORD) for record in gone],
        "edges": [],
    }
    for row in staying:
        if not row.is_part:
            former["edges"] += _edges(ip_network(row.cidr or ""), usable=row.is_pool)
    if not is_named:
        rest = [row for row in staying if row.is_part]
        former["edges"] += [
            edge
            for edge in _edges(part.cidr, usable=division_plan.has_usable_edges(part.pool))
            if any(_contains(row, ip_address(edge["first"])) for row in rest)
        ]
    RegisterRecord.objects.filter(pk__in=[record.pk for record in gone]).delete()
    for edge in former["edges"]:
        RegisterRecord.objects.get_or_create(
            space_id=part.space_id,
            target=RESERVED,
            first=edge["first"],
            last=edge["last"],
            defaults={
                "description": edge["reason"],
                "details": {"part_of": str(part.cidr)},
                "register_import_id": register_import.pk,
            },
        )
    return former


def _contains(row: DraftRow, address: addresses.Address) -> bool:
    return address in ip_network(row.cidr or "")


def _values(row: Any, *names: str) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    return values | {"first": str(values["first"]), "last": str(values["last"])}


def _edges(network: addresses.Network, *, usable: bool) -> Iterator[dict[str, str]]:
    place = Place(int(network.network_address), int(network.broadcast_address))
    address, version = type(network.network_address), network.version
    for number in () if usable else edges(place, version):
        text = str(address(number))
        reason = f"{edge_name(place, number, version)} of {network}"
        yield {"first": text, "last": text, "reason": reason}


def _regroup(
    pool: Pool,
    replaced: Sequence[PoolCIDR],
    networks: Mapping[addresses.Network, int | None],
    without: Sequence[Mapping[str, Any]],
    more: Sequence[Mapping[str, Any]],
) -> list[PoolCIDR]:
    """Put other CIDRs in the place of some of a pool, with their reserved ranges; blocks in use do not change.

    `networks` are the new ones, each with its id if it had one. Of the ranges those in `without` go, and those in
    `more` come.
    """
    stored = ReservedRange.objects.filter(pool_cidr__in=replaced)
    dropped = {(values["first"], values["last"]) for values in without}
    kept = [_values(row, *_RANGE) for row in stored]
    ranges: list[Mapping[str, Any]] = [
        values for values in kept if (values["first"], values["last"]) not in dropped
    ]
    present = [(int(ip_address(row["first"])), int(ip_address(row["last"]))) for row in ranges]
    ranges += [
        values
        for values in more
        if not any(first <= int(ip_address(values["first"])) <= last for first, last in present)
    ]
    for cidr in replaced:
        _forget_cooled_blocks(cidr)
    orphans.delete_keeping_blocks(replaced)
    last = pool.cidrs.aggregate(last=Max("position"))["last"]
    cidrs = []
    for position, network in enumerate(networks, start=0 if last is None else last + 1):
        cidr = PoolCIDR(
            pk=networks[network],
            pool=pool,
            space_id=pool.space_id,
            cidr=network,
            position=position,
        )
        database.save(cidr)
        for values in ranges:
            if ip_address(values["first"]) in network:
                ReservedRange.objects.create(pool=pool, pool_cidr=cidr, **values)
        orphans.end_withholding(cidr)
        cidrs.append(cidr)
    Pool.objects.filter(pk=pool.pk).update(version=F("version") + 1)
    return cidrs


def _forget_cooled_blocks(cidr: PoolCIDR) -> None:
    """Delete the rows of blocks whose cooldown has ended, as the removal of a CIDR does."""
    in_use = pool_cidrs.blocks_in_use(cidr).values("pk")
    orphans.blocks_of(cidr).exclude(pk__in=in_use).delete()


def merge_cidrs(register_import: RegisterImport) -> None:
    """Restore the CIDRs that an import has divided, after all else that it has created is gone."""
    for former in _former_cidrs(register_import):
        for removed in serializers.deserialize("json", former.get("removed_pool", "[]")):
            database.save(removed.object)
        Container.objects.filter(pk=former.get("container") or 0).delete()
        pool = Pool.objects.filter(pk=former["pool"]).first()
        if pool is None:
            continue  # deleted since, as all that it had
        if edges_allowed := former.get("edges_allowed"):
            _allow_edges(pool, first=edges_allowed[0], last=edges_allowed[1])
        network = {ip_network(former["cidr"]): former["id"]}
        inside = list(pool.cidrs.filter(cidr__net_contained_or_equal=former["cidr"]))
        (part,) = _regroup(pool, inside, network, former["edges"], former["ranges"])
        for edge in former["edges"]:
            RegisterRecord.objects.filter(
                space=part.space_id, target=RESERVED, first=edge["first"], source_id=None
            ).delete()
        part.position = former["position"]
        for name in ATTRIBUTES:
            setattr(part, name, former[name])
        part.save(update_fields=["position", *ATTRIBUTES])
        if former.get("container"):
            own = {"first": part.cidr.network_address, "last": part.cidr.broadcast_address}
            RegisterRecord.objects.filter(space=part.space_id, target=CONTAINER, **own).delete()
        RegisterRecord.objects.bulk_create(
            RegisterRecord(space_id=part.space_id, **values) for values in former["records"]
        )


def pools_of_divided(register_import: RegisterImport) -> set[int]:
    """Return the ids of the pools of which an import has divided a CIDR."""
    return {former["pool"] for former in _former_cidrs(register_import)}


def _former_cidrs(register_import: RegisterImport) -> list[dict[str, Any]]:
    rows = register_import.rows.filter(written=True, before__has_key=KEY).order_by("number")
    former = [before[KEY] for before in rows.values_list("before", flat=True) if before]
    return list({(values["pool"], values["cidr"]): values for values in former}.values())
