"""`manage.py webhook NAME [--new-key] [--print-manifest --url URL [--ca FILE] [--only ADDRESS]]`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from functools import partial
from typing import Any

import yaml
from django.core.management import base

from pools.core import errors
from pools.models import Cluster
from pools.platform import events
from pools.webhooks import configuration, keys

_AUTHOR = events.Author(actor="manage.py", source="command")


class Command(base.BaseCommand):
    help = (
        "The admission webhooks of a cluster: their key, and the objects that make the cluster use"
        " them."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("name", help="the cluster's name in the register")
        parser.add_argument(
            "--new-key", action="store_true", help="make a key, shown once; the old one ends"
        )
        parser.add_argument(
            "--print-manifest", action="store_true", help="the webhook configurations"
        )
        parser.add_argument(
            "--only",
            action="append",
            choices=[hook.address for hook in configuration.HOOKS],
            help="this one; without it all that the cluster's settings need",
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--url", help="https://host[:port], as API servers reach this site")
        where.add_argument("--service", help="namespace/name[:port] of a Service of the cluster")
        parser.add_argument("--ca", help="PEM file: who signed this site's certificate")
        parser.add_argument(
            "--failure-policy",
            choices=[configuration.FAIL, configuration.IGNORE],
            default="",
            help="Fail for webhooks that validate and Ignore for those that mutate",
        )

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
        key = keys.make(cluster, author=_AUTHOR) if options["new_key"] else ""
        if options["print_manifest"]:
            made = [
                configuration.manifest(
                    hook,
                    client(configuration.path(hook, cluster.name, key)),
                    ca=ca,
                    failure_policy=options["failure_policy"],
                    own_namespace=_own_namespace(options),
                )
                for hook in _hooks(cluster, options["only"])
            ]
            self.stdout.write(yaml.safe_dump_all(made, sort_keys=False), ending="")
            if not key:
                self.stderr.write(
                    "This address has no key: it answers to client certificates only. --new-key"
                    " makes one with a key, which cannot be shown a second time and ends the one"
                    " before: apply all that is printed then."
                )
        elif key:
            self.stdout.write(key)
        else:
            self.stdout.write(_standing(cluster))


def _hooks(cluster: Cluster, only: list[str] | None) -> list[configuration.Hook]:
    every = configuration.HOOKS
    if only:
        return [hook for hook in every if hook.address in only]
    return [hook for hook in every if hook.wanted(cluster)]


def _client(options: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """How the manifests name this site, given a path."""
    if not options["print_manifest"]:
        return lambda _: {}
    name = "service" if options["service"] else "url"
    if not options[name]:
        raise errors.InvalidInput.for_field(
            "url", "required", "--print-manifest needs --url or --service"
        )
    client = partial(getattr(configuration, f"by_{name}"), options[name])
    client("")  # refuses what is wrong
    return client


def _own_namespace(options: dict[str, Any]) -> str:
    namespace = (options["service"] or "").partition("/")[0]
    return namespace or configuration.OWN_NAMESPACE


def _ca(options: dict[str, Any]) -> str:
    if not options["ca"]:
        return ""
    return configuration.certificates(pathlib.Path(options["ca"]).read_text(errors="replace"))


def _standing(cluster: Cluster) -> str:
    made = cluster.webhook_key_made_at
    key = f"has a key, made at {made:%Y-%m-%d %H:%M} UTC" if made else "has no key"
    paths = [configuration.path(hook, cluster.name) for hook in configuration.HOOKS]
    return "\n".join([*paths, f"{cluster.name} {key}"])
