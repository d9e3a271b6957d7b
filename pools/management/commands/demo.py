from typing import Any

from django.conf import settings
from django.core.management import base

from pools.platform.conditions import evaluation
from pools.register.demo import demo


class Command(base.BaseCommand):
    help = "Load the demo fleet, or remove it with --clear. Loading it twice changes nothing."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument(
            "--clear",
            action="store_true",
            help="remove the demo fleet with its blocks and events",
        )

    def handle(self, **options: Any) -> None:
        if options["clear"]:
            removed = demo.clear()
            self.stdout.write("Removed the demo fleet." if removed else "There is no demo fleet.")
            return
        if not settings.IPAM_ALLOW_DEMO:
            raise base.CommandError(
                "The demo fleet is not loaded with production settings. Set IPAM_ALLOW_DEMO=1 to"
                " allow it."
            )
        loaded = demo.load()
        evaluation.evaluate()  # now, so that the first page that somebody opens shows the alerts
        self.stdout.write(
            "Loaded the demo fleet." if loaded else "The demo fleet is already loaded."
        )
