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
        if sys.argv[1:2] == ["up"]:
            _up()
        else:
            management.execute_from_command_line(sys.argv)
    except utils.OperationalError as error:
        from django.conf import settings

        from ipam_site import database_url

        why = str(error).strip().partition("\n")[0]
        if isinstance(error, database_url.PoolerError):
            sys.exit(why)
        hint = (
            f". {database_url.POOLER_HINTS['pooler']}" if database_url.POOLER_REFUSES in why else ""
        )
        sys.exit(
            f"The database did not answer ({why}). Its address is from {settings.IPAM_SERVERS_FROM}{hint}"
        )


def _up() -> None:
    """Run the supervisor without models, which takes a third of the time and half of the memory."""
    from django.conf import settings

    from ipam_site.management.commands import up

    _ = settings.INSTALLED_APPS  # settings that are invalid end it here
    up.Command().run_from_argv(sys.argv)


if __name__ == "__main__":
    main()
