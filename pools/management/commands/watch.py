"""`manage.py watch [--clusters N]`: apply watch events of clusters within seconds, and send webhooks.

Any number of watchers may run, on any number of machines: they share the clusters. `up` runs one.
"""

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

from pools.clusters.reconcile import registry, watcher as reconcile_watcher
from pools.platform import heartbeat
from pools.platform.alerts import dispatch
from pools.platform.conditions import evaluation

_INTERVAL = 30  # seconds
_LAST_MESSAGES = 2  # seconds for messages that are on their way at a stop

log = logging.getLogger(__name__)


class Command(base.BaseCommand):
    help = "Watch the clusters, and send webhooks, until SIGTERM or Ctrl-C."
    requires_system_checks: list[str] = []  # `prepare` and `migrate` run them, before any process

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument(
            "--clusters", type=int, default=200, help="maximum of clusters of this watcher (200)"
        )

    def handle(self, **options: Any) -> None:
        watcher = reconcile_watcher.Watcher(
            registry.HANDLERS,
            max_clusters=options["clusters"],
            on_progress=partial(heartbeat.touch, "watcher"),
        )

        # A signal handler must not stop the watcher itself: it could run while the watcher holds the
        # lock that `stop` needs. So a thread stops it; signal handlers may use SimpleQueue.
        signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, lambda signum, _frame: signals.put(signum))
        threading.Thread(target=_stop, args=[watcher, signals], daemon=True, name="stop").start()
        threading.Thread(target=_evaluate_for_scheduler, daemon=True, name="alerts").start()
        dispatcher = dispatch.Dispatcher()
        threading.Thread(target=dispatcher.run, daemon=True, name="webhooks").start()
        self.stderr.write(f"watching as {watcher.name}")
        heartbeat.collect_seldom()
        watcher.run()
        dispatcher.stop(_LAST_MESSAGES)
        # End at once, although threads may still wait for a cluster.
        sys.stdout.flush()
        os._exit(0)


def _stop(watcher: reconcile_watcher.Watcher, signals: queue.SimpleQueue[int]) -> None:
    signals.get()
    watcher.stop()


def _evaluate_for_scheduler() -> None:
    """Evaluate the alerts while the scheduler does not, for example because it has stopped."""
    pause = threading.Event()
    while not pause.wait(_INTERVAL):
        try:
            evaluation.evaluate_without_scheduler()
        except Exception:
            log.exception("evaluation of alerts failed")
        finally:
            connection.close()
