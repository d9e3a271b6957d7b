"""SQL files stand alone, and locks have numbers of their own."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from pools.platform import advisory_locks
from pools.sql import statements

# Every statement file stands alone: PostgreSQL prepares it with the types that its header
# declares


ROOT = Path(__file__).parents[2]
PATHS = [f"{file.parts[-4]}/{file.stem}" for file in sorted(ROOT.glob("*/sql/statements/*.sql"))]


@pytest.mark.sample(5)
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


# --- The advisory locks stand in one module, and SQL files use its numbers ------------------------
NUMBERS = {name: key for name, key in vars(advisory_locks).items() if name.isupper()}
_LITERAL = re.compile(r"pg_(?:try_)?advisory_\w*lock\w*\(\s*(\d+)")


def _texts(*patterns: str) -> dict[str, str]:
    files = (
        file
        for app in ("pools", "claims", "ipam_site")
        for p in patterns
        for file in (ROOT / app).rglob(p)
    )
    return {
        str(file.relative_to(ROOT)): file.read_text()
        for file in files
        if "migrations" not in file.parts
    }


def test_no_two_locks_share_a_number() -> None:
    assert len(set(NUMBERS.values())) == len(NUMBERS)


def test_sql_files_use_the_number_of_the_pool_lock() -> None:
    literals = {
        (name, int(key)) for name, text in _texts("*.sql").items() for key in _LITERAL.findall(text)
    }
    assert literals == {("pools/sql/rules.sql", advisory_locks.POOL)}


def test_python_takes_no_lock_by_a_number_of_its_own() -> None:
    users = {
        name: text
        for name, text in _texts("*.py").items()
        if re.search(r"pg_\w*advisory_", text) and not name.endswith("/advisory_locks.py")
    }
    assert users
    assert [name for name, text in users.items() if _LITERAL.search(text)] == []
    assert [name for name, text in users.items() if "advisory_locks." not in text] == []
