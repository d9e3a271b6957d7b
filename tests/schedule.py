"""Which tests are exhaustive, and which process of a run takes which files, and when (`--dist loadfile`)."""

import collections
import functools
import pathlib
import re
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

_HERE = pathlib.Path(__file__).parent
# Files that start sites, build images, sweep, fuzz or wait, or whose every test takes more than three quarters of a second
# of processor time: `make test` leaves them out. Tests of other files carry the marker themselves.
EXHAUSTIVE = (
    "claims/access/test_sweep",
    "claims/test_demo_networks",
    "cluster_api/test_bad_claims", "cluster_api/test_deleted_at_once", "cluster_api/test_many",
    "cluster_api/test_pages", "concurrent/test_checks_at_work", "concurrent/test_history_over_http",
    "concurrent/test_mutants", "core/test_plain_cidrs", "deploy/helm/", "deploy/image/",
    "deploy/test_rolling_upgrade", "docs/test_rest_tutorial",
    "edges/test_api_client", "edges/test_api_fuzz",
    "edges/test_api_recorded", "edges/test_cluster_life",
    "edges/test_external_servers", "edges/test_no_secret_leaves", "edges/test_up", "edges/test_webhook_tls",
    "failure/test_drain", "failure/test_getting_on", "failure/test_postgres_stops",
    "failure/test_redis_sentinel", "failure/test_restore_drill", "failure/test_workers_stop",
    "handlers/test_faults_of_a_cluster", "handlers/test_nodes_oracle",
    "handlers/test_poison", "handlers/test_pools_any_sequence", "handlers/test_restored_backup", "handlers/test_stale_statistics",
    "observed/test_whereabouts",
    "pools/test_any_sequence", "pools/test_stale_statistics",
    "register_imports/test_large",
    "security/test_limits_under_load", "security/test_slow_clients", "security/test_turns",
    "signon/test_ldap", "signon/test_provider",
)  # fmt: skip
# The arguments of tests that ask for what is started once for their folder.
_SHARED = re.compile(r"\b(?:running: RunningTarget|site: (?:sites\.)?Site)\b")


def is_exhaustive(file: pathlib.Path) -> bool:
    return file.relative_to(_HERE).as_posix().startswith(EXHAUSTIVE)


def is_real(item: pytest.Item) -> bool:
    """Return True if the test needs a real API server, and is skipped without --real."""
    place = item.path.relative_to(_HERE).as_posix()
    if place.startswith("real/") or place.endswith("real_api.py"):
        return True
    parameters = getattr(item, "callspec", None)
    return bool(parameters and "real" in parameters.params.values())


def mark(items: list[pytest.Item]) -> None:
    """Mark exhaustive tests, and those of properties, which `make test-exhaustive` runs with more examples.

    Of a sample all but each n-th set of parameters are exhaustive.
    Exhaustive tests come first: a long file at the end of a run would run alone.
    """
    places: collections.Counter[tuple[pathlib.Path, str, bool]] = collections.Counter()
    for item in items:
        # Those for a real API server are counted apart: they are skipped without --real.
        test = (item.path, getattr(item, "originalname", item.name), is_real(item))
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
