"""`ipam list` and `ipam who`: blocks, and the holders of an address, a MAC address or a name."""

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TextIO

from pools.api import lookups
from pools.core import addresses, block_fields, errors
from pools.management import output
from pools.models import Category
from pools.platform import database
from pools.register import block_lists
from pools.register.history import addresses as history_addresses, holders
from pools.register.history.addresses import Tenure

LIST_HELP = "List held and cooling blocks."
_NAMES = ("cluster", "pool", "category", "family", "state", "holder_kind", "org", "env")
_HOLDERS = ("node", "instance", "vm")  # holder kinds with an option of their own
_MOST = 10**12


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("org", "env", "cluster"):
        parser.add_argument(f"--{name}", type=_text)
    parser.add_argument("--pool", type=_text, help="name, cluster/name or id")
    holders = parser.add_mutually_exclusive_group()
    for name in _HOLDERS:
        holders.add_argument(f"--{name}", type=_text, help="a holder of this kind")
    holders.add_argument("--holder", type=_text, help="a holder of any kind")
    parser.add_argument("--holder-kind", type=_text, help="node, instance, env, vm, …")
    parser.add_argument("--category", choices=Category.values)
    parser.add_argument("--state", choices=("held", "cooling"))
    parser.add_argument("--family", type=int, choices=(4, 6))
    parser.add_argument("--limit", type=_limit, help="maximum number of rows")
    output.add_format(parser)


def list_blocks(options: Mapping[str, Any], out: TextIO) -> int:
    filters = {name: options[name] for name in _NAMES if options[name] is not None}
    for name in _HOLDERS:
        if options[name] is not None:
            filters |= {"holder_kind": name, "holder_id": options[name]}
    if options["holder"] is not None:
        filters["holder_id"] = options["holder"]
    selection = block_lists.BlockSelection(**filters)
    rows = block_lists.list_blocks(selection, limit=options["limit"])
    output.write(rows, block_lists.COLUMNS, options["output"], out)
    return output.DONE


def _text(value: str) -> str:
    if not value or "\0" in value or not value.isprintable():
        raise argparse.ArgumentTypeError("must be printable text")
    return value


def _limit(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


WHO_HELP = (
    "Find the holder of an address, MAC or name, now or at a time (status 3 when there is none)."
)
_WHO_COLUMNS = (
    "address", "state", "holder_kind", "holder_id", "holder_uid", "mac", "pool", "cluster", "org",
    "env", "since", "until",
)  # fmt: skip
_WHO_TABLE_COLUMNS = ("address", "state", "holder_kind", "holder_id", "org", "env", "pool", "cluster", "since",
          "until")  # fmt: skip
_MOST_BLOCKS = 1000  # blocks of one holder


def add_who_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_format(parser)
    parser.add_argument(
        "who", help="an address, a MAC address or a holder: node-1, shop/web-1, instance:i-7"
    )
    parser.add_argument(
        "--at", help="a time with time zone, such as 2026-05-05T14:02:00Z (default: now)"
    )
    parser.add_argument("--cluster", help="only this cluster, which may be a removed one")


def find_holders(options: Mapping[str, Any], out: TextIO) -> int:
    timestamp = history_addresses.parse_past_time(options["at"], "--at") if options["at"] else None
    cluster_id = _cluster(options["cluster"]) if options["cluster"] else None
    rows = list(_rows(options["who"].strip(), cluster_id, timestamp or database.now()))
    form = options["output"]
    columns = _WHO_TABLE_COLUMNS if form == "table" else _WHO_COLUMNS
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
        holder=holder, kind=kind, cluster_id=cluster_id, moment=timestamp, limit=_MOST_BLOCKS
    )
    yield from map(_row, page.tenures)


def _row(tenure: Tenure) -> output.Row:
    document = tenure.as_json()
    holder = {f"holder_{part}": value for part, value in document["holder"].items()}
    return {"address": document["block"], "mac": "", **document, **holder}


def _reader_row(row: Mapping[str, Any]) -> output.Row:
    """Return the row of an entry or a claim in the columns of a tenure."""
    columns = {name: row.get(name, "") for name in _WHO_COLUMNS}
    return {**columns, "since": block_fields.format_time(row["since"])}


VERBS: Mapping[str, output.Verb] = {
    "list": output.Verb(LIST_HELP, add_list_arguments, list_blocks),
    "who": output.Verb(WHO_HELP, add_who_arguments, find_holders),
}
