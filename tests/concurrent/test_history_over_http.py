"""Twenty seconds of chaos.py: clients over HTTP, and a site whose parts are killed all the time."""

from pathlib import Path

from tests.concurrent import chaos


def test_every_promise_is_kept(tmp_path: Path) -> None:
    report = chaos.run(tmp_path, seconds=20, clients=8, seed=1)
    assert report.violations == ()
    assert report.audit == {}
    assert report.deadlocks == 0
    assert report.too_weak(rate=50, faults=8) == []
