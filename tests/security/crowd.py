"""Eight attackers on loopback, bounded in count and time, and a ninth client whose answers are timed."""

import contextlib
import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator

ATTACKERS = 8
ANSWERS = 15  # of the ninth client, of which the median counts
SECOND = 1.0
TIMES_SLOWER = 10  # than its own answers without attackers, on a machine where those take long
LONGEST = 120.0  # seconds that an attacker goes on at most


class NinthClient:
    """Somebody who asks for a page with a query of the database, on a new connection each time."""

    def __init__(self, port: int, path: str = "/admin/login/") -> None:
        self._port, self._path = port, path

    def median(self) -> float:
        """Seconds from the connection to the last byte of the answer."""
        return statistics.median(self._answer() for _ in range(ANSWERS))

    def _answer(self) -> float:
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", self._path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
        return time.monotonic() - began


@contextlib.contextmanager
def attacking(attack: Callable[[int, threading.Event], None]) -> Iterator[None]:
    """Each attacker runs `attack(its number, stop)` until the end of the block."""
    stop = threading.Event()
    failures: list[Exception] = []
    until = time.monotonic() + LONGEST

    def run(number: int) -> None:
        while not stop.is_set() and time.monotonic() < until:
            try:
                attack(number, stop)
            except OSError:
                stop.wait(0.05)  # the site closed the connection; an attacker comes back
            except Exception as error:  # noqa: BLE001  # shown by the thread of the test
                failures.append(error)
                return

    threads = [threading.Thread(target=run, args=(number,)) for number in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)
    assert not failures, failures


def assert_answers_in_time(
    port: int, attack: Callable[[int, threading.Event], None], *, path: str = "/admin/login/"
) -> None:
    """The ninth client's median is below a second, or near its own without attackers."""
    ninth = NinthClient(port, path)
    alone = ninth.median()
    with attacking(attack):
        time.sleep(1)  # until all of them are at it
        attacked = ninth.median()
    assert attacked < max(SECOND, TIMES_SLOWER * alone), (alone, attacked)
