"""What an index of address parts has for each address or MAC that contains a text (pools/sql/pairs.sql)."""

from __future__ import annotations

import enum
from itertools import pairwise


class Notation(enum.Enum):
    """The texts of an octet, or what stands beside a colon of an IPv6 address."""

    IPV4 = tuple(str(number) for number in range(256))
    MAC = tuple(f"{number:02x}" for number in range(256))
    IPV6 = ("", *"0123456789abcdef")


def alternatives(part: str, notation: Notation) -> list[list[str]]:
    """Return lists of index elements: an address that contains the part (`20.3.7`) has one of each list.

    The first and the last octet of the part may be the end and the beginning of longer ones.
    """
    pieces = part.replace(".", ":").split(":")
    if len(pieces) == 1:
        return [pieces]
    pairs = list(pairwise(pieces))
    if notation is Notation.IPV6:
        pairs = [(before[-1:], after[:1]) for before, after in pairs]
    last = len(pairs) - 1
    elements = []
    for position, (before, after) in enumerate(pairs):
        befores = [before] if position else _ending(notation, before)
        afters = [after] if position < last else _beginning(notation, after)
        elements.append([f"{one}:{other}" for one in befores for other in afters])
    return elements


def _ending(notation: Notation, end: str) -> list[str]:
    return [text for text in notation.value if text.endswith(end)]


def _beginning(notation: Notation, beginning: str) -> list[str]:
    return [text for text in notation.value if text.startswith(beginning)]
