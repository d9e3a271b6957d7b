"""`manage.py cluster add NAME [--prefix P]`, `cluster divide NAME --prefix P` and
`cluster remove NAME [--force --reason TEXT]`."""

from __future__ import annotations

import dataclasses
from ipaddress import IPv6Network
from typing import Any

from django.core.management import base

from pools import events
from pools.core import addresses, errors, holders
from pools.models import Cluster, Pool
from pools.services import clusters

_AUTHOR = events.Author(actor="manage.py", source="command")
_PARTS = ("node_prefix", "instance_prefix")


class Command(base.BaseCommand):
    help = "Register a cluster, divide its IPv6 prefix into node and instance pools, or forget it."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, text in (("add", "register a cluster"), ("divide", "make its overlay pools")):
            sub = verbs.add_parser(verb, help=text)
            sub.add_argument("name")
            sub.add_argument("--prefix", required=verb == "divide", help="IPv6, at least /64")
            sub.add_argument("--node-prefix", help="instead of the first /64")
            sub.add_argument("--instance-prefix", help="instead of the second /64")
        remove = verbs.add_parser("remove", help="forget a cluster; its history stays")
        remove.add_argument("name")
        remove.add_argument("--force", action="store_true", help="with all that it holds")
        remove.add_argument("--reason", default="", help="why; is kept with the events")

    def handle(self, **options: Any) -> None:
        try:
            if options["verb"] == "remove":
                _remove(options)
                self.stdout.write(f"The cluster {options['name']} was removed.")
                return
            cluster = self._run(options)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        self.stdout.write(f"{cluster.name}")
        for pool in Pool.objects.filter(cluster=cluster).order_by("id"):
            cidrs = ", ".join(str(cidr) for cidr in pool.cidrs.all())
            self.stdout.write(f"  {pool.name:<12} {pool.category:<9} {cidrs}")

    def _run(self, options: dict[str, Any]) -> Cluster:
        name = holders.parse_name(options["name"], field="name")
        prefix = _prefix(options["prefix"], "prefix")
        node, instance = (_prefix(options[part], part) for part in _PARTS)
        if options["verb"] == "add":
            return clusters.create(
                name,
                by=_AUTHOR,
                cluster_prefix=prefix,
                node_prefix=node,
                instance_prefix=instance,
            )
        if prefix is None:  # argparse requires it
            raise errors.InvalidInput.of("prefix", "required", "is required")
        cluster = _cluster(name)
        clusters.divide(cluster, prefix, node=node, instance=instance, by=_AUTHOR)
        return cluster


def _cluster(name: str) -> Cluster:
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise errors.NotFound(f"There is no cluster {name}.")
    return cluster


def _remove(options: dict[str, Any]) -> None:
    name = holders.parse_name(options["name"], field="name")
    reason = holders.parse_reason(options["reason"], field="reason", required=options["force"])
    author = dataclasses.replace(_AUTHOR, reason=reason)
    clusters.remove(_cluster(name), by=author, force=options["force"])


def _prefix(text: str | None, field: str) -> IPv6Network | None:
    if text is None:
        return None
    found = addresses.parse_cidr(text, field=field, door=addresses.Door.TEXT)
    if not isinstance(found, IPv6Network):
        raise errors.InvalidInput.of(field, "cluster_prefix", "an IPv6 prefix is expected", text)
    return found
