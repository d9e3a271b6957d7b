"""The statements that find duplicates, and the one that validates an import, have the same rules."""

from __future__ import annotations

import re

import pytest

from pools.sql import statements


def _rules(path: str) -> set[str]:
    """Return what contradicts what: the CASE expressions that compare two index entries."""
    words = " ".join(statements.parse(path).body.split())
    return {
        rule for rule in re.findall(r"CASE (?:(?!CASE ).)*? END", words) if "p.vm <> q.vm" in rule
    }


@pytest.mark.parametrize(
    "path",
    ["duplicates_of_network", "duplicates_of_owners", "validate_import_rows"],
)
def test_the_rules_of_contradiction_are_those_of_the_address_index(path: str) -> None:
    rules = _rules("claims/update_duplicates_of_keys")
    assert len(rules) == 2
    assert _rules(f"claims/{path}") == rules
