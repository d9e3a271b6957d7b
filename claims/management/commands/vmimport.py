"""`manage.py vmimport FILE --network N`: import VMs from a file, as a draft or with a commit."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.core.management import base

from claims.imports import drafts, mapping
from claims.imports.drafts import Upload
from claims.imports.mapping import ImportOptions
from claims.models import Network, VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.core import errors
from pools.models import Cluster
from pools.models.imports import ImportStatus, RowStatus
from pools.platform import documents, events
from pools.platform.imports import worker

BAD = 2  # exit code: rows are in conflict or refused
_SHOWN = 100  # bad rows
_LONGEST = 100  # characters of a reason


class Command(base.BaseCommand):
    help = (
        "Import VMs from a file (RVTools, MTV inventory, PowerCLI, the template, IPPool or IPAMClaim"
        " YAML, a list). The import is a draft with a status for each row; --commit writes it."
        " Exits with 1 if the file cannot be read, and with 2 if rows are in conflict or invalid"
        " (without --skip-bad nothing is written then)."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("file", help="a file, or - for standard input")
        parser.add_argument(
            "--network", help="id or logical name of the network for rows without a mapping"
        )
        parser.add_argument(
            "--cluster", help="name of the cluster, if the network's name is not unique"
        )
        parser.add_argument("--namespace", default="", help="namespace of rows without one")
        parser.add_argument(
            "--mapping", default="{}", help='JSON: {"port group": {"network": id, "namespace": ""}}'
        )
        parser.add_argument(
            "--target", choices=ImportTarget.values, default=ImportTarget.IPPOOL.value
        )
        parser.add_argument(
            "--commit", action="store_true", help="commit the import, all rows or none"
        )
        parser.add_argument("--skip-bad", action="store_true", help="commit all but the bad rows")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, **options: Any) -> None:
        try:
            vm_import = self._import(options)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        bad = _bad(vm_import)
        if options["json"]:
            self.stdout.write(json.dumps(_report(vm_import, bad), indent=2))
        else:
            self._print_import(vm_import, bad)
        if vm_import.status == ImportStatus.FAILED:
            raise base.CommandError(f"{vm_import.error_code}: {vm_import.error}")
        if vm_import.error_code:
            raise base.CommandError(f"Nothing was written. {vm_import.error}", returncode=BAD)
        if bad:
            raise base.CommandError("Rows are in conflict or invalid.", returncode=BAD)

    def _import(self, options: dict[str, Any]) -> VMImport:
        port_groups = documents.load_json(options["mapping"].encode())
        network = _network(options["network"], options["cluster"])
        cluster = network.cluster if network else _cluster(options["cluster"])
        import_options = ImportOptions(
            cluster,
            target=options["target"],
            network=network,
            namespace=options["namespace"],
            mapping=port_groups,
            commit=options["commit"],
            skip_bad=options["skip_bad"],
        )
        upload = Upload("file", io.BytesIO(_read(options["file"])), Path(options["file"]).name)
        author = events.Author(actor="manage.py", source="command")
        vm_import = drafts.create(upload, import_options, author=author)
        worker.process_import(vm_import.pk)
        return drafts.IMPORTS.get(vm_import.pk)

    def _print_import(self, vm_import: VMImport, bad: Sequence[VMRow]) -> None:
        self.stdout.write(f"{vm_import} ({vm_import.format}): {vm_import.get_status_display()}")
        for status, count in vm_import.counts.items():
            self.stdout.write(f"  {status:<10} {count:>7}")
        for reason, count in vm_import.left_out.items():
            self.stdout.write(f"  left out   {count:>7}  {reason}")
        for note in vm_import.notes:
            self.stdout.write(f"  {note['message']}.")
        if count := mapping.without_namespace(vm_import):
            self.stdout.write(f"  {count} rows have no namespace; --namespace gives them one.")
        if not bad:
            return
        lines = [("row", "VM", "MAC", "addresses", "status", "reasons"), *map(_line, bad[:_SHOWN])]
        self.stdout.write("")
        for line in _table(lines):
            self.stdout.write(line)
        if len(bad) > _SHOWN:
            self.stdout.write(f"and {len(bad) - _SHOWN} more")


def _bad(vm_import: VMImport) -> list[VMRow]:
    statuses = (RowStatus.CONFLICT, RowStatus.INVALID)
    return list(vm_import.rows.filter(status__in=statuses).order_by("number"))


def _line(row: VMRow) -> tuple[str, ...]:
    reasons = "; ".join(reason["message"] for reason in row.reasons)
    return (
        str(row.line),
        row.vm or row.source_vm or "-",
        row.mac or row.source_mac or "-",
        ", ".join(row.ips or row.source_ips) or "-",
        row.status,
        reasons if len(reasons) <= _LONGEST else f"{reasons[: _LONGEST - 1]}…",
    )


def _table(lines: Iterable[tuple[str, ...]]) -> list[str]:
    cells = list(lines)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = (map(str.ljust, line, widths) for line in cells)
    return ["  ".join(line).rstrip() for line in padded]


def _report(vm_import: VMImport, bad: Sequence[VMRow]) -> dict[str, Any]:
    return {
        "id": vm_import.pk,
        "format": vm_import.format,
        "status": vm_import.status,
        "counts": vm_import.counts,
        "left_out": vm_import.left_out,
        "notes": vm_import.notes,
        "error": {"code": vm_import.error_code, "message": vm_import.error}
        if vm_import.error_code
        else None,
        "bad_rows": [
            {"line": row.line, "vm": row.vm or row.source_vm, "mac": row.mac or row.source_mac}
            | {"ips": row.ips or row.source_ips, "status": row.status, "reasons": row.reasons}
            for row in bad
        ],
    }


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise base.CommandError(f"{name}: {error.strerror}") from error
    except ValueError as error:
        raise base.CommandError(f"{name!r} is not a file name") from error


def _cluster(name: str | None) -> Cluster:
    if not name:
        raise base.CommandError(
            "Specify --network, or --cluster with a mapping of its port groups."
        )
    cluster = Cluster.objects.filter(name=name).first() if "\0" not in name else None
    if cluster is None:
        raise base.CommandError(f"The cluster {name} does not exist.")
    return cluster


def _network(name: str | None, cluster: str | None) -> Network | None:
    if not name:
        return None
    rows = Network.objects.select_related("cluster")
    if cluster:
        rows = rows.filter(cluster=_cluster(cluster))
    by_id = name.isascii() and name.isdigit() and len(name) < 18
    networks = list(rows.filter(pk=int(name))) if by_id else []
    if "\0" not in name:
        networks = networks or list(rows.filter(name=name)[:2])
    if len(networks) != 1:
        reason = (
            "several clusters have this network: specify --cluster"
            if networks
            else "no such network"
        )
        raise base.CommandError(f"{name}: {reason}.")
    return networks[0]
