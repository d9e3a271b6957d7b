"""Count the blocks in use in each equal share of a CIDR, for its map, at a bounded cost.

Up to 100,000 blocks in use are counted by one statement over the index of the address space. Beyond
that, each share is counted up to 64 blocks, and a fuller share is estimated: from 16 of its blocks that
are looked up by address, or, in shares too large for that, from the planner's statistics.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from django.db import connection

from pools.core import addresses, blocks
from pools.models import PoolCIDR
from pools.register.allocator import window

MOST_COUNTED = 100_000  # blocks in use
CAP = 64  # blocks counted in one share of a larger CIDR
PROBES = 16
LARGEST_PROBED = 1 << 16  # blocks; 16 probes of a larger share would miss its blocks in use


@dataclass(frozen=True)
class UsedBlocks:
    """Blocks in use in one share; `withheld` of them are in a reserved range.

    `holder` is the kind and the id of the holder if the share is one block and holders were asked for.
    """

    held: int = 0
    cooling: int = 0
    withheld: int = 0
    holder: str = ""

    @property
    def total(self) -> int:
        return self.held + self.cooling

    def scaled(self, total: int) -> UsedBlocks:
        """Return counts in the same proportions that sum to `total`."""
        factor = total / (self.total or 1)
        held = round(self.held * factor)
        return UsedBlocks(held, max(0, total - held), round(self.withheld * factor))


@dataclass(frozen=True)
class Occupancy:
    """Used blocks by the number of the share (from 0), without empty shares.

    `exact` is False if some shares are estimated.
    """

    shares: Mapping[int, UsedBlocks]
    exact: bool = True


@dataclass(frozen=True)
class _Shares:
    """A view of a CIDR, divided into shares of the prefix length `prefix`."""

    cidr: PoolCIDR
    grid: blocks.Layout
    view: addresses.Network
    prefix: int

    @property
    def size(self) -> int:
        """Blocks in one share."""
        return 1 << (self.grid.mask_size - self.prefix)

    @property
    def first(self) -> int:
        return self.grid.index_of_address(self.view.network_address)

    @property
    def number(self) -> int:
        return 1 << (self.prefix - self.view.prefixlen)

    def number_of(self, text: str) -> int:
        """Return the number of the share that contains an address or a block."""
        address = ip_address(text.partition("/")[0])
        offset = int(address) - int(self.view.network_address)
        return offset >> (self.view.max_prefixlen - self.prefix)

    def bounds(self, share: int = 0, until: int = -1) -> tuple[str, str]:
        """Return the first and last block of the shares `share` to `until`, by default of all."""
        last = self.first + (until if until >= 0 else self.number) * self.size - 1
        first = self.grid.block_at(self.first + share * self.size)
        return str(first), str(self.grid.block_at(last))


def count_by_share(
    cidr: PoolCIDR, view: addresses.Network, prefix: int, *, with_holders: bool = False
) -> Occupancy:
    """Return the blocks in use in each share of prefix length `prefix` of a view inside the CIDR.

    Blocks whose cooldown has ended are not in use. `with_holders` names the holders of shares of one block.
    """
    shares = _Shares(cidr, window.layout(cidr), view, prefix)
    if not _exceeds_count_limit(shares):
        return Occupancy(_count_exactly(shares, with_holders and shares.size == 1))
    return Occupancy(_estimate(shares), exact=False)


_LIVE = "(state = 'held' OR state = 'cooling' AND available_from > ipam_now())"
_IN_USE = f"space_id = %s AND cidr BETWEEN %s AND %s AND {_LIVE}"


def _rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _exceeds_count_limit(shares: _Shares) -> bool:
    sql = f"SELECT count(*) FROM (SELECT FROM pools_block WHERE {_IN_USE} LIMIT %s) AS rows"  # noqa: S608
    rows = _rows(sql, shares.cidr.space_id, *shares.bounds(), MOST_COUNTED + 1)
    return int(rows[0][0]) > MOST_COUNTED


_COUNT_BY_SHARE = f"""
    SELECT set_masklen(cidr, %s)::text, count(*) FILTER (WHERE state = 'held'),
      count(*) FILTER (WHERE state = 'cooling'), count(*) FILTER (WHERE withheld),
      COALESCE(min(CASE WHEN %s THEN holder_kind || ' ' || holder_id END), '')
    FROM pools_block WHERE {_IN_USE} GROUP BY set_masklen(cidr, %s)
"""  # noqa: S608


def _count_exactly(shares: _Shares, with_holders: bool) -> dict[int, UsedBlocks]:
    parameters = (
        shares.prefix,
        with_holders,
        shares.cidr.space_id,
        *shares.bounds(),
        shares.prefix,
    )
    return {
        shares.number_of(text): UsedBlocks(*columns)
        for text, *columns in _rows(_COUNT_BY_SHARE, *parameters)
    }


def used_part(cidr: PoolCIDR, view: addresses.Network) -> addresses.Network | None:
    """Return the smallest CIDR with all used blocks of a view; None if it has none."""
    shares = _Shares(cidr, window.layout(cidr), view, view.prefixlen)
    # By the column: `cidr` alone would be the text of the answer, of which 10.0.7.9 is greater than 10.0.255.1.
    sql = f"""
        (SELECT cidr::text FROM pools_block WHERE {_IN_USE} ORDER BY pools_block.cidr LIMIT 1)
        UNION ALL (SELECT cidr::text FROM pools_block WHERE {_IN_USE} ORDER BY pools_block.cidr DESC LIMIT 1)
    """  # noqa: S608
    rows = _rows(sql, *2 * (shares.cidr.space_id, *shares.bounds()))
    if not rows:
        return None
    first, last = (ip_network(text) for (text,) in rows)
    differing = int(first.network_address) ^ int(last.broadcast_address)
    return first.supernet(new_prefix=view.max_prefixlen - differing.bit_length())


# --- estimates ------------------------------------------------------------------------------------

_COUNT_UP_TO_CAP = f"""
    SELECT share.number, counts.* FROM unnest(%s::int[], %s::cidr[], %s::cidr[])
      AS share (number, low, high), LATERAL (
      SELECT count(*) FILTER (WHERE state = 'held'), count(*) FILTER (WHERE state = 'cooling'),
        count(*) FILTER (WHERE withheld)
      FROM (SELECT state, withheld FROM pools_block
            WHERE space_id = %s AND cidr BETWEEN share.low AND share.high AND {_LIVE}
            LIMIT %s) AS few) AS counts
"""  # noqa: S608
_PROBE = f"""
    SELECT cidr::text, state, withheld FROM pools_block
    WHERE space_id = %s AND cidr = ANY(%s::cidr[]) AND {_LIVE}
"""  # noqa: S608


def _estimate(shares: _Shares) -> dict[int, UsedBlocks]:
    used_by_share = _count_up_to_cap(shares)
    full = [number for number, used in used_by_share.items() if used.total >= CAP]
    if shares.size <= CAP:
        return used_by_share
    if shares.size <= LARGEST_PROBED:
        return {
            **used_by_share,
            **_probe(shares, {number: used_by_share[number] for number in full}),
        }
    remaining = _planner_estimate(shares) - sum(used.total for used in used_by_share.values())
    extra = max(0, remaining // (len(full) or 1))
    return {
        **used_by_share,
        **{number: used_by_share[number].scaled(CAP + extra) for number in full},
    }


def _count_up_to_cap(shares: _Shares) -> dict[int, UsedBlocks]:
    numbers = list(range(shares.number))
    lows, highs = zip(*(shares.bounds(number, number + 1) for number in numbers), strict=True)
    rows = _rows(_COUNT_UP_TO_CAP, numbers, list(lows), list(highs), shares.cidr.space_id, CAP)
    used_by_share = {number: UsedBlocks(*counts) for number, *counts in rows}
    return {number: used for number, used in used_by_share.items() if used.total}


def _probe(shares: _Shares, full: Mapping[int, UsedBlocks]) -> dict[int, UsedBlocks]:
    generator = random.Random(0)  # noqa: S311  # a fixed seed: the same map each time
    step = shares.size / PROBES
    cidrs = []
    for number in full:
        base = shares.first + number * shares.size
        for probe in range(PROBES):
            index = base + int((probe + generator.random()) * step)
            cidrs += shares.grid.cidr_strings(blocks.Span(index, index))
    hits: dict[int, list[tuple[str, bool]]] = {number: [] for number in full}
    for text, state, withheld in _rows(_PROBE, shares.cidr.space_id, cidrs):
        hits[shares.number_of(text)].append((state, withheld))
    return {
        number: _extrapolate(hits[number], least=full[number], size=shares.size) for number in full
    }


def _extrapolate(hits: list[tuple[str, bool]], *, least: UsedBlocks, size: int) -> UsedBlocks:
    held = sum(state == "held" for state, _ in hits)
    sampled = UsedBlocks(held, len(hits) - held, sum(bool(withheld) for _, withheld in hits))
    if sampled.total <= CAP * PROBES / size:
        return least
    return sampled.scaled(round(size * sampled.total / PROBES))


def _planner_estimate(shares: _Shares) -> int:
    """Return the planner's estimate of the blocks in use in the view."""
    sql = f"EXPLAIN (FORMAT JSON) SELECT FROM pools_block WHERE {_IN_USE}"
    raw_plan = _rows(sql, shares.cidr.space_id, *shares.bounds())[0][0]
    plan = json.loads(raw_plan) if isinstance(raw_plan, str) else raw_plan
    return int(plan[0]["Plan"]["Plan Rows"])
