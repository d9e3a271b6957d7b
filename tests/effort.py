"""How much work something is, as a ratio to a floor in the same run.

The processor's time of this thread counts, not the wall's: a busy or slow machine fails no test.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


def _floor() -> float:
    """Seconds of the processor for a loop of 20,000 additions: some 1 ms."""
    began, total = time.thread_time(), 0
    for number in range(20_000):
        total += number
    return time.thread_time() - began


@contextmanager
def at_most(floors: float) -> Iterator[None]:
    """Fail when the block takes more than so many times the floor, in this thread."""
    floor = _floor()
    gc.disable()  # a collection costs what the whole run has left on the heap
    try:
        began = time.thread_time()
        yield
        spent = time.thread_time() - began
    finally:
        gc.enable()
    ratio = spent / max(floor, _floor())
    assert ratio <= floors, f"{ratio:.1f} times the floor, at most {floors}"
