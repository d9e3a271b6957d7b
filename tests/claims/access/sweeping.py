"""What the sweeps of all addresses have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from django.test import Client

from tests.claims.access import answers, two_worlds

API, ADMIN = "api/v1/", "admin/"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
ENOUGH = 3  # whoever may not ask at all is not asked thirty times
FORM = "application/x-www-form-urlencoded"


def clients(owner: two_worlds.Owner) -> list[tuple[str, Client]]:
    return [(API, owner.api()), (ADMIN, owner.browser())]


def combinations(owner: two_worlds.Owner, kinds: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Foreign values at each place, others of its places being the owner's or foreign as well."""
    ids, texts = two_worlds.foreign_values()
    foreign: dict[str, list[Any]] = {"int": ids, "word": []}  # words of the site itself
    for place, kind in enumerate(kinds):
        for value in foreign.get(kind, [*ids, *texts]):
            yield tuple(
                value if one == kind else "zulu" if one != "int" else 7_000_001 for one in kinds
            )
            if len(kinds) > 1:
                own = [owner.ids() if one == "int" else ["prod"] for one in kinds]
                own[place] = [value]
                yield from itertools.product(*own)


def alike(client: Client, method: str, path: str, body: str = "{}", kind: str = "application/json") -> int:  # fmt: skip
    """The status of an answer that is the same for what is nowhere."""
    foreign = answers.ask(client, method, path, body, kind)
    absent = answers.ask(client, method, two_worlds.twin(path), two_worlds.twin(body), kind)
    one = (foreign[0], two_worlds.twin(answers.lasting(foreign[1])))
    other = (absent[0], two_worlds.twin(answers.lasting(absent[1])))
    differs = answers.difference(one, other)
    assert not differs, (method, path, body, differs)
    assert foreign[0] < 500, (method, path, foreign)
    return foreign[0]
