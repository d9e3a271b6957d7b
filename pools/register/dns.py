"""The DNS names of held blocks, and their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from itertools import islice

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from pools.core import demand, dns_names, errors
from pools.core.block_fields import BlockAnswer
from pools.core.dns_names import Record
from pools.models import Block, DNSName, Pool
from pools.models.blocks import BlockState
from pools.platform import database, events, versions
from pools.sql import statements

_PAGE = 2000  # rows
_LINES = 500
_RECORDS = statements.read("pools/dns_records")
# The name is that of the present holder of its block.
_CURRENT = Exists(
    Block.objects.filter(
        pk=OuterRef("block_id"),
        state=BlockState.HELD,
        allocated_at=OuterRef("allocated_at"),
        holder_id=OuterRef("holder_id"),
        holder_kind=OuterRef("holder_kind"),
    )
)


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
        if name:
            copied = ("pool", "cidr", "holder_kind", "holder_id", "allocated_at")
            values = {column: getattr(block, column) for column in copied}
            rows.update_or_create(block_id=block_id, defaults=values | {"name": name})
        else:
            rows.delete()
    return block


def _current_names(block_ids: Iterable[int]) -> QuerySet[DNSName]:
    return DNSName.objects.filter(_CURRENT, pk__in=block_ids)


def name_of(block: Block) -> str:
    """Return the name that was set for the present holder of a block, "" for none."""
    row = _current_names([block.pk]).first()
    return row.name if row else ""


def remove_ended() -> int:
    """Delete the names of holders that have released their blocks; return their number."""
    deleted, _ = DNSName.objects.filter(~_CURRENT).delete()
    return deleted


def find_blocks(text: str, most: int) -> QuerySet[Block]:
    """Return the held blocks whose set name is, or begins with, a text, or whose derived name it is."""
    name = text.lower().removesuffix(".")
    rows = DNSName.objects.filter(
        _CURRENT, name__gte=name, name__lt=f"{name}\U0010fffd", name__startswith=name
    )
    ids = [*rows.order_by("name").values_list("pk", flat=True)[:most]]
    if dns_names.is_host_name(name):
        ids += _blocks_with_derived_name(name)[:most]
    return Block.objects.filter(pk__in=ids)


def _blocks_with_derived_name(name: str) -> list[int]:
    """Return the ids of the blocks whose name the pattern of their pool derives."""
    label, _, domain = name.partition(".")
    pools = [
        pool
        for pool in Pool.objects.exclude(dns_pattern="").select_related("cluster")
        if dns_names.domain_of(pool.dns_pattern, pool.cluster.name) == domain
    ]
    if not pools or dns_names.label_of(label) != label:
        return []
    # What label_of makes this label of.
    expression = f"^[^a-z0-9]*{label.replace('-', '[^a-z0-9]+')}[^a-z0-9]*$"
    held = Block.objects.filter(pool__in=pools, state=BlockState.HELD)
    with database.in_parallel():
        blocks = [*held.filter(holder_id__iregex=expression)]
    ids = {block.pk for block in blocks if block.cidr.prefixlen == block.cidr.max_prefixlen}
    return [*ids.difference(_current_names(ids).values_list("pk", flat=True))]


def records(*, cluster_id: int | None = None) -> Iterator[Record]:
    """Yield the distinct records of all held blocks with a name, in the order of names, in bounded memory.

    What a pattern makes of a holder and is no host name is left out. Two clusters may have the same record.
    """
    before = None
    with connection.chunked_cursor() as cursor:
        cursor.execute(_RECORDS, {"cluster": cluster_id})
        while page := cursor.fetchmany(_PAGE):
            for name, address in page:
                record = Record(name, ip_address(address))
                if record != before and dns_names.is_host_name(name):
                    yield record
                before = record


def serial() -> int:
    """Return the serial of a zone that is exported now: seconds since 1970, which fit until 2106."""
    return int(database.now().timestamp())


def chunks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the text of many lines at once: a chunk for each would be a packet."""
    lines = iter(lines)
    while chunk := "".join(islice(lines, _LINES)):
        yield chunk
