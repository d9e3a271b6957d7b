"""Allocation of addresses to IPAMClaims without any: the managed resource `claims`.

A claim gets an address of each family of its network or none (rule `all-or-nothing`). The allocation holds
the lock of the pool, and a claim with addresses is never changed. A claim that cannot be granted gets a
condition, and every call tries it again (rule `refused-claim-is-tried-again`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from claims.address_index import block_sync, index, segments
from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome, Dialect
from claims.ipamclaims import ingest
from claims.ipamclaims.contenders import Contenders
from claims.ipamclaims.decisions import AllocationResult, ClaimAllocator
from claims.models import IPAMClaim, Network
from claims.networks import pools as network_pools
from pools.models import Pool
from pools.platform import database, events


def waiting_claims(cluster_id: int) -> list[IPAMClaim]:
    """Return the claims without addresses, grouped by pool and in the order of their creation."""
    rows = IPAMClaim.objects.filter(
        cluster=cluster_id, ips=[], deleted_at=None, gone_at=None, network__pool__isnull=False
    )
    return list(rows.order_by("network__pool_id", "pk").select_related("network__pool"))


def grant_addresses(
    claims: Sequence[IPAMClaim],
    dialect: Dialect,
    *,
    author: events.Author,
    problems_by_uid: Mapping[str, str] | None = None,
) -> int:
    """Grant addresses to the given claims, and return how many claims got addresses.

    `problems_by_uid` has the parse errors of claim objects by uid. The caller opens the transaction and
    has not locked rows of claims or blocks yet.
    """
    granted_count = 0
    by_network: dict[int, list[IPAMClaim]] = {}
    for claim in claims:
        by_network.setdefault(claim.network_id, []).append(claim)
    for network_claims in by_network.values():
        granted_count += _grant_network(
            network_claims[0].network, network_claims, dialect, author, problems_by_uid or {}
        )
    return granted_count


def refuse_claim(claim: IPAMClaim, dialect: Dialect, message: str) -> None:
    """Set the error condition of a claim that failed for an internal reason."""
    if _apply_result(claim, AllocationResult(ClaimOutcome.ERROR, message), dialect, database.now()):
        IPAMClaim.objects.filter(pk=claim.pk, ips=[]).update(conditions=claim.conditions)


def _grant_network(
    network: Network,
    claims: Sequence[IPAMClaim],
    dialect: Dialect,
    author: events.Author,
    problems_by_uid: Mapping[str, str],
) -> int:
    pool = network.pool
    if pool is None:
        return 0
    segments.lock_pools([network])
    segments.sync_blocks(network)  # also what has been allocated there without an entry or a claim
    # Another transaction may have changed, granted or deleted a claim before the lock was taken.
    ids = [claim.pk for claim in claims]
    current_claims = IPAMClaim.objects.filter(pk__in=ids, ips=[]).select_related("network__pool")
    claims = [claim for claim in current_claims.order_by("pk") if claim.network_id == network.pk]
    network_pools.sync_ranges(network, pool, author)  # also what somebody has taken out of the pool
    results = ClaimAllocator(pool, Contenders(network, claims), author).allocate(
        claims, problems_by_uid
    )
    return _store_results(pool, claims, results, dialect, author)


def _store_results(
    pool: Pool,
    claims: Sequence[IPAMClaim],
    results: Mapping[int, AllocationResult],
    dialect: Dialect,
    author: events.Author,
) -> int:
    now = database.now()
    changed, granted = [], []
    for claim in claims:
        result = results[claim.pk]
        before = dialects.outcome_of(dialects.allocation_condition(claim.conditions))
        is_changed = _apply_result(claim, result, dialect, now)
        if result.ips:
            granted.append(claim)
        if is_changed:
            changed.append(claim)
            # While a pool stays exhausted, only what cools changes: that is no other refusal.
            if not result.ips and not before is result.outcome is ClaimOutcome.EXHAUSTED:
                _record_failure(pool, claim, result, author)
    ingest.store(changed, "ips", "conditions")
    if granted:
        index.write(claims=granted)
    return len(granted)


def _apply_result(
    claim: IPAMClaim, result: AllocationResult, dialect: Dialect, now: datetime
) -> bool:
    """Apply the result to the claim, and return True if its addresses or its condition have changed."""
    condition = dialects.condition(result.outcome, result.message, dialect)
    is_unchanged = dialects.matches(dialects.allocation_condition(claim.conditions), condition)
    if not is_unchanged:
        claim.conditions = dialects.merge_conditions(claim.conditions, condition, now=now)
    if result.ips:
        claim.ips = list(result.ips)
    return bool(result.ips) or not is_unchanged


def _record_failure(
    pool: Pool, claim: IPAMClaim, result: AllocationResult, author: events.Author
) -> None:
    events.record_allocation_failure(
        pool,
        holder=block_sync.holder_name(claim.namespace, claim.vm, claim.mac),
        org="",
        env="",
        code=result.code,
        message=f"IPAMClaim {claim}: {result.message}",
        author=author,
    )
