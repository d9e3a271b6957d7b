"""Tables of VM networks among the results of Find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from claims.admin import tables
from claims.models import Entry, IPAMClaim, IPPool, Network, Workload
from pools.admin import find


def _table(table: Callable[..., find.AdminTable]) -> find.Table:
    def sections(rows: list[Any], more: str) -> Iterable[find.Section]:
        yield find.tables(table(rows, more=more))

    return sections


TABLES: dict[type, find.Table] = {
    Entry: _table(tables.entries),
    IPAMClaim: _table(tables.claims),
    Workload: _table(tables.workloads),
    Network: _table(tables.networks),
    IPPool: _table(tables.ippools),
}
