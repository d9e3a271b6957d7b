"""Every statement file stands alone: PostgreSQL prepares it with the types that its header declares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection

from pools.sql import statements

ROOT = Path(__file__).parents[2]
PATHS = [f"{file.parts[-4]}/{file.stem}" for file in sorted(ROOT.glob("*/sql/statements/*.sql"))]


@pytest.mark.django_db
@pytest.mark.parametrize("path", PATHS)
def test_postgresql_prepares_the_file(path: str) -> None:
    statement = statements.parse(path)
    with connection.cursor() as cursor:
        cursor.execute(statement.prepare("alone"))
        cursor.execute("DEALLOCATE alone")


@pytest.mark.parametrize("path", PATHS)
def test_the_header_says_what_it_returns_and_each_parameter(path: str) -> None:
    statement = statements.parse(path)
    assert statement.description.endswith(".")
    numbers = {int(number) for number in re.findall(r"\$(\d+)", statement.body)}
    assert numbers == set(range(1, len(statement.parameters) + 1))


def test_every_file_is_read_by_a_module() -> None:
    code = "".join(
        file.read_text() for app in ("pools", "claims") for file in (ROOT / app).rglob("*.py")
    )
    assert [path for path in PATHS if f'statements.read("{path}")' not in code] == []
