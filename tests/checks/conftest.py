"""Somebody with psql who may break every rule, and the checks that find out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from pools.platform import events
from pools.platform.checks import reports, runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pools.models import CheckRun

BY = events.Author(actor="tester", source="command")


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


def check(**asked: Any) -> CheckRun:
    """A run of the checks."""
    done = runs.execute(runs.request_run(author=BY, **asked).pk)
    assert done is not None
    return done


def wrong(run: CheckRun) -> dict[str, int]:
    """How many violations each check found that found any."""
    for one in run.report:
        assert one["state"] != reports.FAILED, one
    return {one["code"]: one["count"] for one in run.report if one["count"]}


def repaired(run: CheckRun) -> dict[str, int]:
    return {one["code"]: one["repaired"] for one in run.report if one["repaired"]}


def texts(run: CheckRun) -> str:
    return "\n".join(one["text"] for entry in run.report for one in entry["examples"])
