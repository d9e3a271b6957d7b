"""What is kept for later: answers under keys, requests that wait, leases of clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pools.clusters.reconcile import leases
from pools.core import errors
from pools.platform.checks import checks
from pools.register.allocator import requests
from pools.sql import statements

KEYS = checks.Check(
    code="idempotency_keys",
    invariants="one-answer-per-key",
    proves="Under one key of one client there is one answer, complete, to one request.",
    find=checks.find_by_statement("""
        SELECT 'The key ' || left(key, 40) || ' of user ' || user_id || ' has ' || count(*)
            || ' answers', NULL::bigint
        FROM pools_idempotencykey GROUP BY user_id, key HAVING count(*) > 1
      UNION ALL
        SELECT 'The key ' || left(key, 40) || ' of user ' || user_id || ' has no usable answer', NULL
        FROM pools_idempotencykey
        WHERE answer IS NULL OR fingerprint !~ '^[0-9a-f]{64}$' OR status NOT BETWEEN 200 AND 299
    """),
)

_ENDED = checks.find_by_statement(statements.read("pools/check_allocation_requests"))


def _requests(id_range: tuple[int, int]) -> Iterator[checks.Violation]:
    yield from _ENDED(id_range)
    for pk, demand_text, pool_id in checks.rows(_PENDING, id_range):
        if not _can_be_tried(demand_text):
            text = f"Request {pk} waits, and cannot be read: nobody can ever try it"
            yield checks.Violation(text, pool_id)


_PENDING = """
    SELECT id, wanted::text, pool_id FROM pools_allocationrequest
    WHERE id > %s AND id <= %s AND state = 'pending' ORDER BY id
"""


def _can_be_tried(demand_text: str) -> bool:
    try:
        requests.from_json(json.loads(demand_text))
    except (KeyError, TypeError, ValueError, errors.IpamError):
        return False
    return True


REQUESTS = checks.Check(
    code="requests",
    invariants="pending-work-is-a-row, exhaustion-is-definite",
    proves="Every waiting request can be tried; every other one has ended, and a fulfilled one names"
    " its blocks.",
    steps=checks.slices("pools_allocationrequest"),
    find=_requests,
)

LEASES = checks.Check(
    code="leases",
    invariants="one-worker-for-a-cluster",
    proves="Nobody has a cluster for longer than a lease lasts, a lease has an owner, and every"
    " cluster is due within two hours.",
    find=checks.find_by_statement(f"""
        SELECT 'Cluster ' || c.name || ': ' || CASE
            WHEN (leased_by = '') <> (leased_until IS NULL) THEN 'its lease has no owner, or no end'
            WHEN leased_until > ipam_clock() + interval '{leases.SECONDS + 5} seconds'
                THEN 'its lease lasts too long'
            WHEN fence < 0 THEN 'its fence is negative'
            ELSE 'it is not due before '
                || to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') END, NULL::bigint
        FROM pools_connection n JOIN pools_cluster c ON c.id = n.cluster_id
        WHERE (leased_by = '') <> (leased_until IS NULL) OR fence < 0
           OR leased_until > ipam_clock() + interval '{leases.SECONDS + 5} seconds'
           OR NOT paused AND due_at > ipam_clock() + interval '2 hours'
    """),  # noqa: S608  # our number
)

CHECKS = [KEYS, REQUESTS, LEASES]
