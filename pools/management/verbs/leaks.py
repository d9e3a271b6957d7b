"""`ipam leaks`: list leaked blocks, which no cluster or tooling refers to any more."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pools.api import lookups
from pools.api.leaks import LeakSerializer
from pools.core import errors
from pools.management import output
from pools.models import Leak
from pools.register.leaks import detection, reports

HELP = "List leaked blocks (status 3 when there are any)."
# `ipam reclaim --from-report` reads these columns.
COLUMNS = (
    "block_id", "cidr", "pool", "cluster", "holder_kind", "holder_id", "holder_uid", "org", "env",
    "allocated_at", "missed_at", "confirmed_at", "source", "why",
)  # fmt: skip
_SHOWN = ("block_id", "cidr", "pool", "cluster", "holder_kind", "holder_id", "missed_at", "why")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_format(parser)
    parser.add_argument("--cluster", help="only blocks of this cluster: name or id")
    parser.add_argument(
        "--holder-kind", help="only holders of this kind: node, instance, env, vm, …"
    )
    parser.add_argument(
        "--suspected",
        action="store_true",
        help="list suspected leaks: blocks that only one observation missed",
    )


def run(options: Mapping[str, Any], out: TextIO) -> int:
    rows = detection.suspected_leaks() if options["suspected"] else detection.confirmed_leaks()
    if options["cluster"]:
        cluster = lookups.find_cluster(options["cluster"])
        if cluster is None:
            raise errors.NotFound(f"There is no cluster {options['cluster']}.")
        rows = rows.filter(cluster=cluster)
    if options["holder_kind"]:
        rows = rows.filter(holder_kind=options["holder_kind"])
    form = options["output"]
    columns = _SHOWN if form == "table" else COLUMNS
    count = output.write(_rows(reports.iterate_leaks(rows)), columns, form, out)
    return output.FOUND if count else output.DONE


def _rows(leaks: Iterator[Leak]) -> Iterator[output.Row]:
    serializer = LeakSerializer()
    for leak in leaks:
        row = serializer.to_representation(leak)
        yield row | {f"holder_{part}": value for part, value in row["holder"].items()}
