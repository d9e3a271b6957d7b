"""gunicorn's settings, for `manage.py up` and for `gunicorn -c ipam_site/gunicorn_conf.py`."""

import contextlib
import os
import pathlib
import resource
import signal
import socket
import ssl

from gunicorn import glogging

from ipam_site import data_folder, env, logs, tls
from ipam_site.supervisor import processes
from pools.platform import heartbeat

bind = env.text("WEB_BIND", "127.0.0.1:8000")
if bind.startswith(":") and socket.has_dualstack_ipv6():
    bind = f"[::]{bind}"  # all addresses of both families: a pod may have no IPv4 address
# More processes than threads, because Python runs one thread of a process at a time: 3 processes for
# every 2 cores were the fastest on 4 cores (benchmarks: http).
workers = env.integer("WEB_WORKERS", min(12, max(2, (os.cpu_count() or 2) * 3 // 2)), minimum=1)
# Import once, then fork: a killed worker is replaced in milliseconds.
preload_app = True
timeout = 30
graceful_timeout = env.integer("WEB_GRACEFUL_SECONDS", 25)
keepalive = 15
# Keep the heartbeat file in memory: a slow disk must not look like a hung worker.
worker_tmp_dir = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None  # noqa: S108
# No control socket: nothing controls the server from another process.
control_socket_disable = True
_files = tls.from_environment()
if _files and _files.client_ca:
    # Of gunicorn's workers only this one hands client certificates to the application. A slow client occupies
    # one of its threads: it is for API servers.
    worker_class = "gthread"
    wsgi_app = "ipam_site.wsgi:application"
    threads = env.integer("WEB_THREADS", 2, minimum=1)
else:
    worker_class = "asgi"
    wsgi_app = "ipam_site.asgi:application"  # it has the threads
    asgi_lifespan = "off"
if _files:
    certfile, keyfile = str(_files.certificate), str(_files.key)
    _contexts = tls.Contexts(_files)

    def ssl_context(_config: object, _default: object) -> ssl.SSLContext:
        """Return an SSL context whose connections use the present certificate files."""
        return _contexts.current()


logconfig_dict = logs.config(env.text("LOG_LEVEL", "INFO").upper())


class Logger(glogging.Logger):
    """Write no access log unless ACCESS_LOG=1: the register records changes as events."""

    access_log_enabled = env.boolean("ACCESS_LOG", False)


logger_class = Logger


def on_starting(_server: object) -> None:
    """Remove the drain marker of an earlier server: the data folder outlives a container."""
    with contextlib.suppress(OSError):
        (data_folder.locate() / "draining").unlink(missing_ok=True)


def post_fork(_server: object, _worker: object) -> None:
    """Make a worker end with its master even if that is killed, tune its garbage collection and its limits."""
    processes.die_with_parent(signal.SIGKILL, parent=os.getppid())()
    heartbeat.collect_seldom()
    # A slow client occupies no thread, but a descriptor.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
