"""Addresses for claims that have none: the managed resource `claims`.

All or nothing over the families of the network (rule `all-or-nothing`), under the lock of its pool, and for good: a
claim that has addresses is never changed. What cannot be granted is answered with a condition, and
tried again whenever this is called (rule `refused-claim-is-tried-again`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from claims.address_index import block_sync, index
from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome, Dialect
from claims.ipamclaims import ingest
from claims.ipamclaims.contenders import Contenders
from claims.ipamclaims.decisions import AllocationResult, ClaimAllocator
from claims.models import IPAMClaim, Network
from pools.models import Pool
from pools.platform import database, events
from pools.register.allocator import window


def waiting(cluster_id: int) -> list[IPAMClaim]:
    """The claims without addresses, by network, in the order in which they came."""
    rows = IPAMClaim.objects.filter(
        cluster=cluster_id, ips=[], deleted_at=None, gone_at=None, network__pool__isnull=False
    )
    return list(rows.order_by("network__pool_id", "pk").select_related("network__pool"))


def answer(
    claims: Sequence[IPAMClaim],
    words: Dialect,
    *,
    author: events.Author,
    broken: Mapping[str, str] | None = None,
) -> int:
    """Grant what can be granted to these claims; how many got addresses.

    `broken` says by the uid of a claim's object what of it cannot be understood. Stands in a
    transaction of the caller, which holds no rows of claims or blocks yet.
    """
    granted = 0
    by_network: dict[int, list[IPAMClaim]] = {}
    for claim in claims:
        by_network.setdefault(claim.network_id, []).append(claim)
    for those in by_network.values():
        granted += _answer_network(those[0].network, those, words, author, broken or {})
    return granted


def refuse(claim: IPAMClaim, words: Dialect, message: str) -> None:
    """Say that a claim could not be answered, for a reason of ours."""
    if _apply_result(claim, AllocationResult(ClaimOutcome.ERROR, message), words, database.now()):
        IPAMClaim.objects.filter(pk=claim.pk, ips=[]).update(conditions=claim.conditions)


def _answer_network(
    network: Network,
    those: Sequence[IPAMClaim],
    words: Dialect,
    author: events.Author,
    broken: Mapping[str, str],
) -> int:
    pool = network.pool
    if pool is None:
        return 0
    window.lock(pool.pk)
    # Somebody may have changed, granted or deleted one while we waited for the lock.
    ids = [claim.pk for claim in those]
    fresh = IPAMClaim.objects.filter(pk__in=ids, ips=[]).select_related("network__pool")
    claims = [claim for claim in fresh.order_by("pk") if claim.network_id == network.pk]
    results = ClaimAllocator(pool, Contenders(network, claims), author).allocate(claims, broken)
    return _keep(pool, claims, results, words, author)


def _keep(
    pool: Pool,
    claims: Sequence[IPAMClaim],
    results: Mapping[int, AllocationResult],
    words: Dialect,
    author: events.Author,
) -> int:
    now = database.now()
    changed, granted = [], []
    for claim in claims:
        result = results[claim.pk]
        fresh = _apply_result(claim, result, words, now)
        if result.ips:
            granted.append(claim)
        if fresh:
            changed.append(claim)
            if not result.ips:
                _record(pool, claim, result, author)
    ingest.store(changed, "ips", "conditions")
    if granted:
        index.write(claims=granted)
    return len(granted)


def _apply_result(
    claim: IPAMClaim, result: AllocationResult, words: Dialect, now: datetime
) -> bool:
    """Whether the answer is another one than before."""
    ours = dialects.condition(result.outcome, result.message, words)
    is_unchanged = dialects.matches(dialects.allocation_condition(claim.conditions), ours)
    if not is_unchanged:
        claim.conditions = dialects.merge_conditions(claim.conditions, ours, now=now)
    if result.ips:
        claim.ips = list(result.ips)
    return bool(result.ips) or not is_unchanged


def _record(pool: Pool, claim: IPAMClaim, result: AllocationResult, author: events.Author) -> None:
    events.record_allocation_failure(
        pool,
        holder=block_sync.holder_name(claim.namespace, claim.vm, claim.mac),
        org="",
        env="",
        code=result.code,
        message=f"IPAMClaim {claim}: {result.message}",
        author=author,
    )
