"""`manage.py check_data`: check the register's data; exit status 1 if something is wrong."""

import sys
from typing import Any

from django.core.management import base

from pools.management import output
from pools.platform import checks


class Command(base.BaseCommand):
    help = "Check the register's data and print each violation; exit status 1 if there is one."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument(
            "--only", nargs="+", default=[], choices=sorted(checks.CHECKS), metavar="CHECK",
            help=f"some of the checks: {', '.join(sorted(checks.CHECKS))}",
        )  # fmt: skip
        output.add_format(parser)

    def handle(self, **options: Any) -> None:
        out: Any = self.stdout
        found = checks.run(options["only"])
        rows = ({"check": name, "violation": text} for name, text in found)
        if output.write(rows, ("check", "violation"), options["output"], out):
            sys.exit(1)
