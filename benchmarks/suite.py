"""The benchmarks. A result is a dict: name, rate, floor, ratio, and `goal` and `met` if it has one."""

import itertools
import socket
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from io import StringIO
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings

from benchmarks import (
    admin_lists,
    clients,
    entries,
    fleet,
    floor,
    imports,
    metrics,
    passes,
    registers,
)
from pools.models import Category, Pool
from pools.register.allocator import allocation, requests

Result = dict[str, Any]

_BATCHES = (1_000, 10_000)
_calls = itertools.count()


def run(names: list[str], port: int, seconds: float, rows: int) -> Iterator[Result]:
    """Run the named benchmarks, all without names."""
    known: dict[str, Callable[[], Iterator[Result]]] = {
        "hot_pool": lambda: hot_pool(seconds),
        "http": lambda: over_http(port, seconds),
        "batch": batch,
        "fill": lambda: fill(rows),
        "lists": lambda: lists(rows),
        "admin_lists": lambda: admin_lists.measure(rows),
        "reconcile": reconcile,
        "fleet": over_fleet,
        "entries": entries.measure,
        "imports": imports.measure,
        "metrics": lambda: scrape(rows),
    }
    for name in names or known:
        registers.clear()
        yield from known[name]()


def _result(
    name: str,
    rate: float,
    base: float,
    goal: float | None = None,
    *,
    ratio: float | None = None,
    **more: Any,
) -> Result:
    """`ratio` where it is not that of the two rates: the median of those of single runs."""
    ratio = rate / base if ratio is None else ratio
    result: Result = {
        "name": name,
        "rate": round(rate, 3),
        "floor": round(base, 3),
        "ratio": round(ratio, 4),
    }
    if goal is not None:
        result |= {"goal": goal, "met": ratio >= goal}
    return result | more


def _cost(name: str, cost: float, base: float, goal: float) -> Result:
    """Here less is better: a cost in milliseconds against that of the plain case."""
    ratio = cost / base
    return {
        "name": name,
        "ms": round(cost, 3),
        "floor_ms": round(base, 3),
        "ratio": round(ratio, 3),
        "goal_at_most": goal,
        "met": ratio <= goal,
    }


def _allocate(pool_id: int, holder: str) -> None:
    wanted = allocation.BlockDemand(
        (allocation.Holder("instance", holder),), (), org="org", env="env"
    )
    requests.allocate(pool_id, wanted, author=registers.BY)


def _allocate_from(pool_id: int, client: int, number: int) -> None:
    _allocate(pool_id, f"{client}-{number}")


def hot_pool(seconds: float) -> Iterator[Result]:
    """One pool, and 64, from Python processes that call the service; events on."""
    for processes, goal in ((8, 0.5), (32, 0.3)):
        one = registers.pool("10.0.0.0/8").pk
        base, rate = _beside_floor(processes, seconds, partial(_allocate_from, one))
        yield _result(
            f"hot_pool_{processes}", rate, base, goal,
            pgbench=round(floor.pgbench(processes, seconds / 2), 1), deadlocks=_deadlocks(),
        )  # fmt: skip
    many = [registers.pool("10.0.0.0/12").pk for _ in range(64)]

    def allocate(client: int, number: int) -> None:
        _allocate(many[(client * 31 + number) % 64], f"{client}-{number}")

    base, rate = _beside_floor(8, seconds, allocate)
    yield _result("pools_64", rate, base, 0.7)


def _beside_floor(processes: int, seconds: float, work: clients.Work) -> tuple[float, float]:
    """(one-row INSERTs a second, `work` a second), in turn."""
    floor.make()
    base, rate = clients.rates(processes, seconds, [floor.one_insert, work])
    return base, rate


def _deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def over_http(port: int, seconds: float) -> Iterator[Result]:
    """One allocation a request: token, idempotency key, event; 8 and 16 keep-alive clients."""
    token = _token()
    for name, clients_, held, goal in (
        ("http_8", 8, 0, 0.06),
        ("http_8_at_50000_held", 8, 50_000, 0.065),  # 500 times NetBox's share of the floor
        ("http_16", 16, 0, None),
    ):
        one = registers.pool("10.0.0.0/12" if not held else "10.0.0.0/15")
        registers.fill(one, held)
        base = statistics.mean([floor.pgbench(clients_, seconds / 2)])
        taken = sorted(clients.latencies(clients_, seconds, _poster(port, token, one.pk)))
        base = (base + floor.pgbench(clients_, seconds / 2)) / 2
        p50, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
        yield _result(
            name, len(taken) / seconds, base, goal,
            p50_ms=round(p50 * 1000, 2), p99_ms=round(p99 * 1000, 2), p99_over_p50=round(p99 / p50, 1),
        )  # fmt: skip


def _token() -> str:
    get_user_model().objects.get(username="admin")
    out = StringIO()
    call_command("token", "admin", stdout=out)
    return out.getvalue().strip()


def _poster(port: int, token: str, pool_id: int) -> clients.Work:
    """A client that costs little: the server under test shares its processors with it."""
    kept: dict[str, socket.socket] = {}

    def post(client: int, number: int) -> None:
        if "connection" not in kept:
            kept["connection"] = socket.create_connection(("127.0.0.1", port))
            kept["connection"].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = f'{{"holder":{{"kind":"instance","id":"{client}-{number}"}},"org":"o","env":"e"}}'
        kept["connection"].sendall(
            f"POST /api/v1/pools/{pool_id}/allocations/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Token {token}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {pool_id}-{client}-{number}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        answer = _answer(kept["connection"])
        if not answer.startswith(b"HTTP/1.1 201 "):
            raise RuntimeError(answer[:500].decode())

    return post


def _answer(connection: socket.socket) -> bytes:
    """One whole answer with a Content-Length."""
    received = connection.recv(65536)
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, content = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(content) < length:
        content += connection.recv(65536)
    return head


def _batch_of(allocate: Callable[[int], None], number: int, _call: int) -> None:
    allocate(number)


def batch() -> Iterator[Result]:
    """Many blocks in one request, against one INSERT … SELECT of as many rows."""
    for size in _BATCHES:
        one = registers.pool("10.0.0.0/8").pk
        floor.make()
        runs = 60 if size < 10_000 else 12

        def allocate(number: int, one: int = one, size: int = size) -> None:
            holders = tuple(allocation.Holder("instance", f"{number}-{n}") for n in range(size))
            wanted = allocation.BlockDemand(holders, (), org="org", env="env")
            requests.allocate(one, wanted, author=registers.BY)

        base, cost = [], []
        for number in range(runs):  # in turn, so that both see the same machine
            base.append(clients.median_ms(1, lambda _, size=size: floor.insert(size)))
            cost.append(clients.median_ms(1, partial(_batch_of, allocate, number)))
        yield _result(
            f"batch_{size}",
            size * 1000 / statistics.median(cost),
            size * 1000 / statistics.median(base),
            0.4,
            ratio=statistics.median(b / c for b, c in zip(base, cost, strict=True)),
        )


def fill(rows: int) -> Iterator[Result]:
    """The cost of one allocation, whatever is in the pool, against that in an empty /16."""
    calls = 600
    shapes: dict[str, tuple[str, int, int]] = {
        "full_999": ("10.0.0.0/16", 64_800, 0),
        "ranges_1000": ("10.0.0.0/16", 0, 1000),
        f"held_{rows}": ("10.0.0.0/8", rows, 0),
        "ipv6_48": ("2001:db8::/48", 0, 0),
    }
    for name, (cidr, held, ranges) in shapes.items():
        registers.clear()
        plain = registers.pool("10.0.0.0/16")
        shaped = registers.pool(cidr, ranges=ranges)
        registers.fill(shaped, held)
        for statistics_ in ("stale", "fresh"):
            if statistics_ == "fresh":
                registers.analyze()
            yield _cost(f"fill_{name}_{statistics_}", *_pairwise(shaped, plain, calls // 2), 1.3)


def _pairwise(shaped: Pool, plain: Pool, calls: int) -> tuple[float, float]:
    costs: tuple[list[float], list[float]] = ([], [])
    for _number in range(calls):
        for pool, cost in zip((shaped, plain), costs, strict=True):
            holder = f"call-{pool.pk}-{next(_calls)}"
            cost.append(clients.median_ms(1, lambda _, p=pool, h=holder: _allocate(p.pk, h)))  # type: ignore[misc]
    return statistics.median(costs[0]), statistics.median(costs[1])


def reconcile() -> Iterator[Result]:
    """Passes over 10,000 objects, new and unchanged, against the bare list."""
    for name, cost, base, goal in passes.measure():
        yield _cost(name, cost, base, goal)


def scrape(rows: int) -> Iterator[Result]:
    """A scrape of a thousand pools, against a plain count of their blocks by pool and state."""
    for name, cost, base, goal in metrics.measure(rows):
        yield _cost(name, cost, base, goal)


def over_fleet() -> Iterator[Result]:
    """A hundred clusters on two workers beside one that hangs; a worker's memory over 100 passes."""
    for name, cost, base, goal in fleet.measure():
        result = _cost(name, cost, base, goal)
        if name == "worker_memory":
            result |= {"bytes": result.pop("ms"), "floor_bytes": result.pop("floor_ms")}
        yield result


def lists(rows: int) -> Iterator[Result]:
    """A page of 100 of the API and the admin over many blocks, against one over 10,000."""
    client = Client()
    client.force_login(get_user_model().objects.get(username="admin"))
    times: dict[str, dict[int, float]] = {}
    for size in (10_000, rows):
        registers.clear()
        registers.fill(registers.pool("10.0.0.0/8", category=Category.VM), size)
        registers.analyze()
        for name, path in (
            ("api_list", "/api/v1/blocks/?limit=100"),
            ("admin_list", "/admin/pools/block/"),
        ):
            times.setdefault(name, {})[size] = clients.median_ms(
                30, lambda _, path=path: _get(client, path)
            )
    for name, by_size in times.items():
        yield _cost(f"{name}_{rows}", by_size[rows], by_size[10_000], 1.5)


def _get(client: Client, path: str) -> None:
    with override_settings(ALLOWED_HOSTS=["*"]):
        answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code}")
