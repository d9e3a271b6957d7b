"""Integrity checks of VM networks (pools/platform/checks)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from claims.address_index import conflicts, index
from claims.models import Entry, IPAMClaim, Network, Workload
from pools.models import ReservedRangeEvent
from pools.models.fields import Now
from pools.platform import events
from pools.platform.checks import checks, repairs
from pools.sql import statements

_OWNERS = 2_000  # per step
_TABLES: tuple[tuple[str, Any], ...] = (
    ("entry", Entry),
    ("claim", IPAMClaim),
    ("workload", Workload),
)
Span = tuple[str, int, int]  # table, exclusive lower id, inclusive upper id


def _owner_steps(after: list[Any] | None) -> Iterator[tuple[list[Any], Span]]:
    first_table, lower_id = after or [_TABLES[0][0], 0]
    names = [name for name, _ in _TABLES]
    for name, model in _TABLES[names.index(first_table) :]:
        while ids := list(
            model.objects.filter(pk__gt=lower_id)
            .order_by("pk")
            .values_list("pk", flat=True)[:_OWNERS]
        ):
            yield [name, ids[-1]], (name, lower_id, ids[-1])
            lower_id = ids[-1]
        lower_id = 0


def _compare_index(span: Span, *, lock: bool = False) -> tuple[index.IndexChange, Sequence[Any]]:
    name, lower_id, upper_id = span
    model = dict(_TABLES)[name]
    rows = model.objects.filter(pk__gt=lower_id, pk__lte=upper_id).order_by("pk")
    owners = list(rows.select_for_update() if lock else rows)
    if name == "entry":
        return index.compare(entries=owners), owners
    return (
        index.compare(claims=owners) if name == "claim" else index.compare(workloads=owners),
        owners,
    )


def _find_index_differences(span: Span) -> Iterator[checks.Violation]:
    change, owners = _compare_index(span)
    names = {owner.pk: str(owner) for owner in owners}
    for column, owner, row in change.new:
        entry_text = " ".join(filter(None, (row.mac, row.address, row.vm)))
        yield checks.Violation(f"The {column} {names[owner]} is not indexed under {entry_text}")
    for index_entry_id in change.gone:
        message = f"The {span[0]} of index entry {index_entry_id} does not name its value"
        yield checks.Violation(message)


def _mend_index(span: Span, _author: events.Author) -> int:
    """Write the index entries again; holders of blocks do not change."""
    change, owners = _compare_index(span, lock=True)
    index.index(change)
    networks = Network.objects.filter(pk__in=change.changed_keys.networks)
    repairs.record_cluster_repairs(networks.values_list("cluster_id", flat=True))
    return len(change.new) + len(change.gone) if owners else 0


INDEX_ENTRIES = checks.Check(
    code="index_entries",
    invariants="mac-has-one-owner, duplicates-are-reported",
    proves="The address index has exactly the MACs and addresses of the entries, claims and workloads.",
    steps=_owner_steps,
    find=_find_index_differences,
    mend=_mend_index,
)


def _network_steps(after: int | None) -> Iterator[tuple[int, int]]:
    ids = Network.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def _get_network(network_id: int) -> Network | None:
    networks = Network.objects.select_related("pool", "cluster")
    return networks.filter(pk=network_id).first()


def _find_wrong_duplicates(network_id: int) -> Iterator[checks.Violation]:
    network = _get_network(network_id)
    if network is None:
        return
    is_pending = _ranges_changed_recently(network)
    for mac, address, duplicate_mac, duplicate_ip in conflicts.wrong_flags(network):
        if is_pending and address:
            continue
        kinds = [
            kind
            for kind, is_duplicate in (("MAC", duplicate_mac), ("address", duplicate_ip))
            if is_duplicate
        ]
        correct_status = f"a duplicate {' and '.join(kinds)}" if kinds else "no duplicate"
        message = f"Network {network}: {mac or '?'} {address or '?'} is {correct_status}, but is not marked so"
        yield checks.Violation(message, network.pool_id)
    if not is_pending and conflicts.has_wrong_counts(network):
        message = f"Network {network}: the duplicate counts of its IPPool are wrong"
        yield checks.Violation(message, network.pool_id)


def _ranges_changed_recently(network: Network) -> bool:
    """Return True if a reserved range changed recently: its addresses are checked every five minutes."""
    recent = Now() - timedelta(minutes=10)
    changes = ReservedRangeEvent.objects.filter(pool=network.pool_id, pgh_created_at__gt=recent)
    return network.pool_id is not None and changes.exists()


def _mend_duplicates(network_id: int, _author: events.Author) -> int:
    network = _get_network(network_id)
    if network is None:
        return 0
    miscounted = conflicts.has_wrong_counts(network)
    repaired = conflicts.recheck_network(network) + miscounted
    repairs.record_cluster_repairs([network.cluster_id])
    return repaired


DUPLICATES = checks.Check(
    code="duplicates",
    invariants="mac-has-one-owner, duplicates-are-reported",
    proves="Exactly the MACs and addresses of a network with contradictory holders are marked as"
    " duplicates.",
    steps=_network_steps,
    find=_find_wrong_duplicates,
    mend=_mend_duplicates,
)

# A claim that only requests an address does not hold it.
BLOCKS = checks.Check(
    code="network_blocks",
    invariants="address-has-one-holder, pending-work-is-a-row",
    proves="Every address of an entry, claim or workload in its network's pool has a held block.",
    steps=_network_steps,
    find=checks.find_by_statement(statements.read("claims/check_held_addresses")),
)

CHECKS = [INDEX_ENTRIES, DUPLICATES, BLOCKS]
