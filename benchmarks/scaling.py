"""A simulation of many clusters on few processes: `python -m benchmarks.scaling --help`.

It needs no database: it plays the schedule of pools/clusters/reconcile/leases.py (a full pass of each cluster
every ten minutes, the longest due first, one worker per cluster, back-off with jitter) and the
watcher's events against given costs, and tells how old the picture of a cluster gets and how busy the
processes are. The costs are what `python -m benchmarks reconcile` measures on your machine.
"""

import argparse
import heapq
import json
import random
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Seconds, counts and shares; `cpu` is what a pass over one cluster costs, `wait` the network."""

    clusters: int = 1_000
    objects: int = 10_000
    workers: int = 8  # processes that run passes
    every: float = 600
    cpu_per_object: float = 60e-6  # an unchanged one: list, parse, compare
    wait_per_page: float = 0.03  # 500 objects: the API server's time and the way there
    changes: float = 0.01  # share of the objects that change in a minute; the watchers tell of them
    cpu_per_change: float = 2e-3
    hanging: int = 10  # clusters whose API server answers nothing until the time-out
    time_out: float = 30
    hours: float = 2


def pass_seconds(plan: Plan) -> float:
    """How long a worker is busy with one well cluster."""
    pages = -(-plan.objects // 500)
    return plan.objects * plan.cpu_per_object + pages * plan.wait_per_page


def simulate(plan: Plan, seed: int = 1) -> dict[str, float]:
    """Ages of the clusters' pictures at the beginning of their next pass, and how busy workers are."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    due = [(chance.uniform(0, plan.every), number) for number in range(plan.clusters)]
    heapq.heapify(due)
    free = [0.0] * plan.workers  # when each worker is free again
    failures = [0] * plan.clusters
    last = [0.0] * plan.clusters
    ages: list[float] = []
    delays: list[float] = []
    busy, end = 0.0, plan.hours * 3600
    while due and due[0][0] < end:
        at, number = heapq.heappop(due)
        begun = max(at, heapq.heappop(free))
        hangs = number < plan.hanging
        length = plan.time_out if hangs else pass_seconds(plan) * chance.uniform(0.8, 1.5)
        heapq.heappush(free, begun + length)
        busy += length
        delays.append(begun - at)
        if hangs:
            failures[number] += 1
            pause = min(300.0, 5 * 2.0 ** failures[number]) * chance.uniform(0.75, 1.25)
        else:
            if last[number]:
                ages.append(begun + length - last[number])
            last[number] = begun
            pause = plan.every
        heapq.heappush(due, (begun + length + pause, number))
    percentiles = statistics.quantiles(ages, n=100)
    events = plan.clusters * plan.objects * plan.changes / 60
    return {
        "pass_seconds": round(pass_seconds(plan), 2),
        "workers_busy": round(busy / (plan.workers * end), 3),
        "delay_p99_seconds": round(statistics.quantiles(delays, n=100)[98], 1),
        "age_p50_seconds": round(percentiles[49], 1),
        "age_p99_seconds": round(percentiles[98], 1),
        "listed_megabytes_per_second": round(plan.clusters * plan.objects * 1.4e-3 / plan.every, 1),
        "events_per_second": round(events, 1),
        "cores_for_events": round(events * plan.cpu_per_change, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    for name, value in vars(Plan()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    plan = Plan(**vars(parser.parse_args()))
    print(json.dumps({**vars(plan), **simulate(plan)}, indent=1))


if __name__ == "__main__":
    main()
