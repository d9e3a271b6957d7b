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
from claims.core.ipamclaims.dialects import Outcome
from claims.ipamclaims.contenders import Rivals
from claims.models import IPAMClaim
from pools.core import errors
from pools.core.demand import Holder, Wanted
from pools.models import Pool
from pools.platform import events
from pools.register import block_sync as register_block_sync
from pools.register.allocator import allocation, batches


@dataclass(frozen=True)
class Answer:
    """What becomes of a claim; with `ips` it is granted."""

    outcome: Outcome
    message: str
    ips: tuple[str, ...] = ()
    code: str = ""


class Decisions:
    """What becomes of the claims of one network, one after the other."""

    def __init__(self, pool: Pool, rivals: Rivals, author: events.Author) -> None:
        self._pool = pool
        self._by = author
        self._rivals = rivals
        self._families = batches.families(pool)
        self._full: set[int] = set()

    def of(self, claims: Sequence[IPAMClaim], broken: Mapping[str, str]) -> dict[int, Answer]:
        """By the claims' ids; what is granted has its blocks. `broken` as claim_answers.answer has it."""
        found: dict[int, Answer] = {}
        chosen: dict[int, list[str]] = {}
        for claim in claims:
            wanted = self._rivals.wanted(claim)
            if text := broken.get(claim.uid):
                found[claim.pk] = Answer(Outcome.ERROR, text, code="invalid")
            elif refusal := self._refusal(claim, wanted):
                found[claim.pk] = refusal
            else:
                chosen[claim.pk] = self._one_of_each_family(wanted)
                self._rivals.granted(claim, chosen[claim.pk])
        open_ = [claim for claim in claims if claim.pk in chosen]
        none = [claim for claim in open_ if not chosen[claim.pk]]
        part = [claim for claim in open_ if chosen[claim.pk] and self._missing(chosen[claim.pk])]
        whole = [claim for claim in open_ if not self._missing(chosen[claim.pk])]
        self._hold(whole, chosen)
        drawn: dict[int, list[str]] = {claim.pk: [] for claim in whole}
        drawn |= self._draw_rest(part, chosen, found)
        drawn |= self._draw_all(none, found)
        for pk, fresh in drawn.items():
            found[pk] = self._granted([*chosen[pk], *fresh])
        return found

    def _missing(self, has: Iterable[str]) -> tuple[int, ...]:
        families = {ipamclaim.host(text).version for text in has}
        return tuple(family for family in self._families if family not in families)

    def _granted(self, ips: Iterable[str]) -> Answer:
        hosts = sorted(map(ipamclaim.host, ips), key=lambda one: one.version)
        full = tuple(ipamclaim.with_prefix(str(one), self._rivals.subnets) for one in hosts)
        return Answer(Outcome.ALLOCATED, dialects.allocated(full), full)

    def _one_of_each_family(self, wanted: Iterable[str]) -> list[str]:
        found: dict[int, str] = {}
        for text in wanted:
            found.setdefault(ipamclaim.host(text).version, text)
        return [found[family] for family in sorted(found)]

    def _refusal(self, claim: IPAMClaim, wanted: Sequence[str]) -> Answer | None:
        if own := self._rivals.gateway_mac(claim):
            message = dialects.mac_of_gateway(*own)
            return Answer(Outcome.MAC_CONFLICT, message, code=errors.ReservedAddress.code)
        if self._rivals.mac_taken(claim):
            message = dialects.mac_conflict(claim.mac or "")
            return Answer(Outcome.MAC_CONFLICT, message, code="mac_conflict")
        if outside := self._rivals.outside(wanted):
            message = dialects.outside(outside, self._rivals.subnets)
            return Answer(Outcome.ERROR, message, code="outside_subnets")
        if taken := self._rivals.taken(claim, wanted):
            message = dialects.ip_conflict(taken)
            return Answer(Outcome.IP_CONFLICT, message, code=errors.AlreadyAllocated.code)
        return None

    # --- blocks -----------------------------------------------------------------------------------

    def _hold(self, claims: Iterable[IPAMClaim], chosen: Mapping[int, list[str]]) -> None:
        """From now on these are not drawn for anybody else."""
        uses = {
            ipamclaim.host(text): register_block_sync.Use(
                register_block_sync.Holder(*_name(claim), claim.vm_uid)
            )
            for claim in claims
            for text in chosen[claim.pk]
        }
        register_block_sync.settle(self._pool, uses)

    def _draw_rest(
        self, claims: list[IPAMClaim], chosen: Mapping[int, list[str]], refused: dict[int, Answer]
    ) -> dict[int, list[str]]:
        """For claims that ask for one family only, the other one; tried again without who gets none."""
        left = claims
        while left:
            before = len(refused)
            self._full.clear()  # whoever was refused has given room
            with transaction.atomic():
                self._hold(left, chosen)
                drawn = {}
                for claim in left:
                    fresh = self._draw_one(claim, self._missing(chosen[claim.pk]))
                    if isinstance(fresh, Answer):
                        refused[claim.pk] = fresh
                    else:
                        drawn[claim.pk] = fresh
                if len(refused) > before:
                    transaction.set_rollback(True)
            if len(refused) == before:
                return drawn
            left = [claim for claim in left if claim.pk not in refused]
        return {}

    def _draw_all(
        self, claims: Sequence[IPAMClaim], refused: dict[int, Answer]
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
        found = {}
        for claim in claims:
            fresh = self._draw_one(claim, self._families)
            if isinstance(fresh, Answer):
                refused[claim.pk] = fresh
            else:
                found[claim.pk] = fresh
        return found

    def _draw_one(self, claim: IPAMClaim, families: Sequence[int]) -> list[str] | Answer:
        """All or nothing; a family that is full is not asked for again."""
        full = next((family for family in families if family in self._full), None)
        if full is not None:
            return self._exhausted(full)
        holder, found = _holder(claim), list[str]()
        family = 0
        try:
            with transaction.atomic():
                for family in families:
                    found += self._take([holder], (family,))[holder]
        except errors.PoolExhausted:
            self._full.add(family)
            return self._exhausted(family)
        return found

    def _exhausted(self, family: int) -> Answer:
        message = dialects.exhausted(family)
        return Answer(Outcome.EXHAUSTED, message, code=errors.PoolExhausted.code)

    def _take(
        self, holders: Sequence[Holder], families: tuple[int, ...]
    ) -> dict[Holder, list[str]]:
        wanted = Wanted(tuple(holders), families=families)
        done = allocation.allocate(self._pool.pk, wanted, author=self._by)
        names = {(holder.kind, holder.id): holder for holder in holders}
        found: dict[Holder, list[str]] = {holder: [] for holder in holders}
        for block in done.blocks if isinstance(done, allocation.Allocation) else ():
            holder = names[block["holder"]["kind"], block["holder"]["id"]]
            found[holder].append(block["cidr"].split("/")[0])
        return found


def _holder(claim: IPAMClaim) -> Holder:
    return Holder(*_name(claim), claim.vm_uid)


def _name(claim: IPAMClaim) -> tuple[str, str]:
    return block_sync.holder_name(claim.namespace, claim.vm, claim.mac)
