"""`manage.py rotate_keys`: all credentials of clusters under the newest key of IPAM_KEY_RING."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.core import errors
from pools.services import connections


class Command(base.BaseCommand):
    help = "Seal the credentials of all clusters with the newest key; then old keys can go."

    def handle(self, **_options: Any) -> None:
        try:
            done = connections.reseal()
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        self.stdout.write(f"{done.resealed} sealed anew, {done.already} were under the newest key.")
        for name, code in done.failed.items():
            self.stderr.write(f"{name}: {code}")
        if done.failed:
            count = len(done.failed)
            raise base.CommandError(f"{count} could not be opened: keep the old keys in the ring.")
