"""Allocation of addresses to IPAMClaims without any: the managed resource `claims`.

A claim gets an address of each family of its network or none (rule `all-or-nothing`). The allocation holds
the lock of the pool, and a claim with addresses is never changed. Claims with requested addresses come first, in the
order of their creation, then those that accept any address. A claim that cannot be granted gets a
condition, and every call tries it again (rule `refused-claim-is-tried-again`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from claims.address_index import block_sync, index
from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome, Dialect
from claims.ipamclaims import ingest
from claims.ipamclaims.contenders import Contenders
from claims.models import IPAMClaim
from claims.networks import pools as network_pools
from pools.core import errors
from pools.core.holders import BlockDemand, Holder
from pools.models import Pool
from pools.platform import database, events
from pools.register import block_sync as register_block_sync
from pools.register.allocator import allocation, batches


@dataclass(frozen=True)
class AllocationResult:
    """The result for one claim; it is granted if it has `ips`."""

    outcome: ClaimOutcome
    message: str
    ips: tuple[str, ...] = ()
    code: str = ""


class ClaimAllocator:
    """Allocates addresses to the claims of one network, one claim after the other."""

    def __init__(self, pool: Pool, contenders: Contenders, author: events.Author) -> None:
        self._pool = pool
        self._author = author
        self._contenders = contenders
        self._families = batches.families(pool)
        self._full: dict[int, AllocationResult] = {}  # the refusal, by exhausted family

    def allocate(
        self, claims: Sequence[IPAMClaim], problems_by_uid: Mapping[str, str]
    ) -> dict[int, AllocationResult]:
        """Allocate blocks for the claims, and return the results by claim id.

        `problems_by_uid` has the parse errors of claim objects by uid.
        """
        results: dict[int, AllocationResult] = {}
        chosen_ips: dict[int, list[str]] = {}
        for claim in claims:
            desired_ips = self._contenders.desired_addresses(claim)
            if text := problems_by_uid.get(claim.uid):
                results[claim.pk] = AllocationResult(ClaimOutcome.ERROR, text, code="invalid")
            elif refusal := self._refusal(claim, desired_ips):
                results[claim.pk] = refusal
            else:
                chosen_ips[claim.pk] = self._one_of_each_family(desired_ips)
                self._contenders.add_granted(claim, chosen_ips[claim.pk])
        accepted = [claim for claim in claims if claim.pk in chosen_ips]
        unspecified = [claim for claim in accepted if not chosen_ips[claim.pk]]
        partial = [
            claim
            for claim in accepted
            if chosen_ips[claim.pk] and self._missing_families(chosen_ips[claim.pk])
        ]
        complete = [claim for claim in accepted if not self._missing_families(chosen_ips[claim.pk])]
        self._hold_blocks(complete, chosen_ips)
        drawn_ips: dict[int, list[str]] = {claim.pk: [] for claim in complete}
        drawn_ips |= self._draw_rest(partial, chosen_ips, results)
        drawn_ips |= self._draw_all(unspecified, results)
        for pk, claim_ips in drawn_ips.items():
            results[pk] = self._granted_result([*chosen_ips[pk], *claim_ips])
        return results

    def _missing_families(self, ips: Iterable[str]) -> tuple[int, ...]:
        present_families = {ipamclaim.host(text).version for text in ips}
        return tuple(family for family in self._families if family not in present_families)

    def _granted_result(self, ips: Iterable[str]) -> AllocationResult:
        hosts = sorted(map(ipamclaim.host, ips), key=lambda host: host.version)
        ips_with_prefix = tuple(
            ipamclaim.with_prefix(str(host), self._contenders.subnets) for host in hosts
        )
        return AllocationResult(
            ClaimOutcome.ALLOCATED, dialects.allocated_message(ips_with_prefix), ips_with_prefix
        )

    def _one_of_each_family(self, ips: Iterable[str]) -> list[str]:
        ip_by_family: dict[int, str] = {}
        for text in ips:
            ip_by_family.setdefault(ipamclaim.host(text).version, text)
        return [ip_by_family[family] for family in sorted(ip_by_family)]

    def _refusal(self, claim: IPAMClaim, desired_ips: Sequence[str]) -> AllocationResult | None:
        if kept_mac := self._contenders.kept_mac(claim):
            mac, kept_span = kept_mac
            message = f"Requested MAC {mac} is that of the network's {kept_span.port}"
            return AllocationResult(
                ClaimOutcome.MAC_CONFLICT, message, code=errors.ReservedAddress.code
            )
        if self._contenders.is_mac_taken(claim):
            message = f"Requested MAC {claim.mac} is already assigned in the network"
            return AllocationResult(ClaimOutcome.MAC_CONFLICT, message, code="mac_conflict")
        if outside := self._contenders.addresses_outside(desired_ips):
            message = dialects.outside_message(outside, self._contenders.subnets)
            return AllocationResult(ClaimOutcome.ERROR, message, code="outside_subnets")
        if taken_ips := self._contenders.taken_addresses(claim, desired_ips):
            message = dialects.ip_conflict_message(taken_ips)
            return AllocationResult(
                ClaimOutcome.IP_CONFLICT, message, code=errors.AlreadyAllocated.code
            )
        return None

    # --- blocks -----------------------------------------------------------------------------------

    def _hold_blocks(
        self, claims: Iterable[IPAMClaim], chosen_ips: Mapping[int, list[str]]
    ) -> None:
        """Hold the blocks of the chosen addresses, so that no other claim can draw them."""
        uses = {
            ipamclaim.host(text): register_block_sync.AddressUse(
                register_block_sync.AddressHolder(
                    *block_sync.holder_name(claim.namespace, claim.vm, claim.mac), claim.vm_uid
                )
            )
            for claim in claims
            for text in chosen_ips[claim.pk]
        }
        register_block_sync.apply_uses(self._pool, uses)

    def _draw_rest(
        self,
        claims: list[IPAMClaim],
        chosen_ips: Mapping[int, list[str]],
        refused: dict[int, AllocationResult],
    ) -> dict[int, list[str]]:
        """Draw the missing families of claims that request one family.

        If a claim is refused, its blocks are released and the remaining claims are drawn again.
        """
        remaining_claims = claims
        while remaining_claims:
            refused_before = len(refused)
            self._full.clear()  # refused claims have released addresses
            with transaction.atomic():
                self._hold_blocks(remaining_claims, chosen_ips)
                drawn_ips = {}
                for claim in remaining_claims:
                    result = self._draw_one(claim, self._missing_families(chosen_ips[claim.pk]))
                    if isinstance(result, AllocationResult):
                        refused[claim.pk] = result
                    else:
                        drawn_ips[claim.pk] = result
                if len(refused) > refused_before:
                    transaction.set_rollback(True)
            if len(refused) == refused_before:
                return drawn_ips
            remaining_claims = [claim for claim in remaining_claims if claim.pk not in refused]
        return {}

    def _draw_all(
        self, claims: Sequence[IPAMClaim], refused: dict[int, AllocationResult]
    ) -> dict[int, list[str]]:
        """Draw an address of each family for claims without a request."""
        holders = {claim.pk: _holder(claim) for claim in claims}
        if len(set(holders.values())) == len(claims) > 1:
            try:
                with transaction.atomic():
                    drawn_ips = self._allocate_blocks(list(holders.values()), self._families)
                return {pk: drawn_ips[holder] for pk, holder in holders.items()}
            except errors.PoolExhausted:
                pass  # not enough addresses for all claims: draw them one by one
        ips_by_claim = {}
        for claim in claims:
            result = self._draw_one(claim, self._families)
            if isinstance(result, AllocationResult):
                refused[claim.pk] = result
            else:
                ips_by_claim[claim.pk] = result
        return ips_by_claim

    def _draw_one(self, claim: IPAMClaim, families: Sequence[int]) -> list[str] | AllocationResult:
        """Draw an address of each family or none; a family that is exhausted is not tried again."""
        full_family = next((family for family in families if family in self._full), None)
        if full_family is not None:
            return self._full[full_family]
        holder, ips = _holder(claim), list[str]()
        family = 0
        try:
            with transaction.atomic():
                for family in families:
                    ips += self._allocate_blocks([holder], (family,))[holder]
        except errors.PoolExhausted:
            message = f"The network has no free IPv{family} address"
            error = batches.exhausted(self._pool, family, message)
            self._full[family] = AllocationResult(
                ClaimOutcome.EXHAUSTED, error.message, code=error.code
            )
            return self._full[family]
        return ips

    def _allocate_blocks(
        self, holders: Sequence[Holder], families: tuple[int, ...]
    ) -> dict[Holder, list[str]]:
        demand = BlockDemand(tuple(holders), families=families)
        allocated = allocation.allocate(self._pool.pk, demand, author=self._author)
        names = {(holder.kind, holder.id): holder for holder in holders}
        ips_by_holder: dict[Holder, list[str]] = {holder: [] for holder in holders}
        for block in allocated.blocks if isinstance(allocated, allocation.Allocation) else ():
            holder = names[block["holder"]["kind"], block["holder"]["id"]]
            ips_by_holder[holder].append(block["cidr"].split("/")[0])
        return ips_by_holder


def _holder(claim: IPAMClaim) -> Holder:
    return Holder(*block_sync.holder_name(claim.namespace, claim.vm, claim.mac), claim.vm_uid)


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
) -> None:
    """Grant addresses to claims of one network.

    `problems_by_uid` has the parse errors of claim objects by uid. The caller opens the transaction and
    has not locked rows of claims or blocks yet.
    """
    network = claims[0].network
    pool = network.pool
    if pool is None:
        return
    block_sync.lock_pools([network.pk])
    # Also what has been allocated there without an entry or a claim.
    block_sync.sync_segment(network)
    # Another transaction may have changed, granted or deleted a claim before the lock was taken.
    ids = [claim.pk for claim in claims]
    current_claims = IPAMClaim.objects.filter(pk__in=ids, ips=[]).select_related("network__pool")
    claims = [claim for claim in current_claims.order_by("pk") if claim.network_id == network.pk]
    network_pools.sync_ranges(network, pool, author)  # also what somebody has taken out of the pool
    results = ClaimAllocator(pool, Contenders(network, claims), author).allocate(
        claims, problems_by_uid or {}
    )
    _store_results(pool, claims, results, dialect, author)


def refuse_claim(claim: IPAMClaim, dialect: Dialect, message: str) -> None:
    """Set the error condition of a claim that failed for an internal reason."""
    if _apply_result(claim, AllocationResult(ClaimOutcome.ERROR, message), dialect, database.now()):
        IPAMClaim.objects.filter(pk=claim.pk, ips=[]).update(conditions=claim.conditions)


def _store_results(
    pool: Pool,
    claims: Sequence[IPAMClaim],
    results: Mapping[int, AllocationResult],
    dialect: Dialect,
    author: events.Author,
) -> None:
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
