"""The DNS names of held blocks, and their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

from django.db import connection
from django.db.models import Q, QuerySet

from pools.core import demand, dns_names, errors
from pools.core.block_fields import BlockAnswer
from pools.core.dns_names import Record
from pools.models import Block, DNSName, Pool
from pools.models.blocks import BlockState
from pools.platform import database, events, versions
from pools.sql import statements

_PAGE = 2000
# The name `n` is that of the present holder of the block `b`.
_CURRENT = """b.id = n.block_id AND b.state = 'held' AND b.allocated_at = n.allocated_at
    AND b.holder_id = n.holder_id AND b.holder_kind = n.holder_kind"""


def require_addresses(pool: Pool) -> None:
    """Raise InvalidInput `no_single_address` if blocks of the pool have more than one address."""
    sizes = {(4, pool.mask_size_v4), (6, pool.mask_size_v6)} - {(4, None), (6, None)}
    if not sizes <= {(4, 32), (6, 128)}:
        message = f"only blocks of one address have a DNS name, and those of {pool} have more"
        raise errors.InvalidInput.for_field("dns_name", "no_single_address", message)


def check_demand(
    pool: Pool | None, block_demand: demand.BlockDemand, name: str, *, wait: bool
) -> None:
    """Raise InvalidInput if the blocks of a demand cannot have this DNS name; a missing pool is not refused here."""
    if not name or pool is None:
        return
    if wait or len(block_demand.holders) > 1 or block_demand.count > 1:
        message = "a DNS name is for one holder, a count of 1 and a request that does not wait"
        raise errors.InvalidInput.for_field("dns_name", "conflicting_fields", message)
    require_addresses(pool)


def name_blocks(blocks: Sequence[BlockAnswer], name: str, *, author: events.Author) -> None:
    """Set the name of blocks that were allocated; "" names none. Repeated, it changes nothing."""
    for block in blocks if name else ():
        set_name(block["id"], name, author=author)


def set_name(
    block_id: int,
    name: str,
    *,
    author: events.Author,
    holder: demand.Holder | None = None,
    version: versions.Version = None,
) -> Block:
    """Set the DNS name of a held block, "" for none; with `holder` only if it still has the block.

    Raises NotFound, HolderChanged, VersionMismatch, InvalidInput `no_single_address`.
    """
    with events.recorded_by(author):
        locked = Block.objects.select_related("pool__cluster").select_for_update(of=("self",))
        block = locked.filter(pk=block_id).first()
        if block is None or block.state != BlockState.HELD or block.allocated_at is None:
            raise errors.NotFound("There is no such held block.")
        if holder is not None and (block.holder_kind, block.holder_id) != (holder.kind, holder.id):
            raise errors.HolderChanged
        if block.cidr.prefixlen != block.cidr.max_prefixlen:
            require_addresses(block.pool)
        versions.require(block, version)
        rows = DNSName.objects.filter(block_id=block_id)
        if not name:
            rows.delete()
        else:
            values = {
                "pool": block.pool,
                "holder_kind": block.holder_kind,
                "holder_id": block.holder_id,
                "allocated_at": block.allocated_at,
                "name": name,
            }
            if not rows.filter(**values).exists():
                cidr = {"cidr": block.cidr}
                DNSName.objects.update_or_create(block_id=block_id, defaults=values | cidr)
    return block


def names_of(block_ids: Iterable[int]) -> dict[int, str]:
    """Return the names that were set for blocks, by their ids; names of earlier holders are left out."""
    rows = database.rows(
        f"SELECT n.block_id, n.name FROM pools_dnsname n JOIN pools_block b ON {_CURRENT}"  # noqa: S608
        " WHERE n.block_id = ANY (%s)",
        [list(block_ids)],
    )
    return dict(rows)


def remove_ended() -> int:
    """Delete the names of holders that have released their blocks; return their number."""
    rows = database.rows(
        f"DELETE FROM pools_dnsname n WHERE NOT EXISTS (SELECT FROM pools_block b WHERE {_CURRENT})"  # noqa: S608
        " RETURNING n.block_id",
        [],
    )
    return len(rows)


def name_of(block: Block) -> str:
    return names_of([block.pk]).get(block.pk, "")


def find_blocks(text: str, most: int) -> QuerySet[Block]:
    """Return the held blocks whose set name is, or begins with, a text, or whose derived name it is."""
    name = text.lower().removesuffix(".")
    rows = DNSName.objects.filter(
        name__gte=name, name__lt=f"{name}\U0010fffd", name__startswith=name
    )
    ids = [*names_of(rows.order_by("name").values_list("block_id", flat=True)[:most])]
    if dns_names.is_host_name(name):
        ids += _blocks_with_derived_name(name)[:most]
    return Block.objects.filter(pk__in=ids)


def _blocks_with_derived_name(name: str) -> list[int]:
    """Return the ids of the blocks whose name the pattern of their pool derives."""
    pools_of_holders, labels, addresses = set(), set(), Q(pk__in=[])
    for pool in Pool.objects.exclude(dns_pattern="").select_related("cluster"):
        pattern = pool.dns_pattern.replace("{pool}", dns_names.label_of(pool.name))
        pattern = pattern.replace("{cluster}", dns_names.label_of(pool.cluster.name))
        for values in dns_names.read_pattern(pattern, name):
            if "address" not in values:
                pools_of_holders.add(pool.pk)
                labels.add(values["holder"])
            elif address := dns_names.address_of(values["address"]):
                addresses |= Q(space=pool.space_id, cidr=str(address))
    ids = list(Block.objects.filter(addresses, state=BlockState.HELD).values_list("pk", flat=True))
    labels.discard("")
    if labels:
        likes = [f"%{label.replace('-', '%')}%" for label in labels]
        with database.in_parallel():
            parameters = {"pools": [*pools_of_holders], "labels": [*labels], "likes": likes}
            ids += [row["id"] for row in database.fetch(_BLOCKS_OF_LABELS, parameters)]
    with connection.cursor() as cursor:
        cursor.execute(_RECORDS, {"cluster": None, "pool": None, "blocks": ids})
        return [block_id for derived, _, block_id in cursor.fetchall() if derived == name]


def records(*, cluster_id: int | None = None, pool_id: int | None = None) -> Iterator[Record]:
    """Yield the distinct records of all held blocks with a name, in the order of names, in bounded memory.

    What a pattern makes of a holder and is no host name is left out. Two clusters may have the same record.
    """
    before = None
    with connection.chunked_cursor() as cursor:
        cursor.execute(_RECORDS, {"cluster": cluster_id, "pool": pool_id, "blocks": None})
        while page := cursor.fetchmany(_PAGE):
            for name, address, _block_id in page:
                record = Record(name, ip_address(address))
                if record != before and dns_names.is_host_name(name):
                    yield record
                before = record


_RECORDS = statements.read("pools/dns_records")
_BLOCKS_OF_LABELS = statements.read("pools/blocks_of_dns_labels")


def serial() -> int:
    """Return the serial of a zone that is exported now: seconds since 1970, which fit until 2106."""
    return int(database.now().timestamp())
