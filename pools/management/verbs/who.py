"""`ipam who`: find the holders of an address, or the blocks of a MAC address or a holder."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TextIO

from pools.api import lookups
from pools.core import addresses, block_fields, errors
from pools.management import output
from pools.platform import database
from pools.register.history import addresses as history_addresses
from pools.register.history import holders
from pools.register.history.addresses import Tenure

HELP = "Find the holder of an address, MAC or name, now or at a time (status 3 when there is none)."
COLUMNS = (
    "address", "state", "holder_kind", "holder_id", "holder_uid", "mac", "pool", "cluster", "org",
    "env", "since", "until",
)  # fmt: skip
_SHOWN = ("address", "state", "holder_kind", "holder_id", "org", "env", "pool", "cluster", "since",
          "until")  # fmt: skip
MOST = 1000  # blocks of one holder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_format(parser)
    parser.add_argument(
        "who", help="an address, a MAC address or a holder: node-1, shop/web-1, instance:i-7"
    )
    parser.add_argument(
        "--at", help="a time with time zone, such as 2026-05-05T14:02:00Z (default: now)"
    )
    parser.add_argument("--cluster", help="only this cluster, which may be a removed one")


def run(options: Mapping[str, Any], out: TextIO) -> int:
    timestamp = history_addresses.parse_past_time(options["at"], "--at") if options["at"] else None
    cluster_id = _cluster(options["cluster"]) if options["cluster"] else None
    rows = list(_rows(options["who"].strip(), cluster_id, timestamp or database.now()))
    form = options["output"]
    columns = _SHOWN if form == "table" else COLUMNS
    return output.DONE if output.write(rows, columns, form, out) else output.FOUND


def _cluster(name: str) -> int:
    current_cluster = lookups.find_cluster(name)
    cluster_id = (
        current_cluster.pk if current_cluster else history_addresses.find_former_cluster(name)
    )
    if cluster_id is None:
        raise errors.NotFound(f"There is no cluster {name}, and no removed one of that name.")
    return cluster_id


def _rows(query: str, cluster_id: int | None, timestamp: datetime) -> Iterator[output.Row]:
    with contextlib.suppress(errors.InvalidInput):
        address = addresses.parse_address(query, source=addresses.InputSource.TEXT)
        matches, _ = history_addresses.find_holders(address, cluster_id=cluster_id, at=timestamp)
        yield from map(_row, matches)
        return
    named_rows = [
        row for reader in holders.ADDRESS_NAMERS for row in reader(query, cluster_id, timestamp)
    ]
    yield from (_reader_row(row) for row in named_rows)
    kind, colon, holder = query.partition(":")
    macs = {row["mac"] for row in named_rows} - {""}
    for name, of_kind in {(query, ""), *((mac, "mac") for mac in macs)}:
        yield from _holder_rows(name, of_kind, cluster_id, timestamp)
    if colon and holder and not macs:
        yield from _holder_rows(holder, kind, cluster_id, timestamp)


def _holder_rows(
    holder: str, kind: str, cluster_id: int | None, timestamp: datetime
) -> Iterator[output.Row]:
    page = holders.find_tenures(
        holder=holder, kind=kind, cluster_id=cluster_id, moment=timestamp, limit=MOST
    )
    yield from map(_row, page.tenures)


def _row(tenure: Tenure) -> output.Row:
    document = tenure.as_json()
    holder = {f"holder_{part}": value for part, value in document["holder"].items()}
    return {"address": document["block"], "mac": "", **document, **holder}


def _reader_row(row: Mapping[str, Any]) -> output.Row:
    """Return the row of an entry or a claim in the columns of a tenure."""
    columns = {name: row.get(name, "") for name in COLUMNS}
    return {**columns, "since": block_fields.format_time(row["since"])}
