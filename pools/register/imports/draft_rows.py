"""The rows of a draft that its commit writes."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import NamedTuple

from pools.core.addresses import AddressRange
from pools.models import PoolCIDR, RegisterImport
from pools.platform import database


class DraftRow(NamedTuple):
    """A row that is written; addresses are texts, because a hundred thousand are never parsed twice."""

    number: int
    status: str
    target: str
    cidr: str | None
    first: str
    last: str
    cluster_id: int
    space_name: str
    pool_row: int | None
    pool_cidr_id: int | None
    pool_name: str
    holder_id: str
    org: str
    description: str
    source_status: str
    is_pool: bool  # all addresses of the prefix can be used, in the words of NetBox
    object_id: int | None
    details: dict[str, str]  # of containers and pools, as `before`, what the source said until now
    before: dict[str, str]

    @property
    def span(self) -> AddressRange:
        return AddressRange(ip_address(self.first), ip_address(self.last))

    def index_in(self, cidr: PoolCIDR) -> int:
        """Return the index of the address in a CIDR of single addresses."""
        return int(ip_address(self.first)) - int(cidr.cidr.network_address)


def read_rows(register_import: RegisterImport) -> list[DraftRow]:
    """Return the new and the changed rows that are not written yet, by number."""
    return [
        DraftRow._make([*values, json.loads(details), json.loads(before or "null") or {}])
        for *values, details, before in database.rows(_ROWS, [register_import.pk])
    ]


_ROWS = """
    SELECT number, status, target, cidr::text, host(first), host(last), cluster_id, space_name,
        pool_row, pool_cidr_id, pool_name, holder_id, org, description,
        COALESCE(details ->> 'status', ''), details ? 'is_pool', object_id,
        CASE WHEN target IN ('container', 'pool') THEN details::text ELSE '{}' END,
        CASE WHEN target IN ('container', 'pool') THEN (before -> 'details')::text END
    FROM pools_registerrow WHERE register_import_id = %s AND status IN ('new', 'changed')
        AND NOT written
    ORDER BY number
"""
