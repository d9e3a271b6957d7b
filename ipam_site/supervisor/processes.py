"""Start, restart and end child processes, and the signals that stop the supervisor.

Children end with the supervisor even if it is killed. A stop signal is only recorded: whoever waits, waits
with `pause`, which raises Stopped. So no signal interrupts the start of a process.
"""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1
# By default no ephemeral ports: a server binds its port seconds later, and until then the kernel could give
# it to another process. Kubernetes nodes use ports from 30000 on for NodePort services.
_PORTS = range(20_000, 30_000)
_TRIES = 100
_LOG_BYTES = 20_000_000
_LONGEST_PAUSE = 10.0
# The back-off starts anew for a child that ran this long.
_STEADY_SECONDS = 30.0
_libc = ctypes.CDLL(None, use_errno=True)
_stop_signals: list[int] = []


class CannotStartError(Exception):
    """The site cannot start; the message says why."""


class Stopped(Exception):  # noqa: N818  # no error
    """A stop signal arrived."""


def listen_for_stop() -> None:
    """Record stop signals from now on."""
    _stop_signals.clear()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # nohup starts the process with SIGHUP ignored: keep that.
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, lambda number, _frame: _stop_signals.append(number))


def pause(seconds: float) -> None:
    """Sleep. Raises Stopped if a stop signal has arrived."""
    time.sleep(seconds)
    if _stop_signals:
        raise Stopped


def die_with_parent(signum: int, *, parent: int | None = None) -> Callable[[], None]:
    """Return a preexec_fn: the kernel sends `signum` to the child when `parent` dies, also by kill -9.

    `parent` defaults to the calling process. preexec_fn runs after subprocess has changed the user,
    which would clear the setting. The kernel tracks the parent's *thread*, so only the main thread
    may start children.
    """
    parent = parent or os.getpid()

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signum)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def run(command: list[str], **popen: Any) -> tuple[int, str]:
    """Run a command, and return its exit code and output; it ends with the supervisor at the latest.

    Raises Stopped.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGKILL),
        **popen,
    )
    with process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, _ = process.communicate(timeout=0.1)
                    return process.returncode, output
                pause(0)
        finally:
            kill_group(process.pid)


def wait_for(
    connect: Callable[[], object],
    alive: Callable[[], bool],
    *,
    refused: tuple[type[Exception], ...],
    seconds: float,
) -> None:
    """Wait until `connect` does not raise `refused`: a server answers.

    Raises the last error if the server died or after `seconds`; Stopped.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            connect()
        except refused:
            if not alive() or time.monotonic() > deadline:
                raise
        else:
            return
        pause(0.05)


def kill_group(group: int) -> None:
    """Kill the process group of a child; it has the child's pid, because of the new session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def free_port(preferred: int | None = None) -> int:
    """Return the preferred port of 127.0.0.1 if it is free, else another free one."""
    for port in [*([preferred] if preferred else []), *random.sample(_PORTS, _TRIES), 0]:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("127.0.0.1 has no free port")


@dataclasses.dataclass(frozen=True)
class Spec:
    """The command of a child process, and how to stop it.

    `stop` has pairs of a signal and the seconds to wait after it; SIGKILL follows. The kernel sends
    `on_death` if the supervisor is killed. `stdin` is for secrets, because every user of the machine
    can read command lines; `inherited` are file descriptors; `popen` names another account.
    """

    name: str
    command: list[str]
    env: dict[str, str]
    stop: tuple[tuple[int, float], ...]
    on_death: int = signal.SIGKILL
    popen: dict[str, Any] = dataclasses.field(default_factory=dict)
    stdin: str = ""
    inherited: tuple[int, ...] = ()
    folder: pathlib.Path = pathlib.Path("/")


class Child:
    """The process of a Spec. Only the main thread may use it, see die_with_parent."""

    def __init__(self, spec: Spec, *, logs: pathlib.Path, say: Callable[[str], None]) -> None:
        self.spec = spec
        self._log = logs / f"{spec.name}.log"
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._deaths = 0
        self._start_at = 0.0

    def start(self) -> None:
        spec = self.spec
        self._trim_log()
        self._started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                spec.command,
                cwd=spec.folder,
                env=spec.env,
                stdin=subprocess.PIPE if spec.stdin else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches only the supervisor, which stops its children in order.
                start_new_session=True,
                preexec_fn=die_with_parent(spec.on_death),
                pass_fds=spec.inherited,
                **spec.popen,
            )
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write(spec.stdin.encode())

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def watch(self) -> None:
        """Restart the child if it is dead: at once the first time, then after growing pauses."""
        if self.alive():
            self._trim_log()
        elif self._process is not None:
            self._bury(self._process)
        elif time.monotonic() >= self._start_at:
            self.start()

    def _bury(self, process: subprocess.Popen[bytes]) -> None:
        kill_group(process.pid)
        steady = time.monotonic() - self._started > _STEADY_SECONDS
        self._deaths = 1 if steady else self._deaths + 1
        pause = min(_LONGEST_PAUSE, 0.25 * 2 ** (self._deaths - 1))
        self._process, self._start_at = None, time.monotonic() + pause
        self._say(
            f"{self.spec.name} ended ({_exit_reason(process.returncode)}), restarting it in"
            f" {pause:g} s; see {self._log}"
        )

    def stop(self) -> None:
        """Send the stop signals in order until the child has ended, and kill the rest of its process group."""
        process = self._process
        if process is None:
            return
        for signum, seconds in (*self.spec.stop, (signal.SIGKILL, 5.0)):
            if process.poll() is None:
                process.send_signal(signum)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                break
        kill_group(process.pid)
        self._process = None

    def _trim_log(self) -> None:
        # Copy and truncate, because the child has the file open (in append mode, so this works).
        with contextlib.suppress(FileNotFoundError):
            if self._log.stat().st_size > _LOG_BYTES:
                shutil.copyfile(self._log, self._log.with_suffix(".log.1"))
                os.truncate(self._log, 0)


def _exit_reason(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
