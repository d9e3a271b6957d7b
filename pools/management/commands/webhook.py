"""`manage.py webhook NAME [--new-key] [--print-manifest --url URL [--ca FILE]]`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import yaml
from django.core.management import base

from pools import events
from pools.core import errors
from pools.models import Cluster
from pools.webhooks import configuration, keys

_AUTHOR = events.Author(actor="manage.py", source="command")


class Command(base.BaseCommand):
    help = (
        "The admission webhook of a cluster: its key, and the object that makes the cluster use it."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("name", help="the cluster's name in the register")
        parser.add_argument(
            "--new-key", action="store_true", help="make a key, shown once; the old one ends"
        )
        parser.add_argument(
            "--print-manifest", action="store_true", help="the ValidatingWebhookConfiguration"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--url", help="https://host[:port], as API servers reach this site")
        where.add_argument("--service", help="namespace/name[:port] of a Service of the cluster")
        parser.add_argument("--ca", help="PEM file: who signed this site's certificate")
        parser.add_argument("--failure-policy", choices=["Fail", "Ignore"], default="Fail")

    def handle(self, **options: Any) -> None:
        try:
            self._run(options)
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        except OSError as error:
            raise base.CommandError(f"{error.filename}: {error.strerror}") from error

    def _run(self, options: dict[str, Any]) -> None:
        cluster = Cluster.objects.filter(name=options["name"]).first()
        if cluster is None:
            raise errors.NotFound(f"There is no cluster {options['name']}.")
        # Everything that may be refused comes before the old key ends.
        client, ca = _client(options), _ca(options)
        key = keys.make(cluster, by=_AUTHOR) if options["new_key"] else ""
        if options["print_manifest"]:
            made = configuration.manifest(
                client(cluster.name, key), ca=ca, failure_policy=options["failure_policy"]
            )
            self.stdout.write(yaml.safe_dump(made, sort_keys=False), ending="")
            if not key:
                self.stderr.write(
                    "This address has no key: it answers to client certificates only. --new-key"
                    " makes an address with a key, which cannot be shown a second time."
                )
        elif key:
            self.stdout.write(key)
        else:
            self.stdout.write(_standing(cluster))


def _client(options: dict[str, Any]) -> Callable[[str, str], dict[str, Any]]:
    """How the manifest names this site, given a cluster and a key."""
    if not options["print_manifest"]:
        return lambda _cluster, _key: {}
    if options["service"]:
        configuration.by_service(options["service"], "")
        return lambda cluster, key: configuration.by_service(options["service"], cluster, key)
    if options["url"]:
        configuration.by_url(options["url"], "")
        return lambda cluster, key: configuration.by_url(options["url"], cluster, key)
    raise errors.InvalidInput.of("url", "required", "--print-manifest needs --url or --service")


def _ca(options: dict[str, Any]) -> str:
    if not options["ca"]:
        return ""
    return configuration.certificates(pathlib.Path(options["ca"]).read_text(errors="replace"))


def _standing(cluster: Cluster) -> str:
    made = cluster.webhook_key_made_at
    key = f"has a key, made at {made:%Y-%m-%d %H:%M} UTC" if made else "has no key"
    return f"{configuration.path(cluster.name)}\n{cluster.name} {key}"
