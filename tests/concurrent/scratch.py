"""A throw-away database with the schema of the test database, and small pools in it."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from tests import factories, servers
from tests.concurrent import checker, doors

# Small, so that every address is used again and again.
POOLS = {"v4": "10.0.0.0/27", "v6": "fd00::/123"}
COOLDOWN = 1  # seconds
_numbers = itertools.count(1)


class Scratch:
    """A database of its own; Django's connection of this process looks at it meanwhile."""

    def __init__(self, name: str) -> None:
        ids = {
            pool: factories.pool(cidr, cooldown=COOLDOWN, name=pool).pk
            for pool, cidr in POOLS.items()
        }
        self.place = doors.Place(name, factories.user().pk, ids)
        self.cooldowns = dict.fromkeys(POOLS, float(COOLDOWN))

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def held(self) -> list[checker.Held]:
        rows = self.run(
            "SELECT b.holder_id, p.name, host(b.cidr) FROM pools_block b"
            " JOIN pools_pool p ON p.id = b.pool_id WHERE b.state = 'held'"
        )
        return [checker.Held(*row) for row in rows]

    def deadlocks(self) -> int:
        rows = self.run("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(rows[0][0])


@contextlib.contextmanager
def database() -> Iterator[Scratch]:
    """Copied from the test database, which must have no open connection but ours."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_scratch_{next(_numbers)}"
    connection.close()
    with _admin() as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(original)
            )
        )
    connection.settings_dict["NAME"] = name
    try:
        yield Scratch(name)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = original
        with _admin() as admin:
            servers.drop(admin, name)


def _admin() -> psycopg.Connection[Any]:
    settings = connection.settings_dict
    return psycopg.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    )
