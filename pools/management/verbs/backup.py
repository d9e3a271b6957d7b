"""`ipam backup FILE`: write a backup of the register to one file."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, TextIO

from pools.management import output
from pools.register import backups

HELP = "Write a backup of the database to a file that only you can read; a partial file is removed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=pathlib.Path)


def run(options: dict[str, Any], out: TextIO) -> int:
    backup = backups.write_backup(options["file"].absolute())
    out.write(f"{backup.path}: {backup.size} bytes\n")
    return output.DONE
