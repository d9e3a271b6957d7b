import shlex
from typing import Any

import psycopg
from django.core.management import base
from django.db import connection

from ipam_site import env
from ipam_site.supervisor import embedded


class Command(base.BaseCommand):
    """`eval "$(manage.py pg_environment)"`: then pg_dump, pg_restore and psql use the register's database.

    The password is in the environment, which other users of the machine cannot read, as command lines.
    """

    help = "Print shell commands that set the environment of pg_dump, pg_restore and psql."
    requires_system_checks: list[str] = []

    def handle(self, **_options: Any) -> None:
        _refuse_pooler()
        clients = None if env.secret("DATABASE_URL") else embedded.client_programs()
        if clients:
            self.stdout.write(f"export PATH={shlex.quote(str(clients))}:$PATH")
        parameters = connection.get_connection_params()
        for option in psycopg.pq.Conninfo.get_defaults():
            name = option.keyword.decode()
            # Not `options`: a backup has no time limits.
            if option.envvar and name != "options" and parameters.get(name) not in {None, ""}:
                value = shlex.quote(str(parameters[name]))
                self.stdout.write(f"export {option.envvar.decode()}={value}")


def _refuse_pooler() -> None:
    """Raise CommandError unless the server itself answers: a pooler tells its clients another process id."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        if cursor.fetchone() != (connection.connection.info.backend_pid,):
            raise base.CommandError(
                "through_a_pooler: DATABASE_URL leads to a pooler, whose connections a backup or restore would"
                " leave with its own search_path and without limits: set it to the URL of PostgreSQL itself,"
                " and DB_POOLER=0."
            )
