"""Client processes, started and started again, and somebody who troubles them."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.concurrent import checker, client, doors, journal

PAUSE = 0.4
Fault = Callable[["Crowd"], bool]  # whether it took effect


@dataclass
class Crowd:
    """`make_door` and its arguments are sent to each process, which makes its own door."""

    folder: Path
    cooldowns: Mapping[str, float]
    door: tuple[Callable[..., doors.Door], tuple[Any, ...]]
    clients: int = 8
    room: int = 12
    seconds: float = 6.0
    quiet: float = 1.0  # before the first fault
    faults: Sequence[Fault] = ()
    seed: int = 1
    late: float = 0.1
    took_effect: Counter[str] = field(default_factory=Counter)
    started: float = 0.0  # when every client was there, by the monotonic clock
    _processes: list[Any] = field(default_factory=list)
    _until: float = 0.0

    def run(self) -> None:
        """Until the time is over and every client has said its last word."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.concurrent.preloaded"])
        chance = random.Random(self.seed)  # noqa: S311  # no secret
        self._until = time.monotonic() + self.seconds
        self._processes = [self._start(context, slot) for slot in range(self.clients)]
        self.started = time.monotonic()
        while time.monotonic() < self._until:
            time.sleep(chance.uniform(0.3, 1.2) if self.faults else 0.2)
            if self.faults and time.monotonic() > self.started + self.quiet:
                self._trouble(chance.choice(self.faults))
            self._restart(context)
        for process in self._processes:
            process.join(client.SETTLE + 30)
            if process.is_alive():
                process.kill()

    def _trouble(self, fault: Fault) -> None:
        with contextlib.suppress(ProcessLookupError):
            if fault(self):
                self.took_effect[getattr(fault, "__name__", str(fault))] += 1

    def _restart(self, context: Any) -> None:
        for slot, process in enumerate(self._processes):
            if not process.is_alive():
                self._processes[slot] = self._start(context, slot)

    def _start(self, context: Any, slot: int) -> Any:
        plan = client.Plan(
            self.folder / f"c{slot}",
            self.cooldowns,
            self.room,
            until=self._until,
            seed=self.seed * 1000 + slot,
            late=self.late,
        )
        process = context.Process(target=_work, args=(plan, *self.door), daemon=True)
        process.start()
        return process

    def pid_of_one(self, chance: random.Random) -> int:
        pid: int = chance.choice(self._processes).pid
        return pid

    def history(self) -> list[journal.Op]:
        return [op for path in sorted(self.folder.glob("c*")) for op in journal.read(path)]

    def numbers(self) -> checker.Numbers:
        return checker.numbers(self.history())

    def check(self, held: Sequence[checker.Held]) -> list[checker.Violation]:
        return checker.check(self.history(), held, cooldowns=self.cooldowns)


def _work(plan: client.Plan, make: Callable[..., doors.Door], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client.run(plan, lambda: make(*arguments))


def kill_client(crowd: Crowd) -> bool:
    os.kill(crowd.pid_of_one(random.Random()), signal.SIGKILL)  # noqa: S311
    return True


def pause_client(crowd: Crowd) -> bool:
    pause(crowd.pid_of_one(random.Random()))  # noqa: S311
    return True


def pause(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(PAUSE)
    os.kill(pid, signal.SIGCONT)
