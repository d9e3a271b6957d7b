"""An allocation with a key and its event, a release, a block and a page cost one round trip after that of the token.

Counted on the wire (libpq's trace), because these statements go past Django's cursor and its log.
"""

import pathlib
from functools import partial
from typing import Any

import pytest
from django.db import connection
from psycopg import pq

from pools.models import Event, IdempotencyKey
from tests.claims.access import two_worlds
from tests.edges import api as apis

WARM = 8  # statements are prepared when they come for the sixth time


def round_trips(trace: pathlib.Path, work: Any) -> int:
    pgconn = connection.connection.pgconn
    with trace.open("w") as file:
        pgconn.trace(file.fileno())
        pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            work()
        finally:
            pgconn.untrace()
    messages = [line.split("\t") for line in trace.read_text().splitlines()]
    # Whatever is asked ends with one of these.
    return sum(line[0] == "F" and line[2] in {"Sync", "Query"} for line in messages)


@pytest.fixture
def round_trip_counts(tmp_path: pathlib.Path) -> list[int]:
    """The round trips of ten allocations, each for a new holder and under a new key."""
    api = apis.Api()
    api.cluster()
    path = f"pools/{api.vm_pool('10.0.0.0/16')}/allocations/"

    def ask(name: str) -> None:
        # As at the beginning of a request on a connection that is kept (CONN_HEALTH_CHECKS).
        connection.health_check_enabled, connection.health_check_done = True, False
        body = apis.holder(name) | {"org": "o", "env": "e"}
        assert api("POST", path, body, Idempotency_Key=name).status_code == 201

    for number in range(WARM):
        ask(f"warm-{number}")
    return [round_trips(tmp_path / "trace", lambda n=n: ask(f"v-{n}")) for n in range(10)]  # type: ignore[misc]


def test_an_allocation_asks_twice(round_trip_counts: list[int]) -> None:
    # Now and then one of them fills the window up ahead (allocation._finish_allocation).
    assert sorted(round_trip_counts)[:9] == [2] * 9


def test_a_release_and_reading_blocks_ask_twice(tmp_path: pathlib.Path) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/20", cooldown=60)
    blocks = [api.take(pool, f"vm-{number}") for number in range(WARM + 2)]

    def release(block: dict[str, Any]) -> None:
        body = {"holder": {"kind": "vm", "id": block["holder"]["id"]}}
        assert api("POST", f"blocks/{block['id']}/release/", body).status_code == 200

    def read(path: str) -> None:
        assert api("GET", path).status_code == 200

    def read_page(_block: dict[str, Any]) -> None:
        read("blocks/?limit=2")

    def read_block(block: dict[str, Any]) -> None:
        read(f"blocks/{block['id']}/")

    for work in (release, read_block, read_page):
        trips = [round_trips(tmp_path / "trace", partial(work, block)) for block in blocks]
        assert trips[WARM:] == [2, 2]


def test_key_and_event_are_among_them(round_trip_counts: list[int]) -> None:
    assert IdempotencyKey.objects.filter(key__startswith="v-").count() == 10
    assert Event.objects.filter(holder_id__startswith="v-").count() == 10


@pytest.mark.exhaustive
@pytest.mark.parametrize("author", ["local", "cluster"])
def test_what_a_vm_owner_sees_is_two_round_trips_more(tmp_path: pathlib.Path, author: str) -> None:
    """What clusters let them do, and which namespaces are theirs, whoever says so."""
    owner = two_worlds.Owner(author)
    callers = [(owner.api(), "owner"), (apis.Api("operator").client, "operator")]
    path = f"/api/v1/ippools/{owner.ids()[1]}/entries/7/"
    trips = {}
    for client, who in callers:
        for _ in range(WARM):
            assert client.get(path).status_code == 404
        trips[who] = round_trips(tmp_path / "trace", lambda c=client: c.get(path))  # type: ignore[misc]
    assert trips["owner"] - trips["operator"] == 2
