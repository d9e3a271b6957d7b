"""The rows of tests/bad_input.yaml, for the tests of every door."""

import base64
import functools
import pathlib
from dataclasses import dataclass
from typing import Any

import pytest

from pools.platform import documents

FILE = pathlib.Path(__file__).parents[1] / "bad_input.yaml"


@dataclass(frozen=True)
class Case:
    """One row; its input is made, so that `value` is what a caller would send."""

    id: str
    doors: tuple[str, ...]
    kind: str
    value: Any
    expect: dict[str, Any]
    within: str | int | None = None
    format: str = ""


@functools.cache
def rows() -> tuple[Case, ...]:
    (document,) = documents.load_yaml(FILE.read_bytes())
    return tuple(
        Case(
            id=row["id"],
            doors=tuple(row["door"]),
            kind=row["kind"],
            value=_value(row),
            expect=row["expect"],
            within=row.get("in"),
            format=row.get("format", ""),
        )
        for row in document.data["cases"]
    )


def params(*, door: str, kinds: tuple[str, ...] = ()) -> list[Any]:
    """The cases of a door, as parameters of a test with their ids."""
    cases = [c for c in rows() if door in c.doors and (not kinds or c.kind in kinds)]
    return [pytest.param(case, id=case.id) for case in cases]


def _value(row: dict[str, Any]) -> Any:
    if "base64" in row:
        return base64.b64decode(row["base64"])
    if "make" in row:
        make = row["make"]
        return make.get("before", "") + make["repeat"] * make["times"] + make.get("after", "")
    return row["input"]
