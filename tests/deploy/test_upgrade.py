"""An upgrade from the last release: nothing is lost, nothing waits for long, nothing old is missed.

`make release-schema REF=…` says which release is the last one (docs/how-to/upgrade.md).
"""

from __future__ import annotations

import re

import psycopg
import pytest
from django.db import connection as fresh
from django.db.migrations import loader

from tests.deploy import catalog, conftest, release

# What Django writes anew after each migration.
_OF_DJANGO = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "auth_group_permissions",
}


def _declared() -> set[str]:
    """What migrations since the last release say that they take away (`contract = [...]`)."""
    known = loader.MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
    return {
        name
        for key, migration in known.items()
        if key not in release.applied()
        for name in getattr(migration, "contract", [])
    }


_NOISE = re.compile(r"::(?:character varying|\w+)(?:\[\])?|[()\s]")


def _flat(found: dict[str, str]) -> dict[str, str]:
    """A dump that was read again has other parentheses and casts: (a AND b) AND c is a AND b AND c."""
    return {name: _NOISE.sub("", definition) for name, definition in found.items()}


def test_web_requests_are_answered_meanwhile(upgrade: conftest.Upgrade) -> None:
    assert upgrade.worked
    assert upgrade.refused == []


def test_every_row_is_still_there(upgrade: conftest.Upgrade) -> None:
    known = {
        table: names
        for table, names in conftest.columns(upgrade.before).items()
        if table not in _OF_DJANGO and f"relation {table}" not in _declared()
    }
    gone = {name.removeprefix("column ") for name in _declared()}
    kept = {
        table: [each for each in names if f"{table}.{each}" not in gone]
        for table, names in known.items()
    }
    changed = {table for table in kept if kept[table] != known[table]}
    with psycopg.connect(upgrade.url) as connection:
        now = conftest.contents(connection, kept)
    # What the traffic wrote is an update to the same values, and an event.
    assert {
        table for table in kept if table not in changed and now[table] != upgrade.rows[table]
    } <= {"pools_blockevent"}


def test_what_the_old_code_uses_is_still_there(upgrade: conftest.Upgrade) -> None:
    missed = catalog.contraction(upgrade.before, upgrade.after)
    assert set(missed) - _declared() == set(), "expand first, contract a release later"


@pytest.mark.django_db
def test_an_upgraded_schema_is_a_new_one(upgrade: conftest.Upgrade) -> None:
    fresh.ensure_connection()
    new = catalog.read(fresh.connection)
    for kind, found in new.items():
        assert _flat(upgrade.after[kind]) == _flat(found), kind


def test_migrating_again_changes_nothing(upgrade: conftest.Upgrade) -> None:
    release.command(release.PROJECT, upgrade.url, "migrate", "--check", "--no-input")
