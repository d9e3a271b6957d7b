"""SQL of the VM networks, installed by migrations as in pools/sql."""

from __future__ import annotations

from django.db import migrations

from pools import sql


def install(*names: str) -> list[migrations.RunSQL]:
    """Operations that run the named files of this folder; forward only."""
    return sql.install(*names, package=__name__)


def event_log() -> str:
    """The view of all events: the branches of pools/sql/event_log.sql, then those of VM networks.

    It stands in a migration of its own after each one of pools that installs that file anew.
    """
    view, _, _ = sql.text("event_log").partition(";")
    return f"{view}\n{sql.text('event_log', __name__)};"
