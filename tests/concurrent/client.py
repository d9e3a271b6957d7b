"""One client: strictly one operation after the other, until told to stop or killed.

It allocates with its owner's name as the key, releases, replays keys of the past, and sends some
releases once more, late, when the block may belong to somebody else. Its successor after a kill
reads the journal and goes on with what is open, as a client that kept its notes would.
"""

import heapq
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.concurrent import doors, journal

REPLAYED = 0.1
RELEASED = 0.1  # of the steps of a client that wants more: blocks are held for a while
LATE_UP_TO = 3.0  # times the cooldown: sooner, nobody else can have the block yet
SETTLE = 15.0  # seconds after the end in which open requests are sent again


@dataclass(frozen=True)
class Plan:
    """`cooldowns` are seconds by pool, `room` is how many blocks the client wants at once."""

    path: Path
    cooldowns: Mapping[str, float]
    room: int
    until: float  # CLOCK_MONOTONIC
    seed: int
    late: float = 0.1  # share of the releases that are sent once more


@dataclass(frozen=True, order=True)
class Mine:
    """A block that the client believes to hold, or held."""

    owner: str
    pool: str
    address: str
    block: int


def run(plan: Plan, make_door: Callable[[], doors.Door]) -> None:
    client = Client(plan, make_door())
    client.take_over()
    while time.monotonic() < plan.until:
        client.step()


class Client:
    def __init__(self, plan: Plan, door: doors.Door) -> None:
        self.plan, self.door = plan, door
        self.past = journal.read(plan.path)
        self.journal = journal.Writer(plan.path, journal.last_number(plan.path))
        self.random = random.Random(plan.seed + self.journal.number)  # noqa: S311  # no secret
        self.mine: list[Mine] = []
        self.keys: list[tuple[str, str]] = []
        self.late: list[tuple[float, Mine]] = []

    def take_over(self) -> None:
        """What a killed predecessor left: its keys, its blocks, its requests without an answer."""
        released = {op.owner for op in self.past if op.kind == journal.RELEASE}
        allocations = {(op.owner, op.pool) for op in self.past if op.kind == journal.ALLOCATE}
        refused = {op.owner for op in self.past if op.result == journal.REFUSED}
        for owner, pool in sorted(allocations):
            if owner not in released | refused:
                self._allocate(owner, pool)
        releases = {op.owner: op for op in self.past if op.kind == journal.RELEASE and op.first}
        for op in releases.values():  # the last one of each owner
            if op.result == journal.UNKNOWN:
                self._release(Mine(op.owner, op.pool, op.address, op.block))

    def step(self) -> None:
        if self.late and self.late[0][0] <= time.monotonic():
            self._say_release(heapq.heappop(self.late)[1], first=False)
        elif self.keys and self.random.random() < REPLAYED:
            self._say_allocate(*self.random.choice(self.keys))
        elif len(self.mine) < self.plan.room and (not self.mine or self.random.random() > RELEASED):
            pool = self.random.choice(list(self.plan.cooldowns))
            self._allocate(f"{self.plan.path.stem}-{self.journal.number + 1}", pool)
        elif self.mine:
            self._release(self.mine.pop(self.random.randrange(len(self.mine))))

    def _allocate(self, owner: str, pool: str) -> None:
        answer = self._until_known(lambda: self._say_allocate(owner, pool))
        if answer.result == journal.OK:
            self.mine.append(Mine(owner, pool, answer.address, answer.block))
            self.keys.append((owner, pool))
        elif answer.result == journal.REFUSED:
            time.sleep(0.01)  # exhausted: let others release

    def _release(self, mine: Mine) -> None:
        self._until_known(lambda: self._say_release(mine, first=True))
        if self.random.random() < self.plan.late:
            delay = self.random.uniform(0, LATE_UP_TO * self.plan.cooldowns[mine.pool])
            heapq.heappush(self.late, (time.monotonic() + delay, mine))

    def _until_known(self, work: Callable[[], journal.Answer]) -> journal.Answer:
        """Sent again, with the same key, as long as nobody said what became of it."""
        answer = work()
        while answer.result == journal.UNKNOWN and time.monotonic() < self.plan.until + SETTLE:
            time.sleep(0.1)
            answer = work()
        return answer

    def _say_allocate(self, owner: str, pool: str) -> journal.Answer:
        number = self.journal.begin(kind=journal.ALLOCATE, owner=owner, pool=pool)
        answer = self.door.allocate(owner, pool)
        self.journal.end(number, answer)
        return answer

    def _say_release(self, mine: Mine, *, first: bool) -> journal.Answer:
        number = self.journal.begin(kind=journal.RELEASE, first=first, **vars(mine))
        answer = self.door.release(mine.owner, mine.block)
        self.journal.end(number, answer)
        return answer
