"""The DNS names of held blocks, and their records."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from pools.core import block_fields, dns_names, errors, holders
from pools.core.block_fields import BlockAnswer
from pools.core.dns_names import Record
from pools.models import Block, BlockState, DNSName, Pool
from pools.platform import database, events
from pools.sql import statements

_PAGE = 2000  # rows
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
    if pool.mask_size_v4 not in {None, 32} or pool.mask_size_v6 not in {None, 128}:
        message = f"only blocks of one address have a DNS name, and those of {pool} have more"
        raise errors.InvalidInput.for_field("dns_name", "no_single_address", message)


def check_demand(
    pool: Pool | None, block_demand: holders.BlockDemand, name: str, *, wait: bool
) -> None:
    """Raise InvalidInput if the blocks of a demand cannot have this DNS name; a missing pool is not refused here."""
    if not name or pool is None:
        return
    if wait or len(block_demand.holders) > 1 or block_demand.count > 1:
        message = "a DNS name is for one holder, a count of 1 and a request that does not wait"
        raise errors.InvalidInput.for_field("dns_name", "conflicting_fields", message)
    require_addresses(pool)


def name_blocks(blocks: Sequence[BlockAnswer], name: str, *, author: events.Author) -> None:
    """Set the name of blocks that were allocated; "" names none. Repeated, it changes nothing.

    The answer that is stored under an Idempotency-Key may name blocks that its holder has released since: these are
    left out.
    """
    for block in blocks if name else ():
        with suppress(errors.NotFound, errors.HolderChanged):
            set_name(block["id"], name, author=author, version=partial(_require_holding, block))


def _require_holding(answer: BlockAnswer, block: Block) -> None:
    """Raise HolderChanged if the locked block was allocated anew since the answer."""
    present = (block.holder_kind, block.holder_id, block_fields.format_time(block.allocated_at))
    if present != (answer["holder"]["kind"], answer["holder"]["id"], answer["allocated_at"]):
        raise errors.HolderChanged


def set_name(
    block_id: int,
    name: str,
    *,
    author: events.Author,
    holder: holders.Holder | None = None,
    version: database.Version = None,
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
        database.require_version(block, version)
        rows = DNSName.objects.filter(block_id=block_id)
        if name:
            copied = ("pool", "cidr", "holder_kind", "holder_id", "allocated_at")
            values = {column: getattr(block, column) for column in copied}
            rows.update_or_create(block_id=block_id, defaults=values | {"name": name})
        else:
            rows.delete()
    return block


def name_of(block: Block) -> str:
    """Return the name that was set for the present holder of a block, "" for none."""
    row = DNSName.objects.filter(_CURRENT, pk=block.pk).first()
    return row.name if row else ""


def remove_ended() -> int:
    """Delete the names of holders that have released their blocks; return their number."""
    deleted, _ = DNSName.objects.filter(~_CURRENT).delete()
    return deleted


def find_blocks(text: str, most: int) -> QuerySet[Block]:
    """Return the held blocks whose set name is, or begins with, a text, or whose derived name it is."""
    name = text.lower().removesuffix(".")
    rows = DNSName.objects.filter(_CURRENT, name__startswith=name).order_by("name")
    ids = [*rows.values_list("pk", flat=True)[:most]]
    if dns_names.is_host_name(name):
        ids += [block_id for _, _, blocks in _rows(None, name) for block_id in blocks][:most]
    return Block.objects.filter(pk__in=ids)


def records(cluster_id: int | None = None) -> Iterator[Record]:
    """Yield the distinct records of all held blocks with a name, in the order of names, in bounded memory.

    What a pattern makes of a holder and is no host name is left out.
    """
    for name, address, _ in _rows(cluster_id, None):
        if dns_names.is_host_name(name):
            yield Record(name, ip_address(address))


def _rows(cluster_id: int | None, name: str | None) -> Iterator[tuple[str, str, list[int]]]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(_RECORDS, {"cluster": cluster_id, "name": name})
        while page := cursor.fetchmany(_PAGE):
            yield from page
