#!/usr/bin/env python3
"""Run a management command; without DATABASE_URL it finds the servers of a running `make run`."""

import os
import pathlib
import sys

_PYTHON = pathlib.Path(__file__).resolve().parent / ".venv/bin/python"


def main() -> None:
    if sys.argv[1:2] == ["worker_health"]:
        # A probe runs every few seconds: it does without Django.
        from ipam_site import worker_health

        sys.exit(worker_health.main(sys.argv[2:]))
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
        from django.conf import settings

        from ipam_site import database_url

        why = str(error).strip().partition("\n")[0]
        hint = f". {database_url.POOLER_HINT}" if database_url.POOLER_REFUSES in why else ""
        sys.exit(
            f"The database did not answer ({why}). Its address is from {settings.IPAM_SERVERS_FROM}{hint}"
        )


if __name__ == "__main__":
    main()
