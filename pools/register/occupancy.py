"""What is in use in each equal share of a CIDR: the numbers behind a map, at a bounded cost.

Up to 100,000 blocks in use are counted, by one statement over the index of the address space.
Beyond that a share is counted up to 64 blocks, and a fuller one is estimated: from 16 blocks of it
looked up by address, or, where blocks lie too far apart for that, from the planner's statistics.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from django.db import connection

from pools.core import addresses, blocks
from pools.models import PoolCIDR
from pools.register.allocator import window

COUNTED = 100_000  # blocks in use
CAP = 64  # blocks counted in one share of a larger CIDR
PROBES = 16
PROBED = 1 << 16  # blocks; probes of a larger share would miss what is there


@dataclass(frozen=True)
class UsedBlocks:
    """Blocks in use in one share; `withheld` of them lie in a reserved range."""

    held: int = 0
    cooling: int = 0
    withheld: int = 0

    @property
    def total(self) -> int:
        return self.held + self.cooling

    def scaled(self, total: int) -> UsedBlocks:
        """The same mixture, of so many blocks."""
        factor = total / (self.total or 1)
        held = round(self.held * factor)
        return UsedBlocks(held, max(0, total - held), round(self.withheld * factor))


@dataclass(frozen=True)
class Occupancy:
    """`shares` by number from 0, without the empty ones; not `exact` when some are estimated."""

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
        """The share that an address or a block lies in."""
        address = ip_address(text.partition("/")[0])
        offset = int(address) - int(self.view.network_address)
        return offset >> (self.view.max_prefixlen - self.prefix)

    def bounds(self, share: int = 0, until: int = -1) -> tuple[str, str]:
        """First and last block of some shares, by default of all."""
        last = self.first + (until if until >= 0 else self.number) * self.size - 1
        first = self.grid.block_at(self.first + share * self.size)
        return str(first), str(self.grid.block_at(last))


def in_shares(cidr: PoolCIDR, view: addresses.Network, prefix: int) -> Occupancy:
    """Blocks in use in each share of length `prefix` of a view that lies in the CIDR.

    Blocks whose cooldown has passed are not in use.
    """
    shares = _Shares(cidr, window.layout(cidr), view, prefix)
    if not _many(shares):
        return Occupancy(_counted(shares))
    return Occupancy(_estimated(shares), exact=False)


_LIVE = "(state = 'held' OR state = 'cooling' AND available_from > ipam_now())"
_IN_USE = f"space_id = %s AND cidr BETWEEN %s AND %s AND {_LIVE}"


def _rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _many(shares: _Shares) -> bool:
    sql = f"SELECT count(*) FROM (SELECT FROM pools_block WHERE {_IN_USE} LIMIT %s) AS rows"  # noqa: S608
    rows = _rows(sql, shares.cidr.space_id, *shares.bounds(), COUNTED + 1)
    return int(rows[0][0]) > COUNTED


_BY_SHARE = f"""
    SELECT set_masklen(cidr, %s)::text, count(*) FILTER (WHERE state = 'held'),
      count(*) FILTER (WHERE state = 'cooling'), count(*) FILTER (WHERE withheld)
    FROM pools_block WHERE {_IN_USE} GROUP BY set_masklen(cidr, %s)
"""  # noqa: S608


def _counted(shares: _Shares) -> dict[int, UsedBlocks]:
    parameters = (shares.prefix, shares.cidr.space_id, *shares.bounds(), shares.prefix)
    return {
        shares.number_of(text): UsedBlocks(*counts)
        for text, *counts in _rows(_BY_SHARE, *parameters)
    }


# --- many -----------------------------------------------------------------------------------------

_UP_TO_CAP = f"""
    SELECT share.number, counts.* FROM unnest(%s::int[], %s::cidr[], %s::cidr[])
      AS share (number, low, high), LATERAL (
      SELECT count(*) FILTER (WHERE state = 'held'), count(*) FILTER (WHERE state = 'cooling'),
        count(*) FILTER (WHERE withheld)
      FROM (SELECT state, withheld FROM pools_block
            WHERE space_id = %s AND cidr BETWEEN share.low AND share.high AND {_LIVE}
            LIMIT %s) AS few) AS counts
"""  # noqa: S608
_PROBED = f"""
    SELECT cidr::text, state, withheld FROM pools_block
    WHERE space_id = %s AND cidr = ANY(%s::cidr[]) AND {_LIVE}
"""  # noqa: S608


def _estimated(shares: _Shares) -> dict[int, UsedBlocks]:
    used_by_share = _up_to_cap(shares)
    full = [number for number, used in used_by_share.items() if used.total >= CAP]
    if shares.size <= CAP:
        return used_by_share
    if shares.size <= PROBED:
        return {
            **used_by_share,
            **_probed(shares, {number: used_by_share[number] for number in full}),
        }
    remaining = _planned(shares) - sum(used.total for used in used_by_share.values())
    more = max(0, remaining // (len(full) or 1))
    return {
        **used_by_share,
        **{number: used_by_share[number].scaled(CAP + more) for number in full},
    }


def _up_to_cap(shares: _Shares) -> dict[int, UsedBlocks]:
    numbers = list(range(shares.number))
    lows, highs = zip(*(shares.bounds(number, number + 1) for number in numbers), strict=True)
    rows = _rows(_UP_TO_CAP, numbers, list(lows), list(highs), shares.cidr.space_id, CAP)
    used_by_share = {number: UsedBlocks(*counts) for number, *counts in rows}
    return {number: used for number, used in used_by_share.items() if used.total}


def _probed(shares: _Shares, full: Mapping[int, UsedBlocks]) -> dict[int, UsedBlocks]:
    chance = random.Random(0)  # noqa: S311  # the same picture each time
    step = shares.size / PROBES
    texts = []
    for number in full:
        base = shares.first + number * shares.size
        for probe in range(PROBES):
            index = base + int((probe + chance.random()) * step)
            texts += shares.grid.cidr_strings(blocks.Span(index, index))
    hits: dict[int, list[tuple[str, bool]]] = {number: [] for number in full}
    for text, state, withheld in _rows(_PROBED, shares.cidr.space_id, texts):
        hits[shares.number_of(text)].append((state, withheld))
    return {
        number: _from_probes(hits[number], least=full[number], size=shares.size) for number in full
    }


def _from_probes(hits: list[tuple[str, bool]], *, least: UsedBlocks, size: int) -> UsedBlocks:
    held = sum(state == "held" for state, _ in hits)
    sampled = UsedBlocks(held, len(hits) - held, sum(bool(withheld) for _, withheld in hits))
    if sampled.total <= CAP * PROBES / size:
        return least
    return sampled.scaled(round(size * sampled.total / PROBES))


def _planned(shares: _Shares) -> int:
    """The planner's estimate of the blocks in use in the view."""
    sql = f"EXPLAIN (FORMAT JSON) SELECT FROM pools_block WHERE {_IN_USE}"
    raw_plan = _rows(sql, shares.cidr.space_id, *shares.bounds())[0][0]
    plan = json.loads(raw_plan) if isinstance(raw_plan, str) else raw_plan
    return int(plan[0]["Plan"]["Plan Rows"])
