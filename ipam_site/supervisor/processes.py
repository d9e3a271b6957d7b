"""Start, find and end processes; children end with the supervisor even if it is killed."""

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

from ipam_site.supervisor import stop_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PR_SET_PDEATHSIG = 1
_EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
# Kubernetes nodes use ports from 30000 on for NodePort services.
_QUIET_PORTS = range(20_000, 30_000)
_TRIES = 100
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signum: int, *, parent: int | None = None) -> Callable[[], None]:
    """Return a preexec_fn: the kernel sends `signum` to the child when `parent` dies, also by kill -9.

    `parent` defaults to the calling process. preexec_fn runs after subprocess has changed the user,
    which would clear the setting. The kernel tracks the parent's *thread*, so only the main thread
    may start children. The function also unblocks the signals that `stop_signals.defer` blocked.
    """
    parent = parent or os.getpid()

    def prepare() -> None:
        stop_signals.release()
        _libc.prctl(_PR_SET_PDEATHSIG, signum)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def run(command: list[str], **popen: Any) -> tuple[int, str]:
    """Run a command, and return its exit code and output; it ends with the supervisor at the latest."""
    with contextlib.ExitStack() as stack:
        with stop_signals.defer():
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


def running_processes() -> dict[int, tuple[int, int]]:
    """Return (parent, process group) of each process by pid, without zombies."""
    table = {}
    for entry in _entries():
        with contextlib.suppress(OSError):
            # After the name, which may contain any character: state, parent, group (man 5 proc).
            text = (entry / "stat").read_text(errors="replace")
            state, parent, group, *_ = text.rpartition(")")[2].split()
            if state not in {"Z", "X"}:
                table[int(entry.name)] = (int(parent), int(group))
    return table


def pids_in(folder: pathlib.Path) -> list[int]:
    """Return the pids of processes with this working directory: servers of an `up` that was killed.

    A pid file would not do: its pid may belong to another process by now.
    """
    pids = []
    for entry in _entries():
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink() == folder:
                pids.append(int(entry.name))
    return pids


def _entries() -> Iterator[pathlib.Path]:
    return (entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())


def stop_processes_in(folder: pathlib.Path, *, signals: tuple[int, ...], seconds: float) -> None:
    """Send the signals in order, `seconds` apart, until no process runs in the folder."""
    for signum in signals:
        deadline = time.monotonic() + seconds
        for pid in pids_in(folder):
            send(pid, signum)
        while pids_in(folder) and time.monotonic() < deadline:
            time.sleep(0.05)


def send(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


def kill_group(group: int) -> None:
    """Kill the process group of a child; it has the child's pid, because of the new session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_group(group: int, *, seconds: float = 5) -> None:
    """Kill the process group, and wait until its processes have ended."""
    kill_group(group)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(
        group == process_group for _, process_group in running_processes().values()
    ):
        time.sleep(0.01)


def free_port(preferred: int | None = None) -> int:
    """Return the preferred port of 127.0.0.1 if it is free, else another free one.

    If possible it is no ephemeral port: the server binds it seconds later, and until then the kernel
    could give it to another process.
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
    """Return some ports in random order that are not ephemeral."""
    ephemeral = range(0)
    with contextlib.suppress(OSError):  # not on Linux
        first, last = map(int, _EPHEMERAL.read_text().split())
        ephemeral = range(first, last + 1)
    quiet = [port for port in _QUIET_PORTS if port not in ephemeral]
    return secrets.SystemRandom().sample(quiet, min(_TRIES, len(quiet)))
