"""SQL that matters: one file for each function, trigger set or view, installed by migrations.

A change to a file goes with a migration that runs it again.
"""

from __future__ import annotations

from importlib import resources

from django.db import migrations


def install(*names: str, package: str = __name__) -> list[migrations.RunSQL]:
    """Operations that run the named files; forward only."""
    return [migrations.RunSQL(text(name, package), migrations.RunSQL.noop) for name in names]


def text(name: str, package: str = __name__) -> str:
    """One file."""
    return resources.files(package).joinpath(f"{name}.sql").read_text()
