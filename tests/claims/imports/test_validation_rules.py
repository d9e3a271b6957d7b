"""The statement that validates an import repeats the rules of the address index word for word."""

from __future__ import annotations

from claims.address_index import conflicts
from pools.sql import statements


def _words(text: str) -> str:
    return " ".join(text.split())


def test_the_rules_of_contradiction_are_those_of_the_address_index() -> None:
    statement = _words(statements.parse("claims/validate_import_rows").body)
    assert _words(conflicts.SAME_MAC_CONTRADICTS) in statement
    assert _words(conflicts.SAME_ADDRESS_CONTRADICTS) in statement
