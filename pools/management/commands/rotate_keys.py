"""`manage.py rotate_keys`: re-encrypt stored secrets with the newest key of the key ring."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.clusters import connections
from pools.core import errors
from pools.platform.alerts import targets


class Command(base.BaseCommand):
    help = (
        "Re-encrypt credentials of clusters and secrets of webhooks with the newest key, after which"
        " older keys can be removed."
    )

    def handle(self, **_options: Any) -> None:
        try:
            credentials, webhook_secrets = connections.reseal(), targets.reseal()
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        resealed, already = (
            credentials.resealed + webhook_secrets.resealed,
            credentials.already + webhook_secrets.already,
        )
        self.stdout.write(
            f"{resealed} re-encrypted, {already} already encrypted with the newest key."
        )
        failed = [*credentials.failed.items(), *webhook_secrets.failed.items()]
        for name, code in failed:
            self.stderr.write(f"{name}: {code}")
        if failed:
            count = len(failed)
            raise base.CommandError(
                f"{count} could not be decrypted: keep the old keys in the key ring."
            )
