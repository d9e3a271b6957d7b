"""`manage.py webhook NAME [--new-key] [--print-manifest --url URL [--ca FILE] [--only WEBHOOK]]`."""

import pathlib
from collections.abc import Callable
from functools import partial
from typing import Any

import yaml
from django.core.management import base

from pools.core import errors
from pools.models import Cluster
from pools.platform import events
from pools.webhooks import configuration, views

_AUTHOR = events.Author(actor="manage.py", source="command")


class Command(base.BaseCommand):
    help = (
        "Show the admission webhooks of a cluster, replace their key, or print the objects that"
        " configure them."
    )

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("name", help="name of the cluster in the register")
        parser.add_argument(
            "--new-key",
            action="store_true",
            help="create and show a new key; the old key becomes invalid",
        )
        parser.add_argument(
            "--print-manifest", action="store_true", help="print the webhook configurations"
        )
        parser.add_argument(
            "--only",
            action="append",
            choices=[hook.address for hook in configuration.HOOKS],
            help="only this webhook (default: all that the cluster's settings require)",
        )
        location = parser.add_mutually_exclusive_group()
        location.add_argument(
            "--url", help="https://host[:port] at which API servers reach this site"
        )
        location.add_argument("--service", help="namespace/name[:port] of a Service of the cluster")
        parser.add_argument("--ca", help="PEM file with the CA of this site's certificate")
        parser.add_argument(
            "--failure-policy",
            choices=[configuration.FAIL, configuration.IGNORE],
            default="",
            help="default: Fail for validating webhooks, Ignore for mutating ones",
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
        # Validate all options before the old key becomes invalid.
        client, ca = _client(options), _ca(options)
        key = views.make(cluster, author=_AUTHOR) if options["new_key"] else ""
        if options["print_manifest"]:
            manifests = [
                configuration.manifest(
                    hook,
                    client(configuration.path(hook, cluster.name, key)),
                    ca=ca,
                    failure_policy=options["failure_policy"],
                    own_namespace=_own_namespace(options),
                )
                for hook in _hooks(cluster, options["only"])
            ]
            self.stdout.write(yaml.safe_dump_all(manifests, sort_keys=False), ending="")
            if not key:
                self.stderr.write(
                    "These URLs have no key: they require a client certificate. --new-key prints"
                    " URLs with a new key. It is shown only once and replaces the old key, so apply"
                    " all printed objects."
                )
        elif key:
            self.stdout.write(key)
        else:
            self.stdout.write(_key_status(cluster))


def _hooks(cluster: Cluster, only: list[str] | None) -> list[configuration.Hook]:
    hooks = configuration.HOOKS
    if only:
        return [hook for hook in hooks if hook.address in only]
    return [hook for hook in hooks if hook.applies_to(cluster)]


def _client(options: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that builds the clientConfig of a webhook path. Raises InvalidInput."""
    if not options["print_manifest"]:
        return lambda _: {}
    name = "service" if options["service"] else "url"
    if not options[name]:
        raise errors.InvalidInput.for_field(
            "url", "required", "--print-manifest needs --url or --service"
        )
    client = partial(getattr(configuration, f"by_{name}"), options[name])
    client("")  # raises InvalidInput for a wrong option
    return client


def _own_namespace(options: dict[str, Any]) -> str:
    namespace = (options["service"] or "").partition("/")[0]
    return namespace or configuration.OWN_NAMESPACE


def _ca(options: dict[str, Any]) -> str:
    if not options["ca"]:
        return ""
    return configuration.certificates(pathlib.Path(options["ca"]).read_text(errors="replace"))


def _key_status(cluster: Cluster) -> str:
    key_made_at = cluster.webhook_key_made_at
    key = f"has a key, created at {key_made_at:%Y-%m-%d %H:%M} UTC" if key_made_at else "has no key"
    paths = [configuration.path(hook, cluster.name) for hook in configuration.HOOKS]
    return "\n".join([*paths, f"{cluster.name} {key}"])
