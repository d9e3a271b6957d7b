"""The supervisor: starts the processes in order, restarts them, stops them in reverse order."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import os
import pathlib
import shlex
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from concurrent import futures

import psycopg
import redis

from ipam_site import data_folder, env, tls
from ipam_site.supervisor import embedded, processes
from ipam_site.supervisor.processes import CannotStartError, Child, Spec

_TICK = 0.2  # seconds
_READY_SECONDS = 180.0  # it takes about 10 on two processors
_LOCAL = {"localhost", "127.0.0.1", "::1"}


@dataclasses.dataclass(frozen=True)
class Options:
    host: str
    port: int
    data: pathlib.Path
    demo: bool
    workers: int | None
    say: Callable[[str], None]
    tls: tls.Files | None = None

    @property
    def address(self) -> str:
        """Host and port of the site for a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}/"

    @property
    def bind(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def run(options: Options) -> None:
    """Run until a stop signal. Raises CannotStartError and data_folder.UnusableError."""
    lock = data_folder.lock(options.data)
    children: list[Child] = []
    try:
        processes.listen_for_stop()
        _refuse_unusable_certificate(options)
        _refuse_taken_port(options)
        _start(options, children, lock)
        _watch(children)
    except processes.Stopped:
        options.say("stopping …")
    finally:
        _stop(options, children)
        os.close(lock)


def _start(options: Options, children: list[Child], lock: int) -> None:
    """Start the servers, prepare the database, start the site's processes, report readiness."""
    # While this marker exists, /readyz fails and balancers send no requests.
    (options.data / "draining").unlink(missing_ok=True)
    _start_servers(options, children, lock)
    environment = _environment(options)
    password = _prepare(options, environment)
    try:
        for spec in _site_specs(environment):
            _spawn(spec, options, children)
        _wait_until_ready(options, children)
    except BaseException:
        if password:  # no later start can show it
            _say_login(options, password)
        raise
    welcome(options, password)


def welcome(options: Options, password: str) -> None:
    """Print the URL of the site, and how to sign in."""
    say, data = options.say, options.data
    say(f"Cadastre is ready: {options.url}")
    _say_login(options, password)
    say(f"  data      {data}, logs in {data}/logs")
    say(f"  metrics   {options.url}metrics, with the metrics_token of {data}/secrets.json")
    say("  Press Ctrl-C to stop all processes.")


def _say_login(options: Options, password: str) -> None:
    say, data = options.say, options.data
    say("  user      admin")
    if password:
        say(f"  password  {password}   (shown only once)")
    else:
        say("  password  as shown at the first start; to set a new one:")
        say(f"            IPAM_DATA={shlex.quote(str(data))} ./manage.py changepassword admin")


def _start_servers(options: Options, children: list[Child], lock: int) -> None:
    """Start the embedded servers unless their URLs are set, and write all URLs to connections.json."""
    secrets = data_folder.make_secrets(options.data)
    urls = {name: env.secret(name.upper()) for name in ("database_url", "redis_url")}
    makers = {"database_url": embedded.postgres_server, "redis_url": embedded.redis_server}
    servers = {name: makers[name](options.data, secrets, lock) for name in urls if not urls[name]}
    started = {name: _spawn(server.spec, options, children) for name, server in servers.items()}
    for name, server in servers.items():
        try:
            server.wait(started[name].alive)
        except (psycopg.OperationalError, redis.RedisError) as error:
            log = options.data / "logs" / f"{server.spec.name}.log"
            raise CannotStartError(f"{server.spec.name} did not start; see {log}") from error
        urls[name] = server.url
    data_folder.write(options.data / "connections.json", urls)


def _environment(options: Options) -> dict[str, str]:
    """Return the environment of the site's processes; settings.py reads the URLs from IPAM_DATA."""
    overrides = {
        "DJANGO_SETTINGS_MODULE": "ipam_site.settings",
        "IPAM_DATA": str(options.data),
        "PYTHONUNBUFFERED": "1",
        "WEB_BIND": options.bind,
        # A stop takes at most 10 s, see _stop.
        "WEB_GRACEFUL_SECONDS": "2",
        "WORKER_SOFT_SHUTDOWN_SECONDS": "1",
        # `prepare` runs the system checks, once for all processes.
        "CELERY_SKIP_CHECKS": "1",
    }
    if options.workers:
        overrides["WEB_WORKERS"] = str(options.workers)
    defaults = {"IPAM_HTTPS": "0", "ALLOWED_HOSTS": ",".join(_hosts(options.host))}
    if options.tls:
        overrides |= options.tls.environment
        defaults["IPAM_HTTPS"] = "1"
        if options.host in _LOCAL:
            # With HSTS, browsers would require HTTPS for all other sites on this machine, for a year.
            defaults["HSTS_SECONDS"] = "0"
    return {**defaults, **os.environ, **overrides}


def _hosts(host: str) -> list[str]:
    """Return the allowed host names: local ones only, unless the site listens on other addresses."""
    local = ["localhost", "127.0.0.1", "[::1]"]
    if host in _LOCAL:
        return local
    return [*local, f"[{host}]" if ":" in host else host, socket.gethostname()]


def _prepare(options: Options, environment: dict[str, str]) -> str:
    """Run `manage.py prepare`; return the password of the first user if it created one, else ""."""
    options.say("preparing the database …")
    command = [sys.executable, "manage.py", "prepare"] + ["--demo"] * options.demo
    with (options.data / "logs" / "prepare.log").open("ab") as log:
        code, password = processes.run(
            command, cwd=data_folder.PROJECT, env=environment, stderr=log
        )
    if code:
        lines = pathlib.Path(log.name).read_text(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else "?"
        raise CannotStartError(f"the database could not be prepared: {reason}; see {log.name}")
    return password.strip()


def _site_specs(environment: dict[str, str]) -> list[Spec]:
    """Return the processes of the site; each has at most 4 s to stop, see _stop."""
    celery = ["celery", "-A", "ipam_site"]
    quiet = ["--without-gossip", "--without-mingle"]
    worker = [*celery, "worker", "--loglevel=INFO", "--concurrency=2", *quiet]
    # Clusters may hang: other tasks do not share their worker.
    clusters = ["--queues=ipam.clusters", "--hostname=clusters@%h"]
    # First running tasks may finish; then their messages return to the queue.
    patient = ((signal.SIGTERM, 2.5), (signal.SIGQUIT, 1.5))
    return [
        _python_spec("web", environment, ["gunicorn", "-c", "ipam_site/gunicorn_conf.py"]),
        _python_spec("worker", environment, [*worker, "--queues=ipam.default"], stop=patient),
        _python_spec("reconciler", environment, [*worker, *clusters], role="worker", stop=patient),
        _python_spec("watcher", environment, ["django", "watch"], role="worker"),
        _python_spec("beat", environment, [*celery, "beat", "--loglevel=INFO"]),
    ]


def _python_spec(
    name: str,
    environment: dict[str, str],
    module: list[str],
    *,
    role: str = "",
    stop: tuple[tuple[int, float], ...] = ((signal.SIGTERM, 3.0),),
) -> Spec:
    return Spec(
        name=name,
        command=[sys.executable, "-m", *module],
        env={**environment, "IPAM_ROLE": role or name},
        stop=stop,
        folder=data_folder.PROJECT,
    )


def _spawn(spec: Spec, options: Options, children: list[Child]) -> Child:
    started = Child(spec, logs=options.data / "logs", say=options.say)
    children.append(started)
    started.start()
    return started


def _wait_until_ready(options: Options, children: list[Child]) -> None:
    refused = (OSError, http.client.HTTPException)

    def watch() -> bool:
        for running in children:
            running.watch()
        return True

    try:
        processes.wait_for(
            lambda: _ask_ready(options), watch, refused=refused, seconds=_READY_SECONDS
        )
    except refused as error:
        message = f"the site did not become ready; see {options.data}/logs"
        raise CannotStartError(message) from error


def _ask_ready(options: Options) -> None:
    """Raise OSError or HTTPException unless the site answers that it is ready."""
    connection = http.client.HTTPConnection(options.address, timeout=5)
    if options.tls:
        # The server is a local child process; its certificate is valid for its public name only.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(options.address, timeout=5, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        if connection.getresponse().status != http.HTTPStatus.OK:
            raise http.client.HTTPException("not ready")


def _watch(children: list[Child]) -> None:
    while True:
        for running in children:
            running.watch()
        processes.pause(_TICK)


def _stop(options: Options, children: list[Child]) -> None:
    """Stop the site's processes in parallel, then the servers, within 10 s in total."""
    with contextlib.suppress(OSError):
        (options.data / "draining").touch()
    site = {running.spec.name for running in children} - {"redis", "postgres"}
    for names in (site, {"redis"}, {"postgres"}):
        together = [running for running in children if running.spec.name in names]
        with futures.ThreadPoolExecutor(max_workers=max(1, len(together))) as pool:
            list(pool.map(Child.stop, together))
    if children:
        options.say("stopped")


def _refuse_unusable_certificate(options: Options) -> None:
    if options.tls:
        try:
            options.tls.context()
        except OSError as error:
            names = " ".join(filter(None, options.tls.environment.values()))
            raise CannotStartError(f"TLS with {names}: {error.strerror or error}") from error


def _refuse_taken_port(options: Options) -> None:
    """Raise CannotStartError if the port stays taken.

    The web server of a killed supervisor frees it within moments.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET

    def listen() -> None:
        socket.create_server((options.host, options.port), family=family).close()

    try:
        processes.wait_for(listen, lambda: True, refused=(OSError,), seconds=3)
    except OSError as error:
        message = f"cannot listen on {options.bind}: {error.strerror}; choose another PORT"
        raise CannotStartError(message) from error
