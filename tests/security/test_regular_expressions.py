"""No pattern of the product takes more than time proportional to the text that somebody sends.

Every compiled pattern of every module is tried with texts that are made of the pattern itself: each part
that it repeats is pumped, after whatever comes before it, with an end that does not match.
"""

import functools
import importlib
import pathlib
import pkgutil
import re
import time
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

PACKAGES = ("ipam_site", "pools", "claims")
SHORT, LONG = 2_000, 16_000  # characters
QUICK = 0.05  # seconds of the processor for a long text: too little to compare
GROWTH = 3 * LONG / SHORT  # of the time, at most; quadratic would be the square


def _patterns() -> dict[str, re.Pattern[Any]]:
    result: dict[str, re.Pattern[Any]] = {}
    for package in PACKAGES:
        for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if ".migrations" in info.name or ".__main__" in info.name or "gunicorn" in info.name:
                continue
            try:
                module = importlib.import_module(info.name)
            except ModuleNotFoundError as error:
                if error.name != "ldap":  # of requirements-ldap.txt, which not everybody installs
                    raise
                continue
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    result.setdefault(value.pattern, value)
                    result.setdefault(f"{info.name}.{name}", value)
    return {name: value for name, value in result.items() if name != value.pattern}


PATTERNS = _patterns()
METHODS = {
    "match": "match", "fullmatch": "fullmatch",
    **dict.fromkeys(["search", "sub", "subn", "split", "findall", "finditer"], "search"),
}  # fmt: skip
_SOURCES = [
    path.read_text()
    for package in PACKAGES
    for path in (pathlib.Path(__file__).parents[2] / package).rglob("*.py")
]


def _sample(parsed: Any) -> str:
    """A text that matches the parsed pattern, or nearly."""
    return "".join(_of(operator, argument) for operator, argument in parsed)


def _of(operator: Any, argument: Any) -> str:  # noqa: C901  # one case for each operator
    match operator:
        case _constants.LITERAL:
            return chr(argument)
        case _constants.NOT_LITERAL:
            return "a" if argument != ord("a") else "b"
        case _constants.ANY:
            return "a"
        case _constants.IN:
            return _of_set(argument)
        case _constants.BRANCH:
            return _sample(argument[1][0])
        case _constants.SUBPATTERN:
            return _sample(argument[3])
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT | _constants.POSSESSIVE_REPEAT:
            return _sample(argument[2]) * max(argument[0], 1)
        case _constants.ATOMIC_GROUP:
            return _sample(argument)
    return ""


def _of_set(items: Any) -> str:
    if items[0][0] is _constants.NEGATE:
        members = re.compile("[^\\W_]")
        excluded = {chr(value) for kind, value in items[1:] if kind is _constants.LITERAL}
        return next(c for c in "a b0-.:/" if c not in excluded and (members or c))
    kind, value = items[0]
    if kind is _constants.RANGE:
        return chr(value[0])
    if kind is _constants.CATEGORY:
        return {
            _constants.CATEGORY_DIGIT: "0",
            _constants.CATEGORY_SPACE: " ",
            _constants.CATEGORY_WORD: "a",
        }.get(value, "-")
    return chr(value)


def _attacks(parsed: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what comes before, what is pumped) of each part that repeats, however deep."""
    yield before, ""
    for operator, argument in parsed:
        inner: list[Any] = []
        if operator in {
            _constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT
        }:  # fmt: skip
            inner = [argument[2]]
            if argument[1] > 20 and (pump := _sample(argument[2])):
                yield before, pump
        elif operator is _constants.BRANCH:
            inner = list(argument[1])
        elif operator is _constants.SUBPATTERN:
            inner = [argument[3]]
        for part in inner:
            yield from _attacks(part, before)
        before += _of(operator, argument)


def _texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    whole = _sample(parsed)
    for before, pump in sorted({*_attacks(parsed), ("", whole), ("", whole[:-1])}):
        for end in ("\x00", "\n"):
            if pump:
                yield before + pump * (length // len(pump)) + end
            if before:
                yield before * (length // len(before)) + end


@functools.cache
def _uses(name: str) -> list[str]:
    """How the product uses the pattern of that name: by search, match or fullmatch."""
    use = re.compile(rf"\b{name.rpartition('.')[2]}\.({'|'.join(METHODS)})\b")
    result = {METHODS[method] for text in _SOURCES for method in use.findall(text)}
    return sorted(result or METHODS.values())


def _seconds(name: str, text: Any) -> float:
    """The processor's time of the slowest way in which the product uses the pattern."""
    slowest = 0.0
    for use in _uses(name):
        began = time.process_time()
        getattr(PATTERNS[name], use)(text)
        slowest = max(slowest, time.process_time() - began)
    return slowest


@pytest.mark.sample(112)
@pytest.mark.parametrize("name", PATTERNS)
def test_time_is_proportional_to_the_text(name: str) -> None:
    pattern = PATTERNS[name]
    flat = (
        (lambda text: text.encode()) if isinstance(pattern.pattern, bytes) else (lambda text: text)
    )
    for short, long in zip(_texts(pattern, SHORT), _texts(pattern, LONG), strict=True):
        # The short one first: what explodes shows there.
        small = _seconds(name, flat(short))
        assert small < 5, short[:200]
        # The best of three: a busy machine slows some, a bad pattern all of them.
        for _ in range(3):
            large = _seconds(name, flat(long))
            small = max(small, _seconds(name, flat(short)))  # both in the same moments
            if large <= QUICK or large / max(small, 1e-4) < GROWTH:
                break
        else:
            raise AssertionError((small, large, long[:80]))


@pytest.mark.exhaustive
def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 20
