"""Checks of pools, their CIDRs and their reserved ranges."""

from __future__ import annotations

from pools.platform.checks import checks
from pools.sql import statements

_CIDRS = """
    SELECT c.pool_id, c.cidr, p.name, CASE
        WHEN c.space_id <> p.space_id THEN 'it is in another address space than its pool'
        WHEN masklen(c.cidr) > COALESCE(CASE family(c.cidr) WHEN 4 THEN p.mask_size_v4
            ELSE p.mask_size_v6 END, -1) THEN 'it is smaller than a block of its pool'
        WHEN c.cidr <<= '::ffff:0:0/96'::cidr THEN 'it is an IPv4-mapped IPv6 address'
        WHEN c.next <<= c.cidr THEN 'it overlaps ' || c.next
        END AS why
    FROM (SELECT *, lead(cidr) OVER (PARTITION BY space_id ORDER BY cidr) AS next
          FROM pools_poolcidr) c JOIN pools_pool p ON p.id = c.pool_id
  UNION ALL
    SELECT p.id, NULL, p.name, 'the pool is in the address space of another cluster'
    FROM pools_pool p JOIN pools_addressspace s ON s.id = p.space_id
    WHERE s.cluster_id <> p.cluster_id
"""
CIDRS = checks.Check(
    code="cidrs",
    invariants="cidrs-never-overlap, canonical-addresses",
    proves="The CIDRs of an address space do not overlap, are not smaller than a block of their pool,"
    " and belong to the address space of their pool and its cluster.",
    find=checks.find_by_statement(
        f"SELECT COALESCE('CIDR ' || cidr || ' of ', '') || 'pool ' || name || ': ' || why, pool_id"  # noqa: S608
        f" FROM ({_CIDRS}) c WHERE why IS NOT NULL"
    ),
)

RANGES = checks.Check(
    code="reserved_ranges",
    invariants="block-lies-in-one-cidr, cidrs-never-overlap, canonical-addresses",
    proves="Every reserved range has two addresses in order, is inside its CIDR, belongs to the same"
    " pool, and overlaps no other range of the CIDR.",
    find=checks.find_by_statement(statements.read("pools/check_reserved_ranges")),
)

CHECKS = [CIDRS, RANGES]
