"""`manage.py worker_health`: a process that lives and does not get on."""

import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
import redis

from ipam_site import data_folder, worker_health


@pytest.fixture
def touched(tmp_path: pathlib.Path) -> Callable[[str, float], None]:
    """A process got on so many seconds ago."""

    def touch(name: str, ago: float) -> None:
        file = tmp_path / "alive" / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (time.time() - ago,) * 2)

    return touch


@pytest.mark.parametrize(("name", "longest"), [("beat", 60), ("watcher", 60)])
def test_a_process_that_always_does_something(
    tmp_path: pathlib.Path, touched: Callable[[str, float], None], name: str, longest: float
) -> None:
    assert worker_health.stuck_reason(name, tmp_path) == f"{name} did not start"
    touched(name, longest - 10)
    assert not worker_health.stuck_reason(name, tmp_path)
    touched(name, longest + 10)
    match = re.fullmatch(
        rf"{name} has made no progress for (\d+) s", worker_health.stuck_reason(name, tmp_path)
    )
    assert match
    assert longest + 9 < int(match[1]) < longest + 60


@pytest.mark.parametrize(
    ("name", "queue"), [("worker", "ipam.default"), ("reconciler", "ipam.clusters")]
)
def test_a_worker_is_stuck_only_when_messages_wait_for_it(
    tmp_path: pathlib.Path,
    touched: Callable[[str, float], None],
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    queue: str,
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    touched(name, 1000)
    with redis.Redis.from_url(redis_url) as broker:
        broker.delete(queue)  # of a site that another test started
        assert not worker_health.stuck_reason(name, tmp_path)
        broker.lpush(queue, "a message")
        assert worker_health.stuck_reason(name, tmp_path)
        broker.delete(queue)
    # It would not come back by starting the worker again.
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert not worker_health.stuck_reason(name, tmp_path)


def test_the_command_needs_neither_django_nor_a_database(
    tmp_path: pathlib.Path, touched: Callable[[str, float], None]
) -> None:
    touched("beat", 30)
    command = [sys.executable, "manage.py", "worker_health", "beat"]
    environment = {**os.environ, "IPAM_DATA": str(tmp_path), "DATABASE_URL": "nonsense"}

    def ask(*more: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, *more], cwd=data_folder.PROJECT, env=environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    assert ask() == (0, "ok")
    assert ask("--max-age=20")[0] == 1
