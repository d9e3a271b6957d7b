"""SQL objects of the VM networks, frozen and installed as those of pools/sql."""

from __future__ import annotations

from pools import sql

BEFORE_TABLES = ()


def read_objects() -> dict[str, str]:
    """Return the text of each SQL object, in the order of installation."""
    names = ("memberships", "contradictions", "launchers", "workload_comparison", "storage")
    own = {name: sql.text(name, __name__) for name in names}
    # The tables of this app have triggers of django-pgtrigger too, whose migrations overwrite its function.
    return own | {"event_log": event_log(), "pgtrigger": sql.text("pgtrigger")}


def event_log() -> str:
    """Return the view of all events: the branches of pools/sql/event_log.sql, then those of VM networks."""
    view, _, _ = sql.text("event_log").partition(";")
    return f"{view}\n{sql.text('event_log', __name__)};\n"
