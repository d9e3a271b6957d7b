"""`ipam backup FILE`: everything that the register has, as one file."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, TextIO

from pools.management import output
from pools.register import backups

HELP = "Write a backup of the database: one snapshot, complete or not at all, readable by you only."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=pathlib.Path)


def run(options: dict[str, Any], out: TextIO) -> int:
    made = backups.write_backup(options["file"].absolute())
    out.write(f"{made.path}: {made.size} bytes\n")
    return output.DONE
