"""The policy of docs/reference/permissions.md, read from its tables."""

import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.security.everything import OWNER, STRANGER

LADDER = ("anybody", "signed in", "viewer", "operator", "administrator", "superuser", "nobody")
API_SERVER = "API server"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"
_ROUTE = re.compile(r"\| `(\S+)`(?: \(([\w ]+)\))? \| ([A-Z ]+) \| ([\w ]+) \| (no|own|yes) \|")
_ACTION = re.compile(r"\| (\w+/\w+) \| (\w+) \| ([\w ]+) \| (no|own|yes) \|")


@dataclass(frozen=True)
class Line:
    """One method of one address; `word` is what the request asks for beside."""

    route: str
    word: str
    method: str
    role: str
    owner: str

    def allows(self, role: str) -> bool:
        """Whether somebody may do it, with objects of the VM owner."""
        if self.role == API_SERVER:
            return False
        if role == OWNER:
            return self.owner != "no"
        if role == STRANGER:
            names_one = "{" in self.route.replace("{form}", "")
            return self.owner == "yes" or (self.owner == "own" and not names_one)
        return LADDER.index(role) >= LADDER.index(self.role) and self.role != "nobody"


@dataclass(frozen=True)
class Action:
    """An action of a list of the admin."""

    table: str
    name: str
    role: str
    owner: str

    def allows(self, role: str) -> bool:
        return Line("", "", "POST", self.role, self.owner).allows(role)


def lines() -> Iterator[Line]:
    for match in _ROUTE.finditer(PAGE.read_text()):
        route, word, methods, role, owner = match.groups()
        assert role in {*LADDER, API_SERVER}, match[0]
        for method in methods.split():
            yield Line(route, word or "", method, role, owner)


def actions() -> Iterator[Action]:
    for match in _ACTION.finditer(PAGE.read_text()):
        yield Action(*match.groups())
