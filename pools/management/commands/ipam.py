"""`manage.py ipam VERB`: commands for operators.

Exit status: 0 success; 1 refused, with `code: message`; 2 wrong command line; 3 the command ran and
reports a problem, such as a violation, a leak or no holder.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any

from django.core.management import base

from pools.core import errors
from pools.management import verbs


class Command(base.BaseCommand):
    help = "Query and check the register, reclaim leaked blocks, recover after a restore."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True)
        for verb_module in pkgutil.iter_modules(verbs.__path__):
            module = importlib.import_module(f"{verbs.__name__}.{verb_module.name}")
            verb = parsers.add_parser(verb_module.name, help=module.HELP, description=module.HELP)
            module.add_arguments(verb)
            verb.set_defaults(run=module.run)

    def handle(self, **options: Any) -> None:
        try:
            status = options["run"](options, self.stdout)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        if status:
            sys.exit(status)
