from __future__ import annotations

import datetime
from typing import Any

from django.contrib import auth
from django.core.management import base
from knox import models


class Command(base.BaseCommand):
    help = "Create an API token for a user and print it. It is shown only once."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument(
            "--days", type=int, help="days until the token expires (default: TOKEN_DAYS or 365)"
        )

    def handle(self, **options: Any) -> None:
        user_model = auth.get_user_model()
        try:
            user = user_model.objects.get_by_natural_key(options["user"])
        except user_model.DoesNotExist as error:
            raise base.CommandError(f"There is no user {options['user']!r}.") from error
        self.stdout.write(_token(user, options["days"]))


def _token(user: object, days: int | None) -> str:
    if days is not None and days < 1:
        raise base.CommandError("--days must be at least 1.")
    # A user may have several tokens. knox stores only their digests.
    validity = {} if days is None else {"expiry": datetime.timedelta(days=days)}
    tokens: Any = models.AuthToken.objects
    return str(tokens.create(user, **validity)[1])
