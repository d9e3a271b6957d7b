"""What becomes of the claims of one network: who gets which addresses, and who gets none, and why.

Called under the lock of the network's pool. Claims that ask for certain addresses come first, in the
order in which they came; then those that take whatever is free. All or nothing over the families.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from claims.address_index import block_sync
from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.ipamclaims.contenders import Contenders
from claims.models import IPAMClaim
from pools.core import errors
from pools.core.demand import BlockDemand, Holder
from pools.models import Pool
from pools.platform import events
from pools.register import block_sync as register_block_sync
from pools.register.allocator import allocation, batches


@dataclass(frozen=True)
class AllocationResult:
    """What becomes of a claim; with `ips` it is granted."""

    outcome: ClaimOutcome
    message: str
    ips: tuple[str, ...] = ()
    code: str = ""


class ClaimAllocator:
    """What becomes of the claims of one network, one after the other."""

    def __init__(self, pool: Pool, contenders: Contenders, author: events.Author) -> None:
        self._pool = pool
        self._author = author
        self._contenders = contenders
        self._families = batches.families(pool)
        self._full: set[int] = set()

    def allocate(
        self, claims: Sequence[IPAMClaim], broken: Mapping[str, str]
    ) -> dict[int, AllocationResult]:
        """By the claims' ids; what is granted has its blocks. `broken` as claim_answers.answer has it."""
        results: dict[int, AllocationResult] = {}
        chosen: dict[int, list[str]] = {}
        for claim in claims:
            desired_ips = self._contenders.desired_addresses(claim)
            if text := broken.get(claim.uid):
                results[claim.pk] = AllocationResult(ClaimOutcome.ERROR, text, code="invalid")
            elif refusal := self._refusal(claim, desired_ips):
                results[claim.pk] = refusal
            else:
                chosen[claim.pk] = self._one_of_each_family(desired_ips)
                self._contenders.granted(claim, chosen[claim.pk])
        open_ = [claim for claim in claims if claim.pk in chosen]
        none = [claim for claim in open_ if not chosen[claim.pk]]
        part = [claim for claim in open_ if chosen[claim.pk] and self._missing(chosen[claim.pk])]
        whole = [claim for claim in open_ if not self._missing(chosen[claim.pk])]
        self._hold(whole, chosen)
        drawn: dict[int, list[str]] = {claim.pk: [] for claim in whole}
        drawn |= self._draw_rest(part, chosen, results)
        drawn |= self._draw_all(none, results)
        for pk, fresh in drawn.items():
            results[pk] = self._granted([*chosen[pk], *fresh])
        return results

    def _missing(self, has: Iterable[str]) -> tuple[int, ...]:
        families = {ipamclaim.host(text).version for text in has}
        return tuple(family for family in self._families if family not in families)

    def _granted(self, ips: Iterable[str]) -> AllocationResult:
        hosts = sorted(map(ipamclaim.host, ips), key=lambda host: host.version)
        full = tuple(ipamclaim.with_prefix(str(host), self._contenders.subnets) for host in hosts)
        return AllocationResult(ClaimOutcome.ALLOCATED, dialects.allocated_message(full), full)

    def _one_of_each_family(self, ips: Iterable[str]) -> list[str]:
        ip_by_family: dict[int, str] = {}
        for text in ips:
            ip_by_family.setdefault(ipamclaim.host(text).version, text)
        return [ip_by_family[family] for family in sorted(ip_by_family)]

    def _refusal(self, claim: IPAMClaim, desired_ips: Sequence[str]) -> AllocationResult | None:
        if gateway_mac := self._contenders.gateway_mac(claim):
            message = dialects.gateway_mac_message(*gateway_mac)
            return AllocationResult(
                ClaimOutcome.MAC_CONFLICT, message, code=errors.ReservedAddress.code
            )
        if self._contenders.mac_taken(claim):
            message = dialects.mac_conflict_message(claim.mac or "")
            return AllocationResult(ClaimOutcome.MAC_CONFLICT, message, code="mac_conflict")
        if outside := self._contenders.outside(desired_ips):
            message = dialects.outside_message(outside, self._contenders.subnets)
            return AllocationResult(ClaimOutcome.ERROR, message, code="outside_subnets")
        if taken_ips := self._contenders.taken_addresses(claim, desired_ips):
            message = dialects.ip_conflict_message(taken_ips)
            return AllocationResult(
                ClaimOutcome.IP_CONFLICT, message, code=errors.AlreadyAllocated.code
            )
        return None

    # --- blocks -----------------------------------------------------------------------------------

    def _hold(self, claims: Iterable[IPAMClaim], chosen: Mapping[int, list[str]]) -> None:
        """From now on these are not drawn for anybody else."""
        uses = {
            ipamclaim.host(text): register_block_sync.Use(
                register_block_sync.AddressHolder(*_name(claim), claim.vm_uid)
            )
            for claim in claims
            for text in chosen[claim.pk]
        }
        register_block_sync.settle(self._pool, uses)

    def _draw_rest(
        self,
        claims: list[IPAMClaim],
        chosen: Mapping[int, list[str]],
        refused: dict[int, AllocationResult],
    ) -> dict[int, list[str]]:
        """For claims that ask for one family only, the other one; tried again without who gets none."""
        remaining_claims = claims
        while remaining_claims:
            before = len(refused)
            self._full.clear()  # whoever was refused has given room
            with transaction.atomic():
                self._hold(remaining_claims, chosen)
                drawn = {}
                for claim in remaining_claims:
                    fresh = self._draw_one(claim, self._missing(chosen[claim.pk]))
                    if isinstance(fresh, AllocationResult):
                        refused[claim.pk] = fresh
                    else:
                        drawn[claim.pk] = fresh
                if len(refused) > before:
                    transaction.set_rollback(True)
            if len(refused) == before:
                return drawn
            remaining_claims = [claim for claim in remaining_claims if claim.pk not in refused]
        return {}

    def _draw_all(
        self, claims: Sequence[IPAMClaim], refused: dict[int, AllocationResult]
    ) -> dict[int, list[str]]:
        """For claims that ask for nothing, an address of each family."""
        holders = {claim.pk: _holder(claim) for claim in claims}
        if len(set(holders.values())) == len(claims) > 1:
            try:
                with transaction.atomic():
                    drawn = self._take(list(holders.values()), self._families)
                return {pk: drawn[holder] for pk, holder in holders.items()}
            except errors.PoolExhausted:
                pass  # there is not enough for all of them
        ips_by_claim = {}
        for claim in claims:
            fresh = self._draw_one(claim, self._families)
            if isinstance(fresh, AllocationResult):
                refused[claim.pk] = fresh
            else:
                ips_by_claim[claim.pk] = fresh
        return ips_by_claim

    def _draw_one(self, claim: IPAMClaim, families: Sequence[int]) -> list[str] | AllocationResult:
        """All or nothing; a family that is full is not asked for again."""
        full = next((family for family in families if family in self._full), None)
        if full is not None:
            return self._exhausted(full)
        holder, ips = _holder(claim), list[str]()
        family = 0
        try:
            with transaction.atomic():
                for family in families:
                    ips += self._take([holder], (family,))[holder]
        except errors.PoolExhausted:
            self._full.add(family)
            return self._exhausted(family)
        return ips

    def _exhausted(self, family: int) -> AllocationResult:
        message = dialects.exhausted_message(family)
        return AllocationResult(ClaimOutcome.EXHAUSTED, message, code=errors.PoolExhausted.code)

    def _take(
        self, holders: Sequence[Holder], families: tuple[int, ...]
    ) -> dict[Holder, list[str]]:
        demand = BlockDemand(tuple(holders), families=families)
        done = allocation.allocate(self._pool.pk, demand, author=self._author)
        names = {(holder.kind, holder.id): holder for holder in holders}
        ips_by_holder: dict[Holder, list[str]] = {holder: [] for holder in holders}
        for block in done.blocks if isinstance(done, allocation.Allocation) else ():
            holder = names[block["holder"]["kind"], block["holder"]["id"]]
            ips_by_holder[holder].append(block["cidr"].split("/")[0])
        return ips_by_holder


def _holder(claim: IPAMClaim) -> Holder:
    return Holder(*_name(claim), claim.vm_uid)


def _name(claim: IPAMClaim) -> tuple[str, str]:
    return block_sync.holder_name(claim.namespace, claim.vm, claim.mac)
