"""One IPPool with a hundred thousand entries: what an edit and a full check for duplicates cost."""

import statistics
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

from django.db import connection

from benchmarks import registers
from claims.address_index import conflicts
from claims.address_index.block_sync import ChangedKeys
from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import Entry, IPPool, Network
from claims.networks import pools
from pools.platform import database, events

ENTRIES = 100_000
DUPLICATES = 500  # MAC addresses, and as many IP addresses, that stand twice
_FIRST = int(ip_address("10.64.1.0"))
_EDIT_MS = 50


def measure() -> Iterator[dict[str, Any]]:
    """The whole set comes in, one entry changes, everything is judged anew."""
    ippool = _ippool()
    specs = [_spec(number) for number in range(ENTRIES)]
    came = _seconds(lambda: _replace(ippool, specs))
    yield {"name": "entries_100000_come_in", "seconds": round(came, 1)}
    same = _seconds(lambda: _replace(ippool, specs))
    yield {"name": "entries_100000_are_the_same", "seconds": round(same, 1)}
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE claims_indexentry")
        cursor.execute("VACUUM ANALYZE claims_entry")
    yield _edit(ippool)
    yield _check(ippool)


def _ippool() -> IPPool:
    cluster = registers.cluster()
    with events.recorded_by(registers.BY):
        network = Network.objects.create(
            cluster=cluster, name="big", kind="cudn", topology="layer2", subnets=["10.64.0.0/14"]
        )
        pools.sync_pool(network, author=registers.BY)
    return ippools.create(cluster, "big", "big", author=registers.BY)


def _spec(number: int) -> EntrySpec:
    """The last ones repeat the MAC or the address of the first ones."""
    from_end = ENTRIES - number
    mac = number - ENTRIES // 2 if from_end <= DUPLICATES else number
    address = number - ENTRIES // 2 if DUPLICATES < from_end <= 2 * DUPLICATES else number
    digits = f"{mac:010x}"
    text = ":".join(["02", *(digits[i : i + 2] for i in range(0, 10, 2))])
    return EntrySpec(text, (f"{ip_address(_FIRST + address)}/14",), f"vm-{number}", "bench")


def _replace(ippool: IPPool, specs: list[EntrySpec]) -> None:
    entries.replace(ippool.pk, specs, source="api", author=registers.BY)


def _edit(ippool: IPPool) -> dict[str, Any]:
    """The check alone: what is judged again after one edit; and the whole edit beside it."""
    rows = list(Entry.objects.filter(ippool=ippool).order_by("pk")[:: ENTRIES // 50])

    def check(row: Entry) -> None:
        touched = ChangedKeys()
        address = row.ips[0].partition("/")[0]
        touched.add(ippool.network_id, row.mac, address, None)
        conflicts.recheck(touched)

    checks = [_seconds(lambda row=row: check(row)) * 1000 for row in rows]  # type: ignore[misc]
    edits = []
    for number, row in enumerate(rows):
        moved = f"{ip_address(_FIRST + ENTRIES + number)}/14"
        spec = EntrySpec(row.mac, (moved,))
        edits.append(
            _seconds(lambda row=row, spec=spec: entries.change(row.pk, spec, author=registers.BY))  # type: ignore[misc]
            * 1000
        )
    cost = statistics.median(checks)
    return {
        "name": "entries_check_of_one_edit",
        "ms": round(cost, 2),
        "slowest_ms": round(max(checks), 2),
        "whole_edit_ms": round(statistics.median(edits), 2),
        "goal_at_most": _EDIT_MS,
        "met": max(checks) <= _EDIT_MS,
    }


def _check(ippool: IPPool) -> dict[str, Any]:
    """Everything judged anew, against the two bare GROUP BYs, in turns."""
    network = ippool.network

    def bare() -> None:
        for column in ("mac", "address"):
            database.rows(_BARE.format(column=column), [network.pk])

    full, base = [], []
    for _ in range(7):
        base.append(_seconds(bare) * 1000)
        full.append(_seconds(lambda: conflicts.recheck_network(network)) * 1000)
    cost, floor = statistics.median(full), statistics.median(base)
    return {
        "name": "entries_full_check",
        "ms": round(cost, 1),
        "floor_ms": round(floor, 1),
        "ratio": round(cost / floor, 2),
        "goal_at_most": 2,
        "met": cost / floor <= 2,
    }


_BARE = """
    SELECT {column}, count(*) FROM claims_indexentry WHERE network_id = %s AND {column} IS NOT NULL
    GROUP BY {column} HAVING count(*) > 1
"""


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
