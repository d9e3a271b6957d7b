"""The demo fleet as rows: made once in a process, then copied, which takes a tenth of the time."""

from django.db import connection, transaction

from pools.register.demo import demo
from tests import flush


def load() -> None:
    """Write the demo fleet into an empty register; its times are those of when the process made it."""
    if _snapshots and _may_copy():
        _snapshots[0].restore()
        return
    assert demo.load()
    if not _snapshots:
        _snapshots.append(Snapshot())


def _may_copy() -> bool:
    """Return False on a server of others, whose role is an ordinary one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_parameter_privilege('session_replication_role', 'SET')")
        return bool(cursor.fetchone()[0])


class Snapshot:
    """The rows of all tables, and where their sequences are."""

    def __init__(self) -> None:
        tables = connection.introspection.django_table_names(
            only_existing=True, include_views=False
        )
        self._rows = {table: b"".join(flush.rows_of(table)) for table in flush.with_rows(tables)}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), last_value"
                " FROM pg_sequences WHERE last_value IS NOT NULL"
            )
            self._sequences = cursor.fetchall()

    def restore(self) -> None:
        """Write the rows as they are, without what triggers would add to them."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(f"TRUNCATE {', '.join(self._rows)} CASCADE")
            for table, rows in self._rows.items():
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(rows)
            cursor.executemany("SELECT setval(%s::regclass, %s)", self._sequences)
            cursor.execute("SET LOCAL session_replication_role = origin")


_snapshots: list[Snapshot] = []  # at most one
