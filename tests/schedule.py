"""Which tests are exhaustive, and which process of a run takes which files, and when (`--dist loadfile`)."""

from __future__ import annotations

import collections
import functools
import pathlib
import re
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

_HERE = pathlib.Path(__file__).parent
# Files that start sites, build images, sweep, fuzz or wait, or take more than 20 seconds of processor time: `make test`
# leaves them out. Single tests of other files carry the marker themselves.
EXHAUSTIVE = (
    "claims/access/test_sweep", "concurrent/test_history_over_http", "concurrent/test_mutants",
    "deploy/helm/", "docs/test_rest_tutorial", "deploy/image/", "deploy/test_migrations", "deploy/test_rolling_upgrade",
    "edges/test_api_fuzz", "edges/test_api_recorded", "edges/test_external_servers", "edges/test_up_",
    "edges/test_webhook_tls", "failure/test_getting_on", "failure/test_postgres_stops",
    "failure/test_redis_sentinel", "failure/test_restore_drill", "security/test_limits_under_load",
    "security/test_slow_clients", "security/test_turns", "signon/test_ldap", "signon/test_provider",
    "metrics/test_measures_processes",
)  # fmt: skip
# The arguments of tests that ask for what is started once for their folder.
_SHARED = re.compile(r"\b(?:running: RunningTarget|site: (?:sites\.)?Site)\b")


def is_exhaustive(file: pathlib.Path) -> bool:
    return file.relative_to(_HERE).as_posix().startswith(EXHAUSTIVE)


def mark(items: list[pytest.Item]) -> None:
    """Mark exhaustive tests, and those of properties, which `make test-exhaustive` runs with more examples.

    Of a sample all but each n-th set of parameters are exhaustive.
    Exhaustive tests come first: a long file at the end of a run would run alone.
    """
    places: collections.Counter[tuple[pathlib.Path, str, bool]] = collections.Counter()
    for item in items:
        parameters = getattr(item, "callspec", None)
        real = bool(parameters and "real" in parameters.params.values())  # skipped without --real
        test = (item.path, getattr(item, "originalname", item.name), real)
        sample = item.get_closest_marker("sample")
        if is_exhaustive(item.path) or (sample and places[test] % sample.args[0]):
            item.add_marker("exhaustive")
        places[test] += 1
        if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
            item.add_marker("property")
    items.sort(key=lambda item: item.get_closest_marker("exhaustive") is None)


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
