"""SQL of the VM networks, installed by migrations as in pools/sql."""

from __future__ import annotations

from importlib import resources

from django.db import migrations

from pools import sql


def install(*names: str) -> list[migrations.RunSQL]:
    """Operations that run the named files; forward only."""
    return [migrations.RunSQL(_text(__name__, name), migrations.RunSQL.noop) for name in names]


def event_log() -> str:
    """The view of all events: the branches of pools/sql/event_log.sql, then those of VM networks.

    It stands in a migration of its own after each one of pools that installs that file anew.
    """
    view, _, _ = _text(sql.__name__, "event_log").partition(";")
    return f"{view}\n{_text(__name__, 'event_log')};"


def _text(package: str, name: str) -> str:
    return resources.files(package).joinpath(f"{name}.sql").read_text()
