"""The advisory locks stand in one module, and SQL files use its numbers."""

import re
from pathlib import Path

from pools.platform import advisory_locks

ROOT = Path(__file__).parents[2]
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
        name: text for name, text in _texts("*.py").items() if re.search(r"pg_\w*advisory_", text)
    }
    assert users
    assert [name for name, text in users.items() if _LITERAL.search(text)] == []
    assert [name for name, text in users.items() if "advisory_locks." not in text] == []
