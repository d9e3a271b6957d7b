"""Stop signals of the supervisor: they raise an exception where it does no harm."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_stop_requested = False


class Stopped(BaseException):
    """A stop signal arrived. It is no Exception, so that no `except Exception` swallows it."""


def listen() -> None:
    """Make the first stop signal raise Stopped; further ones are ignored."""
    global _stop_requested  # noqa: PLW0603  # a handler has nothing else to write to
    _stop_requested = False
    for signum in SIGNALS:
        # nohup starts the process with SIGHUP ignored: keep that.
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _on_signal)


def ignore() -> None:
    for signum in SIGNALS:
        signal.signal(signum, signal.SIG_IGN)


def check() -> None:
    """Raise Stopped if a signal arrived before and its exception was lost, e.g. in a destructor."""
    if _stop_requested:
        raise Stopped


@contextlib.contextmanager
def defer() -> Iterator[None]:
    """Defer the stop signals until the block ends, so that a process is created completely.

    Python also runs signal handlers during a fork and drops their exception there. Right after the
    fork, the exception would abort Popen, and the supervisor would lose track of the new child.
    """
    check()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release() -> None:
    """Unblock the signals in a new process, which inherits the blocked signals of its parent."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _on_signal(_signum: int, _frame: object) -> None:
    global _stop_requested  # noqa: PLW0603
    _stop_requested = True
    ignore()
    raise Stopped
