"""`manage.py rotate_keys`: re-encrypt stored secrets with the newest key of the key ring."""

from typing import Any

from django.core.management import base

from pools.clusters import connections
from pools.core import errors
from pools.platform import second_factor
from pools.platform.alerts import targets
from pools.register.imports import sources as netbox_sources


class Command(base.BaseCommand):
    help = (
        "Re-encrypt credentials of clusters, secrets of webhooks and of second factors with the newest"
        " key, after which older keys can be removed."
    )

    def handle(self, **_options: Any) -> None:
        try:
            results = [
                connections.reseal(),
                targets.reseal(),
                second_factor.reseal(),
                netbox_sources.reseal(),
            ]
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        resealed = sum(result.resealed for result in results)
        already = sum(result.already for result in results)
        self.stdout.write(
            f"{resealed} re-encrypted, {already} already encrypted with the newest key."
        )
        failed = [entry for result in results for entry in result.failed.items()]
        for name, code in failed:
            self.stderr.write(f"{name}: {code}")
        if failed:
            count = len(failed)
            raise base.CommandError(
                f"{count} could not be decrypted: keep the old keys in the key ring."
            )
