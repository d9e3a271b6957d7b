from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import base

from pools.register.demo import demo


class Command(base.BaseCommand):
    help = "Load the demo fleet, or remove it with --clear. Loading it twice changes nothing."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument(
            "--clear", action="store_true", help="remove it, with its blocks and its events"
        )

    def handle(self, **options: Any) -> None:
        if options["clear"]:
            found = demo.clear()
            self.stdout.write("The demo fleet is gone." if found else "There is no demo fleet.")
            return
        if not settings.IPAM_ALLOW_DEMO:
            raise base.CommandError(
                "These are production settings: the demo fleet is not loaded. IPAM_ALLOW_DEMO=1"
                " allows it."
            )
        loaded = demo.load()
        self.stdout.write("The demo fleet is loaded." if loaded else "The demo fleet was there.")
