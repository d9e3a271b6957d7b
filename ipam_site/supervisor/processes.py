"""Start and end processes, and the signals that stop the supervisor.

Children end with the supervisor even if it is killed. A stop signal is only recorded: whoever waits, waits
with `pause`, which raises Stopped. So no signal interrupts the start of a process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
# By default no ephemeral ports: a server binds its port seconds later, and until then the kernel could give
# it to another process. Kubernetes nodes use ports from 30000 on for NodePort services.
_PORTS = range(20_000, 30_000)
_TRIES = 100
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
