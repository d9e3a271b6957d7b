"""`manage.py cluster`: register, connect, show, change, test and remove clusters.

No subcommand prints a credential. A refusal is `code: message` with exit status 1; `test` also exits
with 1 if a full sync run would fail.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from functools import partial
from ipaddress import IPv6Network
from typing import Any

from django.core.management import base

from pools.api.clusters.connections import ConnectionSerializer, ConnectionTestSerializer
from pools.clusters import connection_test, connections, fleet
from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import registry
from pools.core import addresses, errors, holders
from pools.models import Cluster, Connection, ManagedResource, Mode, Pool
from pools.platform import database, events
from pools.register import clusters
from pools.webhooks import configuration

_AUTHOR = events.Author(actor="manage.py", source="command")
_PARTS = ("node_prefix", "instance_prefix")


class Command(base.BaseCommand):
    help = "Register, connect, show, change, test and remove clusters."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = _verb(verbs, "add", "register a cluster; with a kubeconfig also connect it")
        divide = _verb(verbs, "divide", "create the node and instance pools of a cluster")
        for subparser in (add, divide):
            subparser.add_argument(
                "--prefix",
                "--cluster-prefix",
                required=subparser is divide,
                help="IPv6, at least /64",
            )
            subparser.add_argument("--node-prefix", help="prefix of nodes (default: the first /64)")
            subparser.add_argument(
                "--instance-prefix", help="prefix of instances (default: the second /64)"
            )
        change = _verb(verbs, "set", "connect a cluster, or change its credentials and settings")
        for subparser in (add, change):
            _add_source(subparser)
        pause_group = change.add_mutually_exclusive_group()
        pause_group.add_argument(
            "--pause", action="store_true", help="neither read nor write the cluster"
        )
        pause_group.add_argument("--resume", action="store_true", help="end the pause")
        change.add_argument("--observed", action="store_true", help="make it read-only")
        list_verb = verbs.add_parser("list", help="list all clusters with their status")
        for subparser in (
            list_verb,
            _verb(verbs, "show", "show a cluster"),
            _verb(verbs, "test", "show served kinds and missing permissions; changes nothing"),
        ):
            subparser.add_argument("--json", action="store_true")
        remove = _verb(verbs, "remove", "remove a cluster; its history stays")
        remove.add_argument("--force", action="store_true", help="also release all of its blocks")
        remove.add_argument("--reason", default="", help="reason, recorded in the history")
        _verb(verbs, "disconnect", "delete the credentials of a cluster; its blocks stay allocated")

    def handle(self, **options: Any) -> None:
        verbs = {
            "add": self._add, "divide": self._divide, "set": self._set, "list": self._list,
            "show": self._show, "test": self._test, "remove": self._remove,
            "disconnect": self._disconnect,
        }  # fmt: skip
        try:
            verbs[options["verb"]](options)
        except errors.IpamError as error:
            raise base.CommandError(_error_text(error)) from error

    # --- the register -----------------------------------------------------------------------------

    def _add(self, options: dict[str, Any]) -> None:
        name = holders.parse_name(options["name"], field="name")
        settings: dict[str, Any] = {
            "cluster_prefix": _prefix(options["prefix"], "prefix"),
            **{part: _prefix(options[part], part) for part in _PARTS},
        }
        create = partial(clusters.create, name, author=_AUTHOR, **settings)
        source = _source(options)
        terms = _terms(options, Mode.OBSERVED, ())
        if source is None:
            self._write_pools(create())
            return
        row = connections.register(
            source,
            terms,
            create=create,
            author=_AUTHOR,
            offline=options["offline"],
            confirmed=options["confirm_other_writer"],
        )
        self._write_warnings(source)
        self._write_pools(row.cluster)
        self._write_connection(row)

    def _divide(self, options: dict[str, Any]) -> None:
        prefix = _prefix(options["prefix"], "prefix")
        if prefix is None:  # argparse requires it
            raise errors.InvalidInput.for_field("prefix", "required", "is required")
        node, instance = (_prefix(options[part], part) for part in _PARTS)
        cluster = _cluster(options)
        clusters.divide_prefix(cluster, prefix, node=node, instance=instance, author=_AUTHOR)
        self._write_pools(cluster)

    def _remove(self, options: dict[str, Any]) -> None:
        reason = holders.parse_reason(options["reason"], field="reason", required=options["force"])
        author = dataclasses.replace(_AUTHOR, reason=reason)
        clusters.remove(_cluster(options), author=author, force=options["force"])
        self.stdout.write(f"The cluster {options['name']} was removed.")

    def _write_pools(self, cluster: Cluster) -> None:
        self.stdout.write(f"{cluster.name}")
        for pool in Pool.objects.filter(cluster=cluster).order_by("id"):
            cidrs = ", ".join(str(cidr) for cidr in pool.cidrs.all())
            self.stdout.write(f"  {pool.name:<12} {pool.category:<9} {cidrs}")

    # --- its connection ---------------------------------------------------------------------------

    def _set(self, options: dict[str, Any]) -> None:
        cluster, source = _cluster(options), _source(options)
        row = Connection.objects.filter(cluster=cluster).first()
        offline, confirmed = options["offline"], options["confirm_other_writer"]
        if row is None and source is not None:
            terms = _terms(options, Mode.OBSERVED, ())
            row = connections.connect(
                cluster, source, terms, author=_AUTHOR, offline=offline, confirmed=confirmed
            )
        else:
            row = connections.get_connection(cluster)
            terms = _terms(options, Mode(row.mode), row.managed_resources)
            if source is not None:
                access = source.access
                if not offline:
                    connections.check_other_writers(
                        terms,
                        lambda: access,
                        before=row.managed_resources,
                        confirmed=confirmed,
                    )
                row = connections.replace(row, source, author=_AUTHOR, offline=offline)
                confirmed = True
            paused = options["pause"] if options["pause"] or options["resume"] else None
            row = connections.change(
                row, author=_AUTHOR, terms=terms, paused=paused, confirmed=confirmed
            )
        if source is not None:
            self._write_warnings(source)
        self._write_connection(row)

    def _disconnect(self, options: dict[str, Any]) -> None:
        connections.disconnect(connections.get_connection(_cluster(options)), author=_AUTHOR)
        self.stdout.write(f"Deleted the credentials of {options['name']}.")

    def _write_connection(self, row: Connection) -> None:
        writes = ", ".join(row.managed_resources) or "nothing"
        self.stdout.write(f"  connected to {row.server} {row.version}, {row.mode}, writes {writes}")
        if row.served is not None:
            self.stdout.write(f"  {fleet.describe(row)}")

    def _write_warnings(self, source: connections.ConnectionSource) -> None:
        for warning in source.warnings:
            self.stderr.write(f"warning: {warning}")

    def _list(self, options: dict[str, Any]) -> None:
        rows = {
            summary.connection.cluster_id: summary
            for summary in fleet.summaries(fleet.list_connections())
        }
        all_clusters = list(Cluster.objects.order_by("name"))
        if options["json"]:
            documents = [_as_json(cluster, rows.get(cluster.pk)) for cluster in all_clusters]
            self.stdout.write(json.dumps(documents, indent=2))
            return
        table: list[tuple[str, ...]] = [
            ("NAME", "STATE", "LAST SYNC", "OBJECTS", "DRIFT", "RESOURCES", "VERSION")
        ]
        now = database.now()
        for cluster in all_clusters:
            summary = rows.get(cluster.pk)
            if summary is None:
                table.append((cluster.name, "not connected", "", "", "", "", ""))
                continue
            row, counts = summary.connection, (summary.objects, summary.drift)
            age = "never"
            if row.succeeded_at:
                age = f"{_duration((now - row.succeeded_at).total_seconds())} ago"
            table.append(
                (cluster.name, summary.status.state.word, age, *map(str, counts),
                 ",".join(row.managed_resources) or row.mode, row.version)
            )  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    def _show(self, options: dict[str, Any]) -> None:
        cluster = _cluster(options)
        row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
        document = _as_json(cluster, fleet.summary(row) if row else None)
        document["webhooks"] = [
            configuration.path(hook, cluster.name) for hook in configuration.HOOKS
        ]
        if options["json"]:
            self.stdout.write(json.dumps(document, indent=2))
            return
        for name, value in document.items():
            self.stdout.write(f"{name.replace('_', ' '):<14} {_text(value)}".rstrip())

    def _test(self, options: dict[str, Any]) -> None:
        row = connections.get_connection(_cluster(options))
        examination = connection_test.test_connection(row, registry.resources())
        if options["json"]:
            document = ConnectionTestSerializer(examination).data
            self.stdout.write(json.dumps(document, indent=2))
        else:
            self._write_examination(examination)
        if not examination.succeeded:
            raise base.CommandError(
                f"{examination.code}: {examination.message}"
                if examination.code
                else "a full sync run would fail"
            )

    def _write_examination(self, examination: connection_test.ConnectionTest) -> None:
        self.stdout.write(
            f"{examination.server} {examination.version} {examination.identity}".rstrip()
        )
        for kind in examination.kinds:
            shape = f"shape {kind.shape}" if kind.shape else ""
            details = [", ".join(kind.served) or "not served", shape, kind.note]
            self.stdout.write(f"  {kind.kind:<18} {'; '.join(filter(None, details))}")
        for right, granted in examination.rights:
            if not granted:
                self.stdout.write(f"  missing permission: {right} (for {right.needed_for})")
        for ending in examination.endings:
            self.stdout.write(
                f"  the {ending.credential} expires on {ending.expires_at.date()}, in {ending.days} days"
            )
        for doubt in examination.doubts:
            self.stdout.write(f"  {doubt}")


def _verb(verbs: Any, name: str, text: str) -> argparse.ArgumentParser:
    sub: argparse.ArgumentParser = verbs.add_parser(name, help=text)
    sub.add_argument("name")
    return sub


def _add_source(sub: argparse.ArgumentParser) -> None:
    source = sub.add_mutually_exclusive_group()
    source.add_argument(
        "--kubeconfig", metavar="FILE", help="path of the kubeconfig; - reads standard input"
    )
    source.add_argument(
        "--in-cluster", action="store_true", help="use the service account of Cadastre's pod"
    )
    sub.add_argument(
        "--context", default="", help="context of the kubeconfig (default: its current context)"
    )
    sub.add_argument(
        "--managed", action="store_true", help="allow Cadastre to write managed resources"
    )
    managed_resources = ",".join(str(managed_resource) for managed_resource in ManagedResource)
    sub.add_argument(
        "--enable", metavar="RESOURCES", help=f"managed resources to write: {managed_resources}"
    )
    sub.add_argument(
        "--confirm-other-writer",
        action="store_true",
        help="enable a resource although another controller of the cluster writes it, too",
    )
    sub.add_argument("--offline", action="store_true", help="skip the connection test")


def _source(options: dict[str, Any]) -> connections.ConnectionSource | None:
    if options["in_cluster"]:
        return connections.from_pod()
    if options["kubeconfig"] is None:
        return None
    path = options["kubeconfig"]
    try:
        if path == "-":
            text = sys.stdin.buffer.read(kubeconfig.LARGEST + 1)
        else:
            with pathlib.Path(path).open("rb") as file:
                text = file.read(kubeconfig.LARGEST + 1)
    except OSError as error:
        raise base.CommandError(f"{path}: {error.strerror}") from error
    return connections.from_kubeconfig(text, context=options["context"])


def _terms(options: dict[str, Any], mode: Mode, managed_resources: Any) -> connections.Terms:
    """Return the mode and the managed resources of the options; missing options change nothing."""
    if options.get("observed"):
        mode, managed_resources = Mode.OBSERVED, ()
    elif options["managed"]:
        mode = Mode.MANAGED
    if options["enable"] is not None:
        managed_resources = [
            resource.strip() for resource in options["enable"].split(",") if resource.strip()
        ]
    return connections.parse_terms(mode, managed_resources)


def _as_json(cluster: Cluster, summary: fleet.ConnectionSummary | None) -> dict[str, Any]:
    if summary is not None:
        return ConnectionSerializer(summary).data
    return {"cluster": cluster.name, "cluster_id": cluster.pk, "state": "not-connected"}


def _cluster(options: dict[str, Any]) -> Cluster:
    name = holders.parse_name(options["name"], field="name")
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise errors.NotFound(f"There is no cluster {name}.")
    return cluster


def _error_text(error: errors.IpamError) -> str:
    """Return code and message, with the paths of fields in the kubeconfig, if there are any."""
    paths = [problem.field for problem in error.problems if "." in problem.field]
    return f"{error.code}: {error.message}" + (f" ({', '.join(paths)})" if paths else "")


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict) and "writers" in value:
        names = " and ".join(value["writers"]) or "unknown"
        return f"{value['managed_resource']}: {names}" + f" ({value['note']})" * bool(value["note"])
    if isinstance(value, dict) and "code" in value:
        return f"{value['code']}: {value['message']}"
    if isinstance(value, dict):
        return ", ".join(f"{kind} {version}" for kind, version in value.items())
    return "" if value is None else str(value)


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _prefix(text: str | None, field: str) -> IPv6Network | None:
    if text is None:
        return None
    prefix = addresses.parse_cidr(text, field=field, source=addresses.InputSource.TEXT)
    if not isinstance(prefix, IPv6Network):
        raise errors.InvalidInput.for_field(
            field, "cluster_prefix", "an IPv6 prefix is expected", text
        )
    return prefix
