#!/usr/bin/env python3
"""Run a management command; without DATABASE_URL it finds the servers of a running `make run`."""

import os
import pathlib
import sys

_PYTHON = pathlib.Path(__file__).resolve().parent / ".venv/bin/python"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
    try:
        from django.core import management
    except ModuleNotFoundError:
        # Called with the system's Python: the one that `make` set up has Django.
        if not _PYTHON.exists() or sys.prefix == str(_PYTHON.parent.parent):
            raise
        os.execv(_PYTHON, [str(_PYTHON), *sys.argv])  # noqa: S606
    from django.db import utils

    try:
        management.execute_from_command_line(sys.argv)
    except utils.OperationalError as error:
        sys.exit(f"The database did not answer: {error}\n{_where_it_was_looked_for()}")


def _where_it_was_looked_for() -> str:
    from django.conf import settings

    return f"Looked for it in: {settings.IPAM_SERVERS_FROM}."


if __name__ == "__main__":
    main()
