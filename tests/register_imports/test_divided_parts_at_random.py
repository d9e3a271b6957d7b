"""Prefixes that NetBox adds at random in parts: no block is lost, a second run changes nothing, and undos restore all."""

from __future__ import annotations

import random
from ipaddress import ip_address
from typing import Any

import pytest

from pools.models import Pool
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import netbox_server
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import BY, counts
from tests.register_imports.test_divided_parts import register
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)

FIRST, ADDRESSES = int(ip_address("10.0.0.0")), 4 * 256  # the last /24 of the /22 is a prefix
SEEDS = (1, 12, 15, 110, 134)  # each found a fault once


def add_address(server: NetBox, chance: random.Random) -> None:
    number = chance.randrange(1, ADDRESSES)
    server.address(f"{ip_address(FIRST + number)}/22", dns_name=f"host-{number}.example")


def add_prefix(server: NetBox, chance: random.Random) -> None:
    length = chance.choice([25, 26, 27, 28, 30, 32])
    first = FIRST + chance.randrange(ADDRESSES) & -(1 << (32 - length))
    status = chance.choice(["active", "active", "active", "container"])
    server.prefix(f"{ip_address(first)}/{length}", status)


def held(state: dict[str, list[Any]]) -> set[tuple[Any, ...]]:
    """The blocks without the mark that an address of a network that no host can have is reserved."""
    return {row[:-1] for row in state["blocks"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_and_their_undos(seed: int, settings: Any) -> None:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = True
    chance = random.Random(seed)  # noqa: S311
    with netbox_server.serving() as server:
        server.page = 1000
        server.prefix("10.0.0.0/22")
        server.prefix("10.0.3.0/24")
        for _ in range(chance.randrange(3, 12)):
            add_address(server, chance)
        mirror = source(server, cooldown_seconds=0)
        run(mirror)
        pool = Pool.objects.get(name="10.0.0.0-22")
        for number in range(3):
            factories.take(pool, factories.holder(f"vm-{number}"))
        history = []
        for _ in range(4):
            before = register()
            for _ in range(chance.randrange(1, 4)):
                add_prefix(server, chance)
            add_address(server, chance)
            created = run(mirror)
            assert created.status == "committed", created.error
            after = register()
            assert held(before) <= held(after)
            assert set(counts(run(mirror))) <= {"unchanged", "conflict", "refused"}
            assert register() == after
            history.append((created.pk, before))
        for pk, before in reversed(history):
            drafts.IMPORTS.undo(pk, author=BY)
            assert register() == before
