import datetime
from typing import Any

from django.contrib import auth
from django.core.management import base

from pools.core import errors
from pools.models import TokenLevel
from pools.platform.rest import token_scopes


class Command(base.BaseCommand):
    help = "Create an API token for a user and print it. It is shown only once."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument(
            "--days", type=int, help="days until the token expires (default: TOKEN_DAYS or 365)"
        )
        parser.add_argument("--level", choices=TokenLevel.values, default=TokenLevel.ADMINISTER)
        parser.add_argument(
            "--limited-to", default="", help="one cluster (prod) or one pool (prod/green-pool)"
        )
        parser.add_argument("--description", default="", help="what uses the token")

    def handle(self, **options: Any) -> None:
        user_model = auth.get_user_model()
        try:
            user = user_model.objects.get_by_natural_key(options["user"])
        except user_model.DoesNotExist as error:
            raise base.CommandError(f"There is no user {options['user']!r}.") from error
        days = options["days"]
        if days is not None and not 1 <= days <= token_scopes.LONGEST_VALIDITY:
            raise base.CommandError(f"--days must be 1 to {token_scopes.LONGEST_VALIDITY}.")
        if len(options["description"]) > 200:
            raise base.CommandError("--description has at most 200 characters.")
        try:
            subject = token_scopes.parse_subject(options["limited_to"], field="--limited-to")
        except errors.InvalidInput as error:
            raise base.CommandError(f"--limited-to: {error}") from error
        # A user may have several tokens. knox stores only their digests.
        token = token_scopes.create_token(
            user,
            author=token_scopes.COMMAND,
            validity=None if days is None else datetime.timedelta(days=days),
            level=options["level"],
            subject=subject,
            description=options["description"],
        )
        self.stdout.write(token)
