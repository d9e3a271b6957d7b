"""`manage.py ipam VERB`: commands for operators.

Exit status: 0 success; 1 refused, with `code: message`; 2 wrong command line; 3 the command ran and
reports a problem, such as a violation, a leak or no holder.
"""

import sys
from typing import Any

from django.core.management import base

from pools.core import errors
from pools.management.verbs import blocks, upkeep


class Command(base.BaseCommand):
    help = "Query and check the register, reclaim leaked blocks, recover after a restore."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True)
        for name, verb in sorted({**blocks.VERBS, **upkeep.VERBS}.items()):
            subparser = parsers.add_parser(name, help=verb.help, description=verb.help)
            verb.add_arguments(subparser)
            subparser.set_defaults(run=verb.run)

    def handle(self, **options: Any) -> None:
        try:
            status = options["run"](options, self.stdout)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        if status:
            sys.exit(status)
