"""Checks of pools, their CIDRs and their reserved ranges."""

from __future__ import annotations

from pools.platform.checks import checks
from pools.sql import statements

CIDRS = checks.Check(
    code="cidrs",
    invariants="cidrs-never-overlap, canonical-addresses",
    proves="The CIDRs of an address space do not overlap, are not smaller than a block of their pool,"
    " and belong to the address space of their pool and its cluster.",
    find=checks.find_by_statement(statements.read("pools/check_cidrs")),
)

RANGES = checks.Check(
    code="reserved_ranges",
    invariants="block-lies-in-one-cidr, cidrs-never-overlap, canonical-addresses",
    proves="Every reserved range has two addresses in order, is inside its CIDR, belongs to the same"
    " pool, and overlaps no other range of the CIDR.",
    find=checks.find_by_statement(statements.read("pools/check_reserved_ranges")),
)

CHECKS = [CIDRS, RANGES]
