"""What the planner knows of tables when a cluster comes that was not there when they were looked at.

So it is for a new cluster in a register of many: autovacuum looks at a table when a tenth of it changed.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from pools.models import Now, ObservedObject
from tests import factories

OLD = 2000


def another_cluster(*kinds: str) -> None:
    """The only one that was there when the tables were looked at last."""
    other = factories.cluster()
    ObservedObject.objects.bulk_create(
        ObservedObject(
            cluster=other, kind=kind, api_version="v1", name=f"old-{n}", uid=f"{kind}-{n}",
            resource_version=str(n), manifest={}, first_seen_at=Now(), changed_at=Now(),
        )
        for kind in kinds
        for n in range(OLD)
    )  # fmt: skip
    pool = factories.pool("172.16.0.0/12", category="pod", within=other, mask=24)
    factories.ask(pool, *(factories.holder(f"old-{n}", kind="node") for n in range(OLD)))
    sql("ANALYZE")


def sql(statement: str) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else ()


def read() -> dict[str, int]:
    """The rows, and the entries of indexes, that this transaction has read so far, by table."""
    return dict(
        sql(
            "SELECT relname, COALESCE(seq_tup_read, 0) + COALESCE(idx_tup_fetch, 0)"
            " FROM pg_stat_xact_user_tables WHERE relname ~ '^(pools|claims)_'"
        )
    )


def since(before: dict[str, int]) -> dict[str, int]:
    """What was read since, by table; only of those that were read."""
    now = read().items()
    return {name: more for name, rows in now if (more := rows - before.get(name, 0))}
