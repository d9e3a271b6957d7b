"""Allocators with one fault each, as others had them: the checker must catch every one.

They work on the real tables and, but for their fault, through the real code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.concurrent import doors

if TYPE_CHECKING:
    from pools.platform import idempotency


class ReadThenInsert(doors.Service):
    """NetBox #2519: read what is free, then insert it, without lock and index."""

    def take(self, owner: str, pool_id: int) -> list[Any]:
        from django.db import transaction

        from pools.platform import idempotency

        with transaction.atomic():
            done = idempotency.run_once(self.key(owner), lambda: self._insert(owner, pool_id))
        return [done.answer]

    def _insert(self, owner: str, pool_id: int) -> idempotency.StoredAnswer:
        from django.db import connection

        from pools.core import errors
        from pools.platform import idempotency

        with connection.cursor() as cursor:
            cursor.execute(_FIRST_FREE, {"pool": pool_id})
            free = cursor.fetchone()
            if free is None:
                raise errors.PoolExhausted
            cursor.execute(
                _INSERT, {"pool": pool_id, "cidr": free[0], "kind": doors.KIND, "owner": owner}
            )
            (block_id,) = cursor.fetchone()
        address = str(free[0]).partition("/")[0]
        return idempotency.StoredAnswer(201, {"id": block_id, "address": address})


_FIRST_FREE = """
    SELECT a.cidr::text FROM pools_poolcidr c, generate_series(1, 500) AS n,
      LATERAL (SELECT set_masklen(host(c.cidr)::inet + n,
                                  CASE family(c.cidr) WHEN 4 THEN 32 ELSE 128 END)::cidr AS cidr) a
    WHERE c.pool_id = %(pool)s AND a.cidr << c.cidr AND host(a.cidr) <> host(broadcast(c.cidr))
      AND NOT EXISTS (SELECT FROM pools_block b WHERE b.pool_id = c.pool_id AND b.cidr = a.cidr
                      AND (b.state = 'held' OR b.available_from > ipam_now()))
    ORDER BY n LIMIT 1
"""
_INSERT = """
    INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state, withheld,
        holder_kind, holder_id, holder_uid, org, env, allocated_at)
    SELECT id, space_id, category, family(%(cidr)s::cidr), %(cidr)s::cidr, 'held', false,
        %(kind)s, %(owner)s, '', '', '', ipam_now()
    FROM pools_pool WHERE id = %(pool)s RETURNING id
"""


class NoIdempotency(doors.Service):
    """Every request is a new one."""

    def key(self, owner: str) -> idempotency.Key | None:  # noqa: ARG002  # as inherited
        return None


class NoCooldown(doors.Service):
    """An allocation looks at a clock at which every cooldown is over."""

    def take(self, owner: str, pool_id: int) -> list[Any]:
        _set_clock("1 hour")
        try:
            return super().take(owner, pool_id)
        finally:
            _set_clock("")


class ApplicationClock(doors.Service):
    """Each process judges cooldowns by its own clock, up to 2 s apart."""

    def prepare(self) -> None:
        _set_clock(f"{random.uniform(0, 2)} seconds")  # noqa: S311  # no secret


class ReleaseByAddress(doors.Service):
    """Whoever has this address loses it, however late the release comes."""

    def give_back(self, owner: str, block: int) -> None:  # noqa: ARG002  # as inherited
        from pools.register.allocator import allocation
        from tests import factories

        allocation.release(block, None, author=factories.WITH_REASON, force=True)


class NoLock(doors.Service):
    """No mutant of the rules: the pool's lock does nothing, and no promise may be broken by it."""

    def connect(self) -> None:
        from pools.register.allocator import window

        window.lock = lambda *_pool_ids: None
        super().connect()


def _set_clock(offset: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', %s, false)", [offset])


def without_skip_locked(source: str) -> str:
    """ipam_allocate that reads the oldest row and takes it, whoever has taken it meanwhile."""
    changed = source.replace("FOR UPDATE SKIP LOCKED", "")
    if changed == source:
        raise AssertionError("ipam_allocate has changed: this mutant changes nothing any more")
    return changed


@dataclass(frozen=True)
class Mutant:
    """At least one of the `violations` must be found."""

    door: type[doors.Service]
    violations: frozenset[str]
    statements: Sequence[str] = ()
    unlocked: bool = False


MUTANTS = {
    "read then insert": Mutant(
        ReadThenInsert,
        frozenset({"double_holder"}),
        ["ALTER TABLE pools_block DROP CONSTRAINT block_unique"],
    ),
    "read then update": Mutant(doors.Service, frozenset({"double_holder"}), unlocked=True),
    "no idempotency": Mutant(NoIdempotency, frozenset({"idempotency"})),
    "cooldown ignored": Mutant(NoCooldown, frozenset({"cooldown_reuse"})),
    "application clock": Mutant(ApplicationClock, frozenset({"cooldown_reuse"})),
    "release by address": Mutant(
        ReleaseByAddress, frozenset({"double_holder", "lost_after_commit", "taken_away"})
    ),
}
