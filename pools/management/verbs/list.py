"""`ipam list`: list blocks by organization, environment, holder, cluster or pool."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, TextIO

from pools.management import output
from pools.models import Category
from pools.register import block_lists

HELP = "List held and cooling blocks."
_NAMES = ("cluster", "pool", "category", "family", "state", "holder_kind", "org", "env")
_HOLDERS = ("node", "instance", "vm")  # holder kinds with an option of their own
_MOST = 10**12


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(options: Mapping[str, Any], out: TextIO) -> int:
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
