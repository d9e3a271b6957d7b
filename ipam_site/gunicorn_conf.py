"""gunicorn's settings, for `manage.py up` and for `gunicorn -c ipam_site/gunicorn_conf.py`."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import ssl

from gunicorn import glogging

from ipam_site import data_folder, env, garbage, logs, tls
from ipam_site.supervisor import processes

wsgi_app = "ipam_site.wsgi:application"
bind = env.text("WEB_BIND", "127.0.0.1:8000")
# Threads keep connections open without a process each; an allocation is one short round trip, so a
# few per core keep the database busy (docs: speed). They get whole requests, however slow a client is.
worker_class = "ipam_site.web_worker.Worker"
# Processes rather than threads, because Python runs one thread of a process at a time: 3 for every
# 2 cores was the fastest on 4 cores (benchmarks: http).
workers = env.integer("WEB_WORKERS", min(12, max(2, (os.cpu_count() or 2) * 3 // 2)), minimum=1)
threads = env.integer("WEB_THREADS", 2, minimum=1)
# Imported once, then forked: a killed worker is back in milliseconds.
preload_app = True
timeout = 30
graceful_timeout = env.integer("WEB_GRACEFUL_SECONDS", 25)
keepalive = 15
# The heartbeat file in memory: a slow disk must not look like a hanging worker.
worker_tmp_dir = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None  # noqa: S108
# Nobody steers the server from outside its process.
control_socket_disable = True
if _files := tls.from_environment():
    certfile, keyfile = str(_files.certificate), str(_files.key)
    _contexts = tls.Contexts(_files)

    def ssl_context(_config: object, _default: object) -> ssl.SSLContext:
        """For each connection: of the files as they are now."""
        return _contexts.current()


logconfig_dict = logs.config(env.text("LOG_LEVEL", "INFO").upper())


class Logger(glogging.Logger):
    """Without a line per request, unless ACCESS_LOG=1: changes are events in the register already."""

    access_log_enabled = env.boolean("ACCESS_LOG", False)


logger_class = Logger


def on_starting(_server: object) -> None:
    """Whoever said to drain meant the server before this one: a container's folder outlives it."""
    with contextlib.suppress(OSError):
        (data_folder.locate() / "draining").unlink(missing_ok=True)


def post_fork(_server: object, _worker: object) -> None:
    """A worker ends with its master, also when that one was killed, and is quick."""
    processes.die_with_parent(signal.SIGKILL, parent=os.getppid())()
    garbage.collect_seldom()
