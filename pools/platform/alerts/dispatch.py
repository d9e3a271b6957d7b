"""The dispatcher of webhooks: a thread of each watcher, which needs neither Redis nor a Celery worker.

Each receiver that has something to receive gets a thread, so that a slow one delays neither another receiver
nor a sync run. Any number of dispatchers may run: the lease of a target decides which one sends to it.
"""

from __future__ import annotations

import logging
import threading
from concurrent import futures

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from pools.platform.alerts import event_feed, outbox, sending

INTERVAL = 2  # seconds between two looks for messages
# That one dispatcher sends to at the same time, each with a connection to the database.
RECEIVERS = 16

log = logging.getLogger(__name__)


class Dispatcher:
    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._threads = futures.ThreadPoolExecutor(RECEIVERS, thread_name_prefix="webhook")
        self._sending: dict[int, futures.Future[None]] = {}
        # The turn in which each target was served last: among many slow receivers, all get their turn.
        self._served: dict[int, int] = {}
        self._turn = 0

    def run(self) -> None:
        """Send what is due and write messages about events, until `stop`; wait for a database that is unavailable."""
        while not self._stopped.wait(INTERVAL):
            try:
                close_old_connections()
                self.send_due()
                # Afterwards: no fault of an event keeps alerts from being sent.
                event_feed.write_messages()
            except (OperationalError, InterfaceError) as error:
                log.warning("webhooks wait for the database: %s", error)
            except Exception:
                log.exception("the dispatcher of webhooks failed")

    def send_due(self) -> None:
        """Start a thread for each target that is due, as far as there are free ones."""
        self._turn += 1
        self._sending = {key: sent for key, sent in self._sending.items() if not sent.done()}
        due = set(outbox.due_targets()) - self._sending.keys()
        for target_id in sorted(due, key=lambda key: (self._served.get(key, 0), key)):
            if len(self._sending) == RECEIVERS:
                break
            self._served[target_id] = self._turn
            self._sending[target_id] = self._threads.submit(self._send, target_id)

    def stop(self, seconds: float) -> None:
        """Stop after the messages that are on their way, but wait for them no longer than `seconds`.

        A message that is cut off is sent again, with the same id, when the lease of its target has expired.
        """
        self._stopped.set()
        futures.wait(list(self._sending.values()), seconds)

    def _send(self, target_id: int) -> None:
        try:
            sending.send_pending(target_id, stopped=self._stopped)
        except Exception:
            log.exception("sending to webhook target %s failed", target_id)
        finally:
            connection.close()
