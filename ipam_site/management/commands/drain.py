from typing import Any

from django.conf import settings
from django.core.management import base


class Command(base.BaseCommand):
    """For a container's preStop hook: /readyz fails from now on, requests are still answered."""

    help = "Make /readyz fail, so that load balancers send no new requests to this web server."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("--off", action="store_true", help="make /readyz succeed again")

    def handle(self, **options: Any) -> None:
        marker = settings.IPAM_DATA / "draining"
        try:
            if options["off"]:
                marker.unlink(missing_ok=True)
            else:
                marker.touch()
        except OSError as error:
            raise base.CommandError(f"{marker}: {error.strerror}") from error
