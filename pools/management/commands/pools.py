"""`manage.py pools import FILE --cluster NAME`: import CiliumPodIPPools and Helm values."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management import base

from pools.core import errors
from pools.models import Cluster
from pools.platform import events
from pools.register import manifests


class Command(base.BaseCommand):
    help = "Import pools from a YAML or JSON file atomically, with a report for each object."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verb = verbs.add_parser("import", help="create or change the pools that a file describes")
        verb.add_argument("file", help="path of the file, or - for standard input")
        verb.add_argument("--cluster", required=True, help="name of the cluster")
        verb.add_argument(
            "--dry-run", action="store_true", help="show the report without changing anything"
        )
        verb.add_argument("--tag", action="append", default=[], help="tag of all pools; repeat it")
        verb.add_argument("--owner", default="", help="owner of all pools")
        verb.add_argument(
            "--field",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="custom field of all pools; repeat it",
        )
        verb.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise base.CommandError(f"There is no cluster {options['cluster']}.")
        author = events.Author(actor="manage.py", source="command")
        try:
            reports = manifests.apply_manifests(
                _read(options["file"]),
                cluster,
                author=author,
                dry_run=options["dry_run"],
                attributes=_attributes(options),
            )
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        if options["json"]:
            self.stdout.write(json.dumps([asdict(report) for report in reports], indent=2))
        else:
            for report in reports:
                self.stdout.write(_line(report))
        if any(report.result == "refused" for report in reports):
            raise base.CommandError("No pool was imported: correct the refused objects.")


def _attributes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the tags, the owner and the custom fields that were given."""
    custom_fields = dict(text.partition("=")[::2] for text in options["field"])
    values = {"tags": options["tag"], "owner": options["owner"], "custom_fields": custom_fields}
    return {name: value for name, value in values.items() if value}


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise base.CommandError(f"{name}: {error.strerror}") from error


def _line(report: manifests.ManifestReport) -> str:
    name = report.name or f"document {report.document + 1}"
    lines = [f"{report.result:<10} {name}"]
    lines += [f"           {p.field}: {p.message} ({p.code})" for p in report.problems]
    return "\n".join(lines)
