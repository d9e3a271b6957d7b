"""`manage.py rotate_keys`: credentials of clusters and secrets of webhooks under the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.clusters import connections
from pools.core import errors
from pools.platform.alerts import targets


class Command(base.BaseCommand):
    help = "Seal credentials of clusters and secrets of webhooks with the newest key; then old keys can go."

    def handle(self, **_options: Any) -> None:
        try:
            done, of_webhooks = connections.reseal(), targets.reseal()
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        resealed, already = (
            done.resealed + of_webhooks.resealed,
            done.already + of_webhooks.already,
        )
        self.stdout.write(f"{resealed} sealed anew, {already} were under the newest key.")
        failed = [*done.failed.items(), *of_webhooks.failed.items()]
        for name, code in failed:
            self.stderr.write(f"{name}: {code}")
        if failed:
            count = len(failed)
            raise base.CommandError(f"{count} could not be opened: keep the old keys in the ring.")
