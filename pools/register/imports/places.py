"""Places of an import and of the register in an address space: prefixes and CIDRs as spans, in a tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pools.core.register_import.parsing import POOL
from pools.models import PoolCIDR, RegisterRow

Space = tuple[int, str, int]  # cluster id, name of the address space, IP family


@dataclass
class Place:
    """A prefix of an import, or a CIDR of the register, as a span of addresses.

    `was_pool` is True for a prefix that would be a pool without the prefixes inside it. A prefix that is `left_out` of the
    import is no pool, and what is around it is one neither.
    """

    first: int
    last: int
    row: RegisterRow | None = None
    cidr: PoolCIDR | None = None
    parent: Place | None = None
    left_out: bool = False
    has_children: bool = False
    was_pool: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.first, self.last

    @property
    def name(self) -> str:
        return str(self.row.cidr if self.row else self.cidr)

    @property
    def pool_name(self) -> str:
        """The name of the pool that has the place, or will have it."""
        return self.cidr.pool.name if self.cidr else self.row.pool_name if self.row else ""

    @property
    def is_pool(self) -> bool:
        is_new = self.row is not None and self.row.target == POOL and not self.left_out
        return self.cidr is not None or is_new


@dataclass
class Level:
    """The places of one address space and family in the order of a tree, and the prefixes inside CIDRs of the register."""

    places: Sequence[Place] = ()
    inside: Sequence[RegisterRow] = ()

    def __post_init__(self) -> None:
        self.firsts = [place.first for place in self.places]

    def innermost(self, number: int) -> Place | None:
        """Return the smallest place that has an address."""
        index = bisect_right(self.firsts, number) - 1
        place = self.places[index] if index >= 0 else None
        while place is not None and place.last < number:
            place = place.parent
        return place

    def pools_between(self, first: int, last: int) -> list[Place]:
        """Return the places of pools that have any of these addresses."""
        around = self.innermost(first)
        inside = self.places[bisect_right(self.firsts, first) : bisect_right(self.firsts, last)]
        return [place for place in (around, *inside) if place is not None and place.is_pool]


def edges(place: Place, version: int) -> tuple[int, ...]:
    """Return the addresses of a network that no host can have; RFC 3021, RFC 6164: of two addresses both can be used."""
    if place.last - place.first < 2:
        return ()
    return (place.first, place.last) if version == 4 else (place.first,)


def edge_name(place: Place, number: int, version: int) -> str:
    if number == place.last:
        return "broadcast address"
    return "network address" if version == 4 else "subnet-router anycast address"


def judge(row: RegisterRow, verdict: str, code: str, message: str, **more: object) -> None:
    if not row.verdict:
        row.verdict = verdict
        row.problems = [*row.problems, {"code": code, "message": message, **more}]
