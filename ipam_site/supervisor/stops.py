"""The signals that ask the supervisor to stop: an exception, raised where it can do no harm."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_asked = False


class Stopped(BaseException):
    """A signal asked us to stop; not an Exception, so that nothing on the way swallows it."""


def listen() -> None:
    """From now on the first of the signals raises Stopped, and any further one is ignored."""
    global _asked  # noqa: PLW0603  # a handler has nothing else to write to
    _asked = False
    for signum in SIGNALS:
        # nohup has SIGHUP ignored, and means it.
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _on_signal)


def ignore() -> None:
    for signum in SIGNALS:
        signal.signal(signum, signal.SIG_IGN)


def check() -> None:
    """Raise Stopped when a signal came before: Python drops an exception in a destructor, say."""
    if _asked:
        raise Stopped


@contextlib.contextmanager
def held() -> Iterator[None]:
    """The signals wait until the block ends: no process is made halfway.

    Python runs handlers amidst a fork as well. There it drops their exception; a moment later the
    child runs, and Popen would be left before anybody knows of it.
    """
    check()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release() -> None:
    """For a new process, which starts with what its parent held."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _on_signal(_signum: int, _frame: object) -> None:
    global _asked  # noqa: PLW0603
    _asked = True
    ignore()
    raise Stopped
