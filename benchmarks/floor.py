"""The floors: what PostgreSQL itself does on the same server in the same run.

The floor's table has the columns, indexes and constraints of `pools_block`, no triggers.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from django.conf import settings
from django.db import connection

from ipam_site.supervisor import embedded

TABLE = "benchmark_floor"

_INSERT = f"""
    INSERT INTO {TABLE} (pool_id, space_id, category, family, cidr, state, withheld, holder_kind,
        holder_id, holder_uid, org, env, allocated_at)
    SELECT 1, 1, 'instance', 4, set_masklen('10.0.0.0'::inet + n, 32)::cidr, 'held', false,
        'instance', 'i-' || n, '', 'org', 'env', now()
    FROM (SELECT nextval('{TABLE}_number') AS n FROM generate_series(1, ROWS)) AS s
"""  # noqa: S608  # no value is formatted in


def make() -> None:
    """An empty table like `pools_block`."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        cursor.execute(f"DROP SEQUENCE IF EXISTS {TABLE}_number")
        cursor.execute(f"CREATE TABLE {TABLE} (LIKE pools_block INCLUDING ALL)")
        cursor.execute(f"CREATE SEQUENCE {TABLE}_number CACHE 1")


def insert(rows: int = 1) -> None:
    """One INSERT of so many rows, in a transaction of its own."""
    with connection.cursor() as cursor:
        cursor.execute(_INSERT.replace("ROWS", str(rows)))


def one_insert(_client: int, _number: int) -> None:
    """A one-row INSERT through Django's connection."""
    insert()


def pgbench(connections: int, seconds: float) -> float:
    """One-row INSERTs a second by pgbench over TCP with prepared statements."""
    make()
    database = settings.DATABASES["default"]
    binary = embedded.programs(embedded.Account(os.geteuid(), os.getegid()))[0] / "pgbench"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(" ".join(_INSERT.replace("ROWS", "1").split()) + ";\n")
        script.flush()
        done = subprocess.run(
            [
                str(binary), "-n", "-M", "prepared", "-c", str(connections),
                "-j", str(min(4, connections)), "-T", str(max(1, round(seconds))),
                "-f", script.name, "-h", str(database["HOST"]), "-p", str(database["PORT"]),
                "-U", str(database["USER"]), str(database["NAME"]),
            ],
            env={"PGPASSWORD": str(database["PASSWORD"]), "PATH": str(Path(binary).parent)},
            capture_output=True,
            text=True,
            check=True,
        )  # fmt: skip
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if found is None:
        raise RuntimeError(done.stdout + done.stderr)
    return float(found.group(1))
