"""`ipam restore FILE`: replace the register by a backup and start a recovery."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, TextIO

from pools.management import output
from pools.management.verbs import recovery
from pools.register import backups

HELP = "Restore a backup; with a recovery, allocations stop until all clusters have been listed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=pathlib.Path)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument(
        "--enter-recovery",
        action="store_true",
        help="stop allocations until each connected cluster has been listed",
    )
    mode.add_argument(
        "--without-recovery",
        action="store_true",
        help="allow allocations at once: nothing was allocated since the backup (a test copy)",
    )
    parser.add_argument(
        "--replace", action="store_true", help="delete the present content of the database"
    )
    parser.add_argument("--reason", default="", help="reason, recorded in the history")


def run(options: dict[str, Any], out: TextIO) -> int:
    file, enters = options["file"], options["enter_recovery"]
    author = recovery.author(options["reason"] or f"restored {file.name}")
    made_at = backups.restore_backup(
        file, author=author, replace=options["replace"], recovery=enters
    )
    out.write(f"Restored the backup of {made_at}.\n")
    return recovery.report_waiting_clusters(out) if enters else output.DONE
