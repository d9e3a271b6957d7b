"""A child process of the supervisor: start it, restart it with back-off, stop it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from ipam_site.supervisor import processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipam_site.supervisor import account as accounts

_LOG_BYTES = 20_000_000
_LONGEST_PAUSE = 10.0
# The back-off starts anew for a child that ran this long.
_STEADY_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class Spec:
    """The command of a child process, and how to stop it.

    `stop` has pairs of a signal and the seconds to wait after it; SIGKILL follows. The kernel sends
    `on_death` if the supervisor is killed. `stdin` is for secrets, because every user of the machine
    can read command lines; `inherited` are file descriptors.
    """

    name: str
    command: list[str]
    env: dict[str, str]
    stop: tuple[tuple[int, float], ...]
    on_death: int = signal.SIGKILL
    account: accounts.Account | None = None
    stdin: str = ""
    inherited: tuple[int, ...] = ()
    folder: pathlib.Path = pathlib.Path("/")


class Child:
    """The process of a Spec. Only the main thread may use it, see processes.die_with_parent."""

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
                preexec_fn=processes.die_with_parent(spec.on_death),
                pass_fds=spec.inherited,
                **(spec.account.popen() if spec.account else {}),
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
        processes.kill_group(process.pid)
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
        processes.kill_group(process.pid)
        self._process = None

    def _trim_log(self) -> None:
        # Copy and truncate, because the child has the file open (in append mode, so this works).
        with contextlib.suppress(FileNotFoundError):
            if self._log.stat().st_size > _LOG_BYTES:
                shutil.copyfile(self._log, self._log.with_suffix(".log.1"))
                os.truncate(self._log, 0)


def _exit_reason(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
