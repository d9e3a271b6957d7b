"""Which process of a test run takes which files, and when (pytest-xdist, `--dist loadfile`)."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

from xdist.scheduler import LoadFileScheduling

_HERE = pathlib.Path(__file__).parent
# Files that take a minute and more come first: one of them at the end would run alone.
_LONG = (
    "failure/", "security/", "deploy/image/", "deploy/test_o", "deploy/test_up", "edges/test_up",
    "edges/test_api_recorded", "edges/test_api_fuzz", "edges/test_webhook_tls", "claims/access/test_sweep", "signon/",
)  # fmt: skip
# The arguments of tests that ask for what is started once for their folder.
_SHARED = re.compile(
    r"\b(?:target: Target|site: (?:sites\.)?Site|upgrade: (?:conftest\.)?Upgrade)\b"
)


def is_short(path: pathlib.Path) -> bool:
    return not path.relative_to(_HERE).as_posix().startswith(_LONG)


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """The files of a folder that share a running site (or another large fixture) go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid.partition("::")[0])


@functools.cache
def _scope(file: str) -> str:
    path = pathlib.Path(file)
    shares = path.is_file() and _SHARED.search(path.read_text())
    return str(path.parent) if shares else file


def scheduler(config: Any, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None
