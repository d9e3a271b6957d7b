import secrets
from typing import Any

from django.apps import apps
from django.contrib import auth
from django.core import management
from django.core.management import base
from django.db import connection

from ipam_site import database_url


class Command(base.BaseCommand):
    """Prepare a new database. All steps are idempotent:

    1. Run the migrations.
    2. At the first start (no administrator exists), load the demo data into an empty register.
    3. Create the administrator `admin`, whose existence marks the first start as done. stdout has
       only the generated password, all other output goes to stderr.
    """

    help = (
        "Run migrations; at the first start also create the user admin (and print the password) and"
        " the demo data."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="load the demo data at the first start"
        )

    def handle(self, **options: Any) -> None:
        database_url.require_limits(connection)
        management.call_command("migrate", interactive=False, stdout=self.stderr)
        users = auth.get_user_model().objects
        if users.filter(is_superuser=True).exists():
            return
        if options["demo"] and "demo" in management.get_commands() and _register_is_empty():
            management.call_command("demo", stdout=self.stderr)
        password = secrets.token_urlsafe(12)
        users.create_superuser(username="admin", password=password)
        self.stdout.write(password)


def _register_is_empty() -> bool:
    return not apps.get_model("pools", "Cluster").objects.exists()
