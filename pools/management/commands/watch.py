"""`manage.py watch [--clusters N]`: what happens in clusters reaches the register within seconds.

Any number may run, on any number of machines: they share the clusters. `up` runs one.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from functools import partial
from typing import Any

from django.core.management import base
from django.db import connection
from kombu.exceptions import OperationalError

from pools import tasks
from pools.clusters.reconcile import registry
from pools.clusters.reconcile import watcher as reconcile_watcher
from pools.platform import heartbeat
from pools.platform.conditions import evaluation

_EVERY = 30  # seconds

log = logging.getLogger(__name__)


class Command(base.BaseCommand):
    help = "Watch the clusters; ends with SIGTERM or Ctrl-C."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("--clusters", type=int, default=200, help="watched by this one (200)")

    def handle(self, **options: Any) -> None:
        watcher = reconcile_watcher.Watcher(
            registry.HANDLERS,
            max_clusters=options["clusters"],
            on_progress=partial(heartbeat.touch, "watcher"),
        )

        # Stopped by a thread of its own: a handler runs amidst the watcher's own waiting, whose lock it
        # would wait for. This queue is one that handlers may use.
        signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, lambda signum, _frame: signals.put(signum))
        threading.Thread(target=_stop, args=[watcher, signals], daemon=True, name="stop").start()
        threading.Thread(target=_stand_in, daemon=True, name="notices").start()
        self.stderr.write(f"watching as {watcher.name}")
        watcher.run()
        # Threads that wait for a cluster are not waited for.
        sys.stdout.flush()
        os._exit(0)


def _stop(watcher: reconcile_watcher.Watcher, signals: queue.SimpleQueue[int]) -> None:
    signals.get()
    watcher.stop()


def _stand_in() -> None:
    """Somebody has to tell that the scheduler stopped: it cannot do so itself."""
    pause = threading.Event()
    while not pause.wait(_EVERY):
        try:
            outcome = evaluation.evaluate_without_scheduler()
            if outcome is not None and outcome.deliveries:
                tasks.send_webhooks()
        except OperationalError:
            log.warning("the broker is away; webhooks wait")
        except Exception:
            log.exception("notices could not be evaluated")
        finally:
            connection.close()
