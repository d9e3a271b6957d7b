"""SQL of the VM networks, installed by migrations as in pools/sql."""

from __future__ import annotations

from importlib import resources

from django.db import migrations


def install(*names: str) -> list[migrations.RunSQL]:
    """Operations that run the named files; forward only."""
    folder = resources.files(__name__)
    return [
        migrations.RunSQL(folder.joinpath(f"{name}.sql").read_text(), migrations.RunSQL.noop)
        for name in names
    ]
