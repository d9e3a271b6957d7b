"""Every statement file stands alone: PostgreSQL prepares it with the types that its header declares."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from pools.sql import statements

ROOT = Path(__file__).parents[2]
PATHS = [f"{file.parts[-4]}/{file.stem}" for file in sorted(ROOT.glob("*/sql/statements/*.sql"))]


@pytest.mark.sample(5)
@pytest.mark.django_db
@pytest.mark.parametrize("path", PATHS)
def test_postgresql_prepares_the_file(path: str) -> None:
    statement = statements.parse(path)
    with connection.cursor() as cursor:
        cursor.execute(statement.prepare("alone"))
        cursor.execute("DEALLOCATE alone")


@pytest.mark.sample(3)
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


_STATEMENT = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE|WITH)\s.*\b(FROM|SET|VALUES)\b", re.DOTALL
)


def formatted_statements(code: str) -> Iterator[int]:
    """The lines of `str.format` and `%` on a text of SQL, given directly or by a name of the module."""
    tree = ast.parse(code)
    texts = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_statement(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"format", "format_map"}:
            text = node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            text = node.left
        else:
            continue
        if _is_statement(text) or (isinstance(text, ast.Name) and text.id in texts):
            yield node.lineno


def _is_statement(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
    else:
        parts = [node.value] if isinstance(node, ast.Constant) else []
    return bool(_STATEMENT.match("".join(part for part in parts if isinstance(part, str))))


@pytest.mark.exhaustive
def test_no_value_is_formatted_into_a_statement() -> None:
    """What varies is a parameter, or a part that psycopg.sql composes."""
    lines = [
        f"{file.relative_to(ROOT)}:{line}"
        for app in ("pools", "claims", "ipam_site")
        for file in sorted((ROOT / app).rglob("*.py"))
        for line in formatted_statements(file.read_text())
    ]
    assert lines == []
