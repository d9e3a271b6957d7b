"""Checks of idempotency keys, pending allocation requests and leases of clusters."""

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
    proves="Each idempotency key of a client has one complete answer to one request.",
    find=checks.find_by_statement(statements.read("pools/check_idempotency_keys")),
)

_find_invalid_requests = checks.find_by_statement(
    statements.read("pools/check_allocation_requests")
)


def _find_violations(id_range: tuple[int, int]) -> Iterator[checks.Violation]:
    yield from _find_invalid_requests(id_range)
    for pk, demand_text, pool_id in checks.rows(_PENDING, id_range):
        if not _is_readable(demand_text):
            text = (
                f"Request {pk} is pending, but its demand cannot be read: it can never be retried"
            )
            yield checks.Violation(text, pool_id)


_PENDING = """
    SELECT id, demand::text, pool_id FROM pools_allocationrequest
    WHERE id > %s AND id <= %s AND state = 'pending' ORDER BY id
"""


def _is_readable(demand_text: str) -> bool:
    try:
        requests.demand_from_json(json.loads(demand_text))
    except (KeyError, TypeError, ValueError, errors.IpamError):
        return False
    return True


REQUESTS = checks.Check(
    code="requests",
    invariants="pending-work-is-a-row, exhaustion-is-definite",
    proves="Every pending request can be retried; every other request has ended, and a fulfilled one"
    " has blocks.",
    steps=checks.slices("pools_allocationrequest"),
    find=_find_violations,
)

LEASES = checks.Check(
    code="leases",
    invariants="one-worker-for-a-cluster",
    proves="No lease of a cluster is longer than allowed or without an owner, and every cluster is due"
    " within two hours.",
    find=checks.find_by_statement(f"""
        SELECT 'Cluster ' || c.name || ': ' || CASE
            WHEN (leased_by = '') <> (leased_until IS NULL) THEN 'its lease has no owner or no end'
            WHEN leased_until > ipam_clock() + interval '{leases.SECONDS + 5} seconds'
                THEN 'its lease lasts too long'
            WHEN fence < 0 THEN 'its fence is negative'
            ELSE 'it is not due before '
                || to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') END, NULL::bigint
        FROM pools_connection n JOIN pools_cluster c ON c.id = n.cluster_id
        WHERE (leased_by = '') <> (leased_until IS NULL) OR fence < 0
           OR leased_until > ipam_clock() + interval '{leases.SECONDS + 5} seconds'
           OR NOT paused AND due_at > ipam_clock() + interval '2 hours'
    """),  # noqa: S608  # a constant of the code
)

CHECKS = [KEYS, REQUESTS, LEASES]
