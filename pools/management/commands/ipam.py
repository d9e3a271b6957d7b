"""`manage.py ipam VERB`: the operator's tools.

Exit status: 0 done; 1 refused, as `code: message`; 2 a wrong command line; 3 it looked, and the answer
is bad or nobody.
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
    help = "Look at the register, prove it, reclaim what leaked."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True)
        for found in pkgutil.iter_modules(verbs.__path__):
            module = importlib.import_module(f"{verbs.__name__}.{found.name}")
            verb = parsers.add_parser(found.name, help=module.HELP, description=module.HELP)
            module.add_arguments(verb)
            verb.set_defaults(run=module.run)

    def handle(self, **options: Any) -> None:
        try:
            status = options["run"](options, self.stdout)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        if status:
            sys.exit(status)
