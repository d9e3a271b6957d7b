"""`manage.py cluster`: register, connect, look at, change, test and forget clusters.

No verb prints a credential. A refusal is `code: message` with exit status 1; `test` also ends with 1
when passes would fail.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from functools import partial
from ipaddress import IPv6Network
from typing import Any

from django.core.management import base

from pools.clusters import connection_test, connections, fleet, served_kinds_text
from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import registry
from pools.core import addresses, errors, holders
from pools.models import Cluster, Connection, Pool
from pools.models.connections import ManagedResource, Mode
from pools.platform import database, events
from pools.register import clusters
from pools.webhooks import configuration

_AUTHOR = events.Author(actor="manage.py", source="command")
_PARTS = ("node_prefix", "instance_prefix")


class Command(base.BaseCommand):
    help = "Register clusters, connect them, look at them and forget them."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = _verb(verbs, "add", "register a cluster, with a kubeconfig also connect it")
        divide = _verb(verbs, "divide", "make its node and instance pools")
        for sub in (add, divide):
            sub.add_argument(
                "--prefix", "--cluster-prefix", required=sub is divide, help="IPv6, at least /64"
            )
            sub.add_argument("--node-prefix", help="instead of the first /64")
            sub.add_argument("--instance-prefix", help="instead of the second /64")
        change = _verb(verbs, "set", "connect it, replace its credentials, change what is written")
        for sub in (add, change):
            _add_source(sub)
        rest = change.add_mutually_exclusive_group()
        rest.add_argument("--pause", action="store_true", help="neither read nor write")
        rest.add_argument("--resume", action="store_true")
        change.add_argument("--observed", action="store_true", help="write nothing any more")
        listed = verbs.add_parser("list", help="all clusters and how they stand")
        for sub in (
            listed,
            _verb(verbs, "show", "one cluster"),
            _verb(verbs, "test", "what it serves and which rights are missing; changes nothing"),
        ):
            sub.add_argument("--json", action="store_true")
        remove = _verb(verbs, "remove", "forget a cluster; its history stays")
        remove.add_argument("--force", action="store_true", help="with all that it holds")
        remove.add_argument("--reason", default="", help="why; is kept with the events")
        _verb(verbs, "disconnect", "forget its credentials; what it holds stays")

    def handle(self, **options: Any) -> None:
        verbs = {
            "add": self._add, "divide": self._divide, "set": self._set, "list": self._list,
            "show": self._show, "test": self._test, "remove": self._remove,
            "disconnect": self._disconnect,
        }  # fmt: skip
        try:
            verbs[options["verb"]](options)
        except errors.IpamError as error:
            raise base.CommandError(_said(error)) from error

    # --- the register -----------------------------------------------------------------------------

    def _add(self, options: dict[str, Any]) -> None:
        name = holders.parse_name(options["name"], field="name")
        settings: dict[str, Any] = {
            "cluster_prefix": _prefix(options["prefix"], "prefix"),
            **{part: _prefix(options[part], part) for part in _PARTS},
        }
        create = partial(clusters.create, name, author=_AUTHOR, **settings)
        source = _source(options)
        wanted = _terms(options, Mode.OBSERVED, ())
        if source is None:
            self._pools(create())
            return
        row = connections.register(
            source, wanted, create=create, author=_AUTHOR, offline=options["offline"]
        )
        self._warn(source)
        self._pools(row.cluster)
        self._connected(row)

    def _divide(self, options: dict[str, Any]) -> None:
        prefix = _prefix(options["prefix"], "prefix")
        if prefix is None:  # argparse requires it
            raise errors.InvalidInput.for_field("prefix", "required", "is required")
        node, instance = (_prefix(options[part], part) for part in _PARTS)
        cluster = _cluster(options)
        clusters.divide_prefix(cluster, prefix, node=node, instance=instance, author=_AUTHOR)
        self._pools(cluster)

    def _remove(self, options: dict[str, Any]) -> None:
        reason = holders.parse_reason(options["reason"], field="reason", required=options["force"])
        author = dataclasses.replace(_AUTHOR, reason=reason)
        clusters.remove(_cluster(options), author=author, force=options["force"])
        self.stdout.write(f"The cluster {options['name']} was removed.")

    def _pools(self, cluster: Cluster) -> None:
        self.stdout.write(f"{cluster.name}")
        for pool in Pool.objects.filter(cluster=cluster).order_by("id"):
            cidrs = ", ".join(str(cidr) for cidr in pool.cidrs.all())
            self.stdout.write(f"  {pool.name:<12} {pool.category:<9} {cidrs}")

    # --- its connection ---------------------------------------------------------------------------

    def _set(self, options: dict[str, Any]) -> None:
        cluster, source = _cluster(options), _source(options)
        row = Connection.objects.filter(cluster=cluster).first()
        offline = options["offline"]
        if row is None and source is not None:
            wanted = _terms(options, Mode.OBSERVED, ())
            row = connections.connect(cluster, source, wanted, author=_AUTHOR, offline=offline)
        else:
            row = connections.get_connection(cluster)
            wanted = _terms(options, Mode(row.mode), row.managed_resources)
            if source is not None:
                row = connections.replace(row, source, author=_AUTHOR, offline=offline)
            paused = options["pause"] if options["pause"] or options["resume"] else None
            row = connections.change(row, author=_AUTHOR, terms=wanted, paused=paused)
        if source is not None:
            self._warn(source)
        self._connected(row)

    def _disconnect(self, options: dict[str, Any]) -> None:
        connections.disconnect(connections.get_connection(_cluster(options)), author=_AUTHOR)
        self.stdout.write(f"The credentials of {options['name']} were forgotten.")

    def _connected(self, row: Connection) -> None:
        writes = ", ".join(row.managed_resources) or "nothing"
        self.stdout.write(f"  connected to {row.server} {row.version}, {row.mode}, writes {writes}")
        if row.served is not None:
            self.stdout.write(f"  {served_kinds_text.describe(row)}")

    def _warn(self, source: connections.ConnectionSource) -> None:
        for warning in source.warnings:
            self.stderr.write(f"warning: {warning}")

    def _list(self, options: dict[str, Any]) -> None:
        rows = {one.connection.cluster_id: one for one in fleet.summaries(fleet.list_connections())}
        every = list(Cluster.objects.order_by("name"))
        if options["json"]:
            found = [_as_json(cluster, rows.get(cluster.pk)) for cluster in every]
            self.stdout.write(json.dumps(found, indent=2))
            return
        table: list[tuple[str, ...]] = [
            ("NAME", "STATE", "LAST PASS", "OBJECTS", "DRIFT", "RESOURCES", "VERSION")
        ]
        now = database.now()
        for cluster in every:
            one = rows.get(cluster.pk)
            if one is None:
                table.append((cluster.name, "not connected", "", "", "", "", ""))
                continue
            row, counts = one.connection, (one.objects, one.drift)
            age = "never"
            if row.succeeded_at:
                age = f"{_duration((now - row.succeeded_at).total_seconds())} ago"
            table.append(
                (cluster.name, one.status.state.word, age, *map(str, counts),
                 ",".join(row.managed_resources) or row.mode, row.version)
            )  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    def _show(self, options: dict[str, Any]) -> None:
        cluster = _cluster(options)
        row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
        found = _as_json(cluster, fleet.summary(row) if row else None)
        found["webhooks"] = [configuration.path(hook, cluster.name) for hook in configuration.HOOKS]
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for name, value in found.items():
            self.stdout.write(f"{name.replace('_', ' '):<14} {_text(value)}".rstrip())

    def _test(self, options: dict[str, Any]) -> None:
        row = connections.get_connection(_cluster(options))
        found = connection_test.test_connection(row, registry.resources())
        if options["json"]:
            self.stdout.write(json.dumps(found.as_json(), indent=2))
        else:
            self._tell(found)
        if not found.succeeded:
            raise base.CommandError(
                f"{found.code}: {found.message}" if found.code else "passes would fail"
            )

    def _tell(self, found: connection_test.ConnectionTest) -> None:
        self.stdout.write(f"{found.server} {found.version} {found.identity}".rstrip())
        for kind in found.kinds:
            shape = f"shape {kind.shape}" if kind.shape else ""
            said = [", ".join(kind.served) or "not served", shape, kind.note]
            self.stdout.write(f"  {kind.kind:<18} {'; '.join(filter(None, said))}")
        for right, granted in found.rights:
            if not granted:
                self.stdout.write(f"  missing right: {right} (for {right.needed_for})")
        for one in found.endings:
            self.stdout.write(
                f"  the {one.credential} ends on {one.expires_at.date()}, in {one.days} days"
            )
        for doubt in found.doubts:
            self.stdout.write(f"  {doubt}")


def _verb(verbs: Any, name: str, text: str) -> argparse.ArgumentParser:
    sub: argparse.ArgumentParser = verbs.add_parser(name, help=text)
    sub.add_argument("name")
    return sub


def _add_source(sub: argparse.ArgumentParser) -> None:
    source = sub.add_mutually_exclusive_group()
    source.add_argument("--kubeconfig", metavar="FILE", help="- reads the standard input")
    source.add_argument("--in-cluster", action="store_true", help="by our pod's service account")
    sub.add_argument("--context", default="", help="of the kubeconfig, instead of its current one")
    sub.add_argument(
        "--managed", action="store_true", help="Cadastre may write its managed resources to it"
    )
    managed_resources = ",".join(str(managed_resource) for managed_resource in ManagedResource)
    sub.add_argument(
        "--enable", metavar="RESOURCES", help=f"what is written: of {managed_resources}"
    )
    sub.add_argument("--offline", action="store_true", help="do not ask the cluster now")


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
    """As the options say, otherwise as they were."""
    if options.get("observed"):
        mode, managed_resources = Mode.OBSERVED, ()
    elif options["managed"]:
        mode = Mode.MANAGED
    if options["enable"] is not None:
        managed_resources = [one.strip() for one in options["enable"].split(",") if one.strip()]
    return connections.parse_terms(mode, managed_resources)


def _as_json(cluster: Cluster, found: fleet.ConnectionSummary | None) -> dict[str, Any]:
    if found is not None:
        return found.as_json()
    return {"cluster": cluster.name, "cluster_id": cluster.pk, "state": "not-connected"}


def _cluster(options: dict[str, Any]) -> Cluster:
    name = holders.parse_name(options["name"], field="name")
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise errors.NotFound(f"There is no cluster {name}.")
    return cluster


def _said(error: errors.IpamError) -> str:
    """With the place in the file, where there is one."""
    places = [problem.field for problem in error.problems if "." in problem.field]
    return f"{error.code}: {error.message}" + (f" ({', '.join(places)})" if places else "")


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
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
    found = addresses.parse_cidr(text, field=field, source=addresses.InputSource.TEXT)
    if not isinstance(found, IPv6Network):
        raise errors.InvalidInput.for_field(
            field, "cluster_prefix", "an IPv6 prefix is expected", text
        )
    return found
