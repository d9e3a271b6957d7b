"""`ipam restore FILE`: the register as a backup has it, and nothing allocated meanwhile."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, TextIO

from pools.management import output
from pools.management.verbs import recovery
from pools.register import backups

HELP = "Restore a backup; nothing is allocated then until every connected cluster was listed once."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=pathlib.Path)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument(
        "--enter-recovery", action="store_true", help="allocate nothing until clusters were listed"
    )
    how.add_argument(
        "--without-recovery",
        action="store_true",
        help="nothing was allocated since the backup (a copy for a test)",
    )
    parser.add_argument("--replace", action="store_true", help="what the database has now is lost")
    parser.add_argument("--reason", default="", help="why, for the history")


def run(options: dict[str, Any], out: TextIO) -> int:
    file, enters = options["file"], options["enter_recovery"]
    author = recovery.author(options["reason"] or f"restored {file.name}")
    made_at = backups.restore_backup(
        file, author=author, replace=options["replace"], recovery=enters
    )
    out.write(f"The register is that of {made_at}.\n")
    return recovery.said(out) if enters else output.DONE
