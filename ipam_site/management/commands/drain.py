from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import base


class Command(base.BaseCommand):
    """Before a stop (a container's preStop): /readyz is red from now on, requests are still answered."""

    help = "Have balancers send no new requests to the web server of this data folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("--off", action="store_true", help="ready again")

    def handle(self, **options: Any) -> None:
        mark = settings.IPAM_DATA / "draining"
        try:
            if options["off"]:
                mark.unlink(missing_ok=True)
            else:
                mark.touch()
        except OSError as error:
            raise base.CommandError(f"{mark}: {error.strerror}") from error
