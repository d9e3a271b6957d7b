"""Somebody with psql who may break every rule, and the checks that find out."""

import collections
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from pools.platform import checks


@pytest.fixture
def psql() -> Callable[..., None]:
    """Run a statement with no trigger of the table in the way."""

    def run(statement: str, *values: Any) -> None:
        table = re.findall(r"(?:UPDATE|FROM|INTO|TABLE) (\w+)", statement)[0]
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(
                "SELECT tgname FROM pg_trigger"
                " WHERE tgrelid = %s::regclass AND tgenabled = 'O' AND NOT tgisinternal",
                [table],
            )
            names = [name for (name,) in cursor.fetchall()]
            for name in names:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
            cursor.execute(statement, values)
            for name in names:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {name}")

    return run


Found = list[tuple[str, str]]
# Nor that the log has no event of what psql did, which tests/security/test_audit_chain.py proves.
RULES = {"constraints", "triggers", "row_history"}


def check(*only: str) -> Found:
    """The violations, as (check, text)."""
    result = list(checks.run(only))
    assert not [text for _, text in result if text.startswith("The check failed")], result
    return result


def check_rows() -> Found:
    """What the checks of rows find, without those of RULES."""
    return check(*(name for name in checks.CHECKS if name not in RULES))


def wrong(violations: Found) -> dict[str, int]:
    """How many violations each check found that found any."""
    return dict(collections.Counter(name for name, _ in violations))


def texts(violations: Found) -> str:
    return "\n".join(text for _, text in violations)
