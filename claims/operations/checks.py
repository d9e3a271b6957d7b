"""Checks of VM networks (pools/platform/checks.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from claims.address_index import conflicts, index
from claims.models import Entry, IPAMClaim, Network, Workload
from pools.models import ReservedRangeEvent
from pools.models.fields import Now
from pools.platform import checks

_OWNERS = 2_000  # compared at once
_TABLES: tuple[tuple[str, str, Any], ...] = (
    ("entry", "entries", Entry),
    ("claim", "claims", IPAMClaim),
    ("workload", "workloads", Workload),
)


def index_entries() -> Iterator[str]:
    """Yield differences between the address index and the entries, claims and workloads."""
    for name, argument, model in _TABLES:
        rows = model.objects.order_by("pk").iterator(chunk_size=_OWNERS)
        while owners := list(islice(rows, _OWNERS)):
            change = index.compare(**{argument: owners})
            names = {owner.pk: str(owner) for owner in owners}
            for column, owner, row in change.new:
                entry_text = " ".join(filter(None, (row.mac, row.address, row.vm)))
                yield f"The {column} {names[owner]} is not indexed under {entry_text}"
            for index_entry_id in change.gone:
                yield f"The {name} of index entry {index_entry_id} does not name its value"


def duplicates() -> Iterator[str]:
    """Yield MACs and addresses that are marked as duplicates without being some, and the reverse.

    Addresses of a pool whose reserved ranges changed recently are left out: a task checks them every five minutes.
    """
    recent = ReservedRangeEvent.objects.filter(pgh_created_at__gt=Now() - timedelta(minutes=10))
    pending = set(recent.values_list("pool_id", flat=True))
    for network in Network.objects.select_related("pool", "cluster").order_by("pk").iterator(500):
        is_pending = network.pool_id in pending
        for mac, address, duplicate_mac, duplicate_ip in conflicts.wrong_flags(network):
            if is_pending and address:
                continue
            kinds = [
                kind for kind, wrong in (("MAC", duplicate_mac), ("address", duplicate_ip)) if wrong
            ]
            status = f"a duplicate {' and '.join(kinds)}" if kinds else "no duplicate"
            yield f"Network {network}: {mac or '?'} {address or '?'} is {status}, but is not marked so"
        if not is_pending and conflicts.has_wrong_counts(network):
            yield f"Network {network}: the duplicate counts of its IPPool are wrong"


CHECKS: dict[str, checks.Check] = {
    **checks.of_files("claims.sql"),
    "duplicates": duplicates,
    "index_entries": index_entries,
}
