import argparse
import os
from typing import Any

from django.core.management import base

from ipam_site import data_folder, env, tls
from ipam_site.supervisor import processes, run


class Command(base.BaseCommand):
    """`make run`: run all processes of the site as children of this process."""

    help = (
        "Run the site: web server, workers and scheduler, and also PostgreSQL and Redis unless"
        " DATABASE_URL and REDIS_URL are set."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--data", default="", help="data folder (default: IPAM_DATA or var/)")
        parser.add_argument(
            "--workers",
            type=int,
            help="number of web processes (default: 3 for every 2 cores, 2 to 12)",
        )
        parser.add_argument(
            "--tls-cert", default="", help="PEM file with the certificate chain, to serve HTTPS"
        )
        parser.add_argument("--tls-key", default="", help="PEM file with the private key")
        parser.add_argument(
            "--tls-client-ca",
            default="",
            help="PEM file with the CA of client certificates (for admission webhooks)",
        )
        parser.add_argument(
            "--demo",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="load the demo data at the first start into an empty register",
        )

    def handle(self, **options: Any) -> None:
        try:
            run.run(
                run.Options(
                    host=options["host"],
                    port=options["port"],
                    data=data_folder.locate(options["data"]),
                    demo=options["demo"],
                    workers=options["workers"],
                    tls=_tls(options),
                    say=self._say,
                )
            )
        except (data_folder.UnusableError, processes.CannotStartError) as error:
            raise base.CommandError(str(error)) from error

    def _say(self, message: str) -> None:
        # A closed terminal must not end the supervisor before it has stopped its children.
        try:
            self.stdout.write(message)
            self.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _tls(options: dict[str, Any]) -> tls.Files | None:
    paths = (
        options[f"tls_{part}"] or env.text(f"WEB_TLS_{part.upper()}")
        for part in ("cert", "key", "client_ca")
    )
    try:
        return tls.from_paths(*paths)
    except ValueError as error:
        raise base.CommandError(str(error)) from error
