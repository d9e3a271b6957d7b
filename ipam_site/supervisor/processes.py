"""Processes that end with the supervisor, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

from ipam_site.supervisor import stops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PR_SET_PDEATHSIG = 1
_EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
# From 30000 on a Kubernetes node forwards ports (NodePort).
_QUIET_PORTS = range(20_000, 30_000)
_TRIES = 100
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signum: int, *, parent: int | None = None) -> Callable[[], None]:
    """For preexec_fn: the kernel sends `signum` to the child when its parent dies, kill -9 included.

    `parent` is the process that calls this, unless given. Set after subprocess has changed the user,
    because that change would clear it. The kernel means the parent's *thread*, so children are
    started from the main thread only. The child hears the signals that `stops.held` made wait.
    """
    parent = parent or os.getpid()

    def prepare() -> None:
        stops.release()
        _libc.prctl(_PR_SET_PDEATHSIG, signum)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def run(command: list[str], **popen: Any) -> tuple[int, str]:
    """Exit code and output of a command that ends by itself, or with the supervisor, however it ends."""
    with contextlib.ExitStack() as stack:
        with stops.held():
            process = stack.enter_context(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                    preexec_fn=die_with_parent(signal.SIGKILL),
                    **popen,
                )
            )
            stack.callback(end_group, process.pid)
        output, _ = process.communicate()
    return process.returncode, output


def running() -> dict[int, tuple[int, int]]:
    """Parent and process group of each process that runs; a zombie waits for its parent only."""
    found = {}
    for entry in _entries():
        with contextlib.suppress(OSError):
            # Behind the name, which may hold anything: state, parent, group (man 5 proc).
            text = (entry / "stat").read_text(errors="replace")
            state, parent, group, *_ = text.rpartition(")")[2].split()
            if state not in {"Z", "X"}:
                found[int(entry.name)] = (int(parent), int(group))
    return found


def running_in(folder: pathlib.Path) -> list[int]:
    """Processes whose working directory is the folder: servers of an `up` that was killed.

    By working directory and not by a pid file, whose number may be another process' by now.
    """
    found = []
    for entry in _entries():
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


def _entries() -> Iterator[pathlib.Path]:
    return (entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())


def stop_running_in(folder: pathlib.Path, *, signals: tuple[int, ...], seconds: float) -> None:
    """Send the signals one after the other, `seconds` apart, until nothing runs in the folder."""
    for signum in signals:
        deadline = time.monotonic() + seconds
        for pid in running_in(folder):
            send(pid, signum)
        while running_in(folder) and time.monotonic() < deadline:
            time.sleep(0.05)


def send(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


def kill_group(group: int) -> None:
    """What a dead child left of its process group; a new session makes child and group the same."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_group(group: int, *, seconds: float = 5) -> None:
    """`kill_group`, and wait until the kernel has done it: it takes its time to end who was killed."""
    kill_group(group)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(group == of for _, of in running().values()):
        time.sleep(0.01)


def free_port(preferred: int | None = None) -> int:
    """The preferred port of 127.0.0.1 when nobody listens there, else any free one.

    If possible it is none of those that the kernel gives to whoever asks for any: it is bound by
    another process, seconds later.
    """
    for port in _ports(preferred):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("127.0.0.1 has no free port")


def _ports(preferred: int | None) -> Iterator[int]:
    if preferred:
        yield preferred
    yield from _quiet_ports()
    yield 0


def _quiet_ports() -> list[int]:
    """Some ports, in no order, that the kernel gives to nobody by itself."""
    given = range(0)
    with contextlib.suppress(OSError):  # not on Linux
        first, last = map(int, _EPHEMERAL.read_text().split())
        given = range(first, last + 1)
    quiet = [port for port in _QUIET_PORTS if port not in given]
    return secrets.SystemRandom().sample(quiet, min(_TRIES, len(quiet)))
