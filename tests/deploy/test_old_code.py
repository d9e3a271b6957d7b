"""Code of the last release works on the schema of this one: its own tests pass there.

That is what runs between `migrate` and the last new pod, and after a rollback.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import psycopg
import pytest

from tests.deploy import conftest, release

# Allocate, release, list; by the services, over REST, and while others do the same.
_SUBSET = [
    "tests/pools/test_release.py",
    "tests/pools/test_cooldown.py",
    "tests/pools/test_exact.py",
    "tests/pools/test_exhausted.py",
    "tests/pools/test_many.py",
    "tests/pools/test_one_per_holder.py",
    "tests/pools/test_return_within_cooldown.py",
    "tests/edges/test_api_allocations.py",
    "tests/edges/test_api_release.py",
    "tests/edges/test_api_pools.py",
]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("release")
    commit = release.commit()
    if not commit or not release.code(folder, commit):
        ref = release.last()["ref"] or "the last commit of tests/deploy/last_release"
        pytest.skip(f"{ref} ({commit[:8]}) is not in this repository's history")
    return folder


def test_its_tests_pass(upgrade: conftest.Upgrade, old: pathlib.Path, worker_id: str) -> None:
    name = f"old_{worker_id}"
    url = conftest.recreate(f"test_{name}", template=upgrade.url.rpartition("/")[2])
    conftest.recreate(name)  # which its tests connect to first
    release.command(release.PROJECT, url, "demo", "--clear")
    with psycopg.connect(url) as connection:
        before = connection.execute("SELECT max(id) FROM django_migrations").fetchone()
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    options = ["-q", "--reuse-db", "-p", "no:cacheprovider", "-m", "not concurrent"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *_SUBSET],
        cwd=old,
        env=env | {"TEST_DATABASE_URL": conftest.url_of(name)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    # They ran on this schema, and not on one of their own.
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT max(id) FROM django_migrations").fetchone() == before
