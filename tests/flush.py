"""Empty the tables after a test with transactions of its own.

Django truncates all tables then, makes content types and permissions anew, and no roles: half a second
of processor time for each such test. Here only tables with rows are truncated, and what the migrations
wrote comes back with its ids.
"""

from collections.abc import Iterable

from django.db import connection, transaction


class Flush:
    """Of the database of this process, which has nothing but what the migrations wrote when this is made."""

    def __init__(self) -> None:
        tables = connection.introspection.django_table_names(
            only_existing=True, include_views=False
        )
        # Not in the database: backups would contain them.
        self._written = {table: rows_of(table) for table in with_rows(tables)}
        self._others = sorted({*tables} - {*self._written})

    def __call__(self) -> None:
        with transaction.atomic():
            dirty = with_rows(self._others)
            dirty += [table for table, rows in self._written.items() if rows_of(table) != rows]
            if not dirty:
                return
            with connection.cursor() as cursor:
                cursor.execute(f"TRUNCATE {', '.join(dirty)} CASCADE")
                for table in self._written.keys() - {*with_rows(self._written)}:
                    with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                        copy.write(b"".join(self._written[table]))


def with_rows(tables: Iterable[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (TABLE {table})" for table in tables)
        )
        return [name for (name,) in cursor.fetchall()]


def rows_of(table: str) -> list[bytes]:
    """Return the rows as lines of COPY, in an order that does not depend on where they are stored."""
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} TO STDOUT") as copy:
        return sorted(b"".join(copy).splitlines(keepends=True))
