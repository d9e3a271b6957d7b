"""Workers and watchers in processes of their own, on the test's database.

`python -m tests.reconcile.processes watch` or `… work CONNECTION`, with a small handler, or
`… cilium CONNECTION`, a pass with those of the installation as soon as nobody else has the cluster:
they import no test.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from pools.clusters.reconcile import watcher as reconcile_watcher

ROOT = pathlib.Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """Such that Django of another process finds the test's database."""
    from django.conf import settings
    from django.db import connection

    parts = connection.settings_dict
    user, password = quote(parts["USER"]), quote(parts["PASSWORD"], safe="")
    url = f"postgresql://{user}:{password}@{parts['HOST']}:{parts['PORT']}/{parts['NAME']}"
    variables = {
        "DATABASE_URL": url,
        "IPAM_KEY_RING": settings.IPAM_KEY_RING[0],
        "IPAM_ALLOW_LOOPBACK_CLUSTERS": "1",
        "IPAM_ROLE": "worker",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **variables}


class Process:
    def __init__(self, *arguments: str) -> None:
        with tempfile.NamedTemporaryFile(prefix="cadastre-test-", delete=False) as log:
            self._said = pathlib.Path(log.name)
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.reconcile.processes", *arguments],
                cwd=ROOT,
                env=environment(),
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self._said.read_text()

    def send(self, signum: int) -> None:
        self._popen.send_signal(signum)

    def wait(self, seconds: float = 30) -> int:
        return self._popen.wait(seconds)

    def end(self) -> None:
        self._popen.kill()
        self._popen.wait()
        self._said.unlink()


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[Process]:
    process = Process(*arguments)
    try:
        yield process
    except BaseException:
        sys.stderr.write(process.output)
        raise
    finally:
        process.end()


def main() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from pools.clusters.reconcile import registry, watcher as reconcile_watcher
    from tests.reconcile import small

    if sys.argv[1] == "cilium":
        _pass(int(sys.argv[2]), registry.HANDLERS)
        return
    handler = small.Small()
    handler.writes = lambda context: [
        small.labelled(row.name)
        for row in small.rows(context.connection)
        if context.connection.managed_resources
    ]
    registry.HANDLERS = [handler]
    if sys.argv[1] == "watch":
        call_command("watch")
    elif sys.argv[1] == "watch-stopped-amidst-its-wait":
        reconcile_watcher.Watcher.run = _wait
        call_command("watch")
    elif sys.argv[1] == "work":
        _pass(int(sys.argv[2]), [handler])


def _wait(watcher: reconcile_watcher.Watcher) -> None:
    """As `run` does between two looks; the signal comes while it has the lock of what it waits for."""
    with watcher._wake._cond:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)  # a handler runs in here, if there is one
    watcher._wake.wait()


def _pass(connection_id: int, handlers: Sequence[Any]) -> None:
    from pools.clusters.reconcile import leases, sync

    while (lease := leases.take(connection_id, leases.worker_name())) is None:
        time.sleep(0.05)
    sys.stdout.write(f"took {lease.fence}\n")
    run = sync.run(lease, handlers)
    sys.stdout.write(f"ended {run.error_code or run.succeeded}\n")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
