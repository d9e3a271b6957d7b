"""`manage.py second_factor reset USER`: remove the second factor of somebody who lost it."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management import base

from pools.platform import events, second_factor

_AUTHOR = events.Author(actor="manage.py", source="command")


class Command(base.BaseCommand):
    help = (
        "Remove the second factor of an account, which then signs in with its password alone, and may"
        " have to enrol a new one."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("action", choices=["reset"])
        parser.add_argument("user", help="name of the user")

    def handle(self, *, user: str, **_options: Any) -> None:
        account = User.objects.filter(username=user).first()
        if account is None:
            raise base.CommandError(f"There is no user {user}.")
        if not second_factor.remove(account, author=_AUTHOR):
            raise base.CommandError(f"{user} has no second factor.")
        self.stdout.write(f"The second factor of {user} was removed.")
