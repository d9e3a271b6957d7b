"""What is proved of VM networks (pools/platform/checks)."""

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

_OWNERS = 2_000  # of one step
_TABLES: tuple[tuple[str, Any], ...] = (
    ("entry", Entry),
    ("claim", IPAMClaim),
    ("workload", Workload),
)
Span = tuple[str, int, int]  # of which table, ids after the first up to the second


def _owners(after: list[Any] | None) -> Iterator[tuple[list[Any], Span]]:
    began, low = after or [_TABLES[0][0], 0]
    names = [name for name, _ in _TABLES]
    for name, model in _TABLES[names.index(began) :]:
        while ids := list(
            model.objects.filter(pk__gt=low).order_by("pk").values_list("pk", flat=True)[:_OWNERS]
        ):
            yield [name, ids[-1]], (name, low, ids[-1])
            low = ids[-1]
        low = 0


def _compared(span: Span, *, lock: bool = False) -> tuple[index.IndexChange, Sequence[Any]]:
    name, low, high = span
    model = dict(_TABLES)[name]
    rows = model.objects.filter(pk__gt=low, pk__lte=high).order_by("pk")
    owners = list(rows.select_for_update() if lock else rows)
    if name == "entry":
        return index.compare(entries=owners), owners
    return (
        index.compare(claims=owners) if name == "claim" else index.compare(workloads=owners),
        owners,
    )


def _find(span: Span) -> Iterator[checks.Violation]:
    change, owners = _compared(span)
    names = {owner.pk: str(owner) for owner in owners}
    for column, owner, row in change.new:
        what = " ".join(filter(None, (row.mac, row.address, row.vm)))
        yield checks.Violation(f"The {column} {names[owner]} is not indexed under {what}")
    for index_entry_id in change.gone:
        text = f"The {span[0]} of index entry {index_entry_id} does not name its value"
        yield checks.Violation(text)


def _mend(span: Span, _by: events.Author) -> int:
    """Write the index anew; who holds a block stays, whatever it says."""
    change, owners = _compared(span, lock=True)
    index.index(change)
    networks = Network.objects.filter(pk__in=change.changed_keys.networks)
    repairs.record_cluster_repairs(networks.values_list("cluster_id", flat=True))
    return len(change.new) + len(change.gone) if owners else 0


INDEX_ENTRIES = checks.Check(
    code="index_entries",
    invariants="mac-has-one-owner, duplicates-are-reported",
    proves="The index of who names which MAC and which address says what the entries, claims and"
    " workloads say.",
    steps=_owners,
    find=_find,
    mend=_mend,
)


def _networks(after: int | None) -> Iterator[tuple[int, int]]:
    ids = Network.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def _network(network_id: int) -> Network | None:
    networks = Network.objects.select_related("pool", "cluster")
    return networks.filter(pk=network_id).first()


def _find_flags(network_id: int) -> Iterator[checks.Violation]:
    network = _network(network_id)
    if network is None:
        return
    waits = _ranges_changed(network)
    for mac, address, duplicate_mac, duplicate_ip in conflicts.wrong_flags(network):
        if waits and address:
            continue
        right = [word for word, on in (("MAC", duplicate_mac), ("address", duplicate_ip)) if on]
        verdict = f"a duplicate {' and '.join(right)}" if right else "no duplicate"
        text = f"Network {network}: {mac or '?'} {address or '?'} is {verdict}, and not flagged so"
        yield checks.Violation(text, network.pool_id)
    if not waits and conflicts.has_wrong_counts(network):
        text = f"Network {network}: its IPPool counts other duplicates than there are"
        yield checks.Violation(text, network.pool_id)


def _ranges_changed(network: Network) -> bool:
    """Addresses in reserved ranges are judged anew every five minutes, not with the range."""
    recent = Now() - timedelta(minutes=10)
    changes = ReservedRangeEvent.objects.filter(pool=network.pool_id, pgh_created_at__gt=recent)
    return network.pool_id is not None and changes.exists()


def _mend_flags(network_id: int, _by: events.Author) -> int:
    network = _network(network_id)
    if network is None:
        return 0
    miscounted = conflicts.has_wrong_counts(network)
    repaired = conflicts.recheck_network(network) + miscounted
    repairs.record_cluster_repairs([network.cluster_id])
    return repaired


DUPLICATES = checks.Check(
    code="duplicates",
    invariants="mac-has-one-owner, duplicates-are-reported",
    proves="Every MAC and every address of a network that two contradict each other about is flagged as"
    " a duplicate, and nothing else is.",
    steps=_networks,
    find=_find_flags,
    mend=_mend_flags,
)

# A claim that only asks for an address has none.
BLOCKS = checks.Check(
    code="network_blocks",
    invariants="address-has-one-holder, pending-work-is-a-row",
    proves="Every address that an entry, a claim or a workload has in its network's pool is held.",
    steps=_networks,
    find=checks.find_by_statement(statements.read("claims/check_held_addresses")),
)

CHECKS = [INDEX_ENTRIES, DUPLICATES, BLOCKS]
