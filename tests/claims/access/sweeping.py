"""What the sweeps of all addresses have in common."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from django.test import Client

from tests.claims.access import answers, two_worlds

API, ADMIN = "api/v1/", "admin/"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
ENOUGH = 2  # whoever may not ask at all is not asked thirty times
FORM = "application/x-www-form-urlencoded"


def kinds_of(address: answers.Address) -> list[Any]:
    """The kinds of things that an address is about, of those that a VM owner can have, and another one.

    An id belongs to one table only: an address answers the ids of all other tables alike.
    """
    kinds = []
    for kind in two_worlds.KINDS:
        name = kind._meta.model_name
        ids = {f"{name}_id", f"{name.removeprefix('ipam')}_id"}
        if ids & {*address.names} or f"/{name}/" in address.path:
            kinds.append(kind)
    return [*kinds, next(kind for kind in two_worlds.KINDS if kind not in kinds)]


def clients(owner: two_worlds.Owner) -> list[tuple[str, Client]]:
    return [(API, owner.api()), (ADMIN, owner.browser())]


def combinations(
    owner: two_worlds.Owner, kinds: tuple[str, ...], ids: Sequence[int], texts: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Foreign values at each place, others of its places being the owner's or foreign as well."""
    foreign: dict[str, Sequence[Any]] = {"int": ids, "word": []}  # words of the site itself
    for place, kind in enumerate(kinds):
        for value in foreign.get(kind, [*ids, *texts]):
            yield tuple(
                value if item == kind else "zulu" if item != "int" else 7_000_001 for item in kinds
            )
            if len(kinds) > 1:
                values = [owner.ids() if kind == "int" else ["prod"] for kind in kinds]
                values[place] = [value]
                yield from itertools.product(*values)


_absent: WeakKeyDictionary[Client, dict[tuple[str, ...], answers.Answer]] = WeakKeyDictionary()


def some(values: Sequence[Any], turn: int, count: int) -> list[Any]:
    """So many of the values, others at each turn."""
    return [values[(turn * count + n) % len(values)] for n in range(count)]


def alike(client: Client, method: str, path: str, body: str = "{}", kind: str = "application/json") -> int:  # fmt: skip
    """The status of an answer that is the same for what is nowhere: status, headers, text and work.

    All ids that are nowhere are one, which is asked for once at each address.
    """
    foreign = answers.answer(client, method, path, body, kind)
    cached = _absent.setdefault(client, {})
    key = (method, two_worlds.nowhere(path), two_worlds.nowhere(body), kind)
    if key not in cached:
        cached[key] = answers.answer(client, *key)
    absent = cached[key]
    differs = answers.difference(_said(foreign), _said(absent))
    assert not differs, (method, path, body, differs)
    assert foreign.headers == absent.headers, (method, path, body)
    if foreign.statements != absent.statements:  # one of them may have filled a cache
        again = [answers.answer(client, method, path, body, kind), answers.answer(client, *key)]
        assert again[0].statements == again[1].statements, (method, path, body)
    assert foreign.status < 500, (method, path, foreign)
    return foreign.status


def _said(response: answers.Answer) -> tuple[int, str]:
    return response.status, two_worlds.nowhere(answers.lasting(response.text))
