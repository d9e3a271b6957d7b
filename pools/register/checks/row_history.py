"""Compare rows with their last events: a change with disabled triggers leaves a row without an event.

Events that the retention has deleted do not matter: it deletes the events of a row oldest first, so
that the last event is kept longest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pghistory

from pools.models import BlockEvent
from pools.platform import events
from pools.platform.checks import checks
from pools.sql import statements

# The check `history` (blocks.py) compares in the other direction, from the row to its event.
BLOCKS = checks.Check(
    code="event_blocks",
    invariants="every-change-has-an-event, no-reuse-while-cooling",
    proves="Every block that is held or cooling by its last event is held or cooling in its row too.",
    steps=checks.slices("pools_blockevent", key="pgh_id"),
    find=checks.find_by_statement(statements.read("pools/check_row_history")),
)


def _tables(after: str | None) -> Iterator[tuple[str, str]]:
    names = sorted(name for name, log in events.event_models().items() if _has_every_change(log))
    return ((name, name) for name in names if name > (after or ""))


def _has_every_change(log: Any) -> bool:
    """Return True if the log has an event for each change of its columns."""
    recorded = {
        type(tracker)
        for tracker in log.pgh_trackers
        if isinstance(tracker, pghistory.InsertEvent | pghistory.DeleteEvent)
        and tracker.condition is None
    }
    return log is not BlockEvent and {pghistory.InsertEvent, pghistory.DeleteEvent} <= recorded


def _find_violations(name: str) -> Iterator[checks.Violation]:
    for text, _ in checks.rows(_statement(events.event_models()[name])):
        yield checks.Violation(text)


def _statement(log: Any) -> str:
    """Return the statement that finds rows that differ from their last events.

    A row without any event is reported if its id is higher than the id of a row whose creation is in
    the log: rows with lower ids may be older than the log or the retention.
    """
    table = log.pgh_tracked_model._meta
    columns = [field.column for field in log._meta.concrete_fields if field.name[:4] != "pgh_"]
    differing = ", ".join(
        f"""CASE WHEN t."{column}" IS DISTINCT FROM e."{column}" THEN '{column}' END"""
        for column in columns
    )
    key, title = f't."{table.pk.column}"', table.verbose_name.replace("'", "''")
    return f"""
        WITH last AS (SELECT pgh_obj_id, max(pgh_id) AS pgh_id FROM {log._meta.db_table} GROUP BY 1),
        first AS (SELECT min(pgh_obj_id) AS id FROM {log._meta.db_table}
            WHERE pgh_label = 'created' AND pgh_created_at > (
                SELECT COALESCE(max(newest_at) + interval '1 day', '-infinity')
                FROM pools_auditsegment WHERE purged_at IS NOT NULL))
        SELECT 'The {title} ' || id || ': ' || why, NULL FROM (
            SELECT COALESCE({key}, l.pgh_obj_id) AS id, CASE
                WHEN e.pgh_id IS NULL THEN
                    CASE WHEN {key} > (SELECT id FROM first) THEN 'it has no event' END
                WHEN {key} IS NULL THEN
                    CASE WHEN e.pgh_label <> 'deleted' THEN 'it was deleted without an event' END
                WHEN e.pgh_label = 'deleted' THEN 'it exists, but its last event is its deletion'
                ELSE 'it differs from its last event: ' || NULLIF(concat_ws(', ', {differing}), '')
                END AS why
            FROM {table.db_table} t FULL JOIN (last l JOIN {log._meta.db_table} e USING (pgh_id))
                ON l.pgh_obj_id = {key}
        ) d WHERE why IS NOT NULL ORDER BY id
    """  # noqa: S608  # names of tables and columns of the models


ROWS = checks.Check(
    code="row_history",
    invariants="every-change-has-an-event",
    proves="Every row whose changes are recorded as events (pools, CIDRs, reserved ranges, clusters,"
    " connections, webhooks, networks, entries, claims, memberships, …) agrees with its last event.",
    steps=_tables,
    find=_find_violations,
)

CHECKS = [BLOCKS, ROWS]
