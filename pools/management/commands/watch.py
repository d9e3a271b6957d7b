"""`manage.py watch [--clusters N]`: what happens in clusters reaches the register within seconds.

Any number may run, on any number of machines: they share the clusters. `up` runs one.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

from django.core.management import base

from pools.handlers import registry
from pools.reconcile import watching


class Command(base.BaseCommand):
    help = "Watch the clusters; ends with SIGTERM or Ctrl-C."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("--clusters", type=int, default=200, help="watched by this one (200)")

    def handle(self, **options: Any) -> None:
        watcher = watching.Watcher(registry.all(), most=options["clusters"])

        def stop(_signum: int, _frame: FrameType | None) -> None:
            watcher.stop()

        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, stop)
        self.stderr.write(f"watching as {watcher.name}")
        watcher.run()
        # Threads that wait for a cluster are not waited for.
        sys.stdout.flush()
        os._exit(0)
