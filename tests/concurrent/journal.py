"""What each client did, one JSON line before and one after every operation, in its own file.

The times are CLOCK_MONOTONIC, which all processes of one machine share. A client that is killed
leaves an operation without an end: it may have happened or not.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ALLOCATE, RELEASE = "allocate", "release"
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


@dataclass(frozen=True)
class Op:
    """One operation; `ended` is None, and `result` unknown, when nobody saw its end.

    `address` and `block` are what a release names and what an allocation got. `first` says that
    the client believed to hold the block when it released it.
    """

    kind: str
    owner: str
    pool: str
    invoked: float
    ended: float | None = None
    result: str = UNKNOWN
    address: str = ""
    block: int = 0
    code: str = ""
    first: bool = False


@dataclass(frozen=True)
class Answer:
    """What the register said: `ok`, `refused` with a code, or `unknown` (try again)."""

    result: str
    address: str = ""
    block: int = 0
    code: str = ""


@dataclass
class Writer:
    """Appends whole lines without a buffer, so that a kill -9 tears none but the last."""

    path: Path
    number: int = 0
    _file: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def begin(self, **fields: Any) -> int:
        self.number += 1
        self._write({"n": self.number, "t": time.monotonic(), **fields})
        return self.number

    def end(self, number: int, answer: Answer) -> None:
        fields = {key: value for key, value in vars(answer).items() if value}
        self._write({"n": number, "t": time.monotonic(), **fields})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


def read(path: Path) -> list[Op]:
    """The operations of one client in the order in which it began them."""
    begun: dict[int, dict[str, Any]] = {}
    for line in _lines(path):
        if "kind" in line:
            begun[line["n"]] = {"invoked": line.pop("t"), **line}
        else:
            begun[line["n"]] |= {"ended": line.pop("t"), **line}
    return [Op(**{k: v for k, v in op.items() if k != "n"}) for op in begun.values()]


def last_number(path: Path) -> int:
    return max((line["n"] for line in _lines(path)), default=0)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # torn by a kill
            continue
