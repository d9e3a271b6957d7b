"""A real kube-apiserver, and kubectl, for what must hold on clusters that nobody here made.

All of this folder runs with `--real` only (`make test-cluster`).
"""

import json
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# Here and not in the files of its tests: each would start a browser, and Playwright runs once in a process.
from tests.e2e.conftest import browser, chromium, visit
from tests.kube.api_servers import loopback_allowed
from tests.kube.real import RealCluster
from tests.real.owned_pools import OWNERS


@pytest.fixture(scope="package")
def started_kube() -> Iterator[RealCluster]:
    """The one API server of this folder."""
    from tests.kube.real import RealCluster

    with RealCluster() as running:
        yield running


@pytest.fixture
def kube(started_kube: RealCluster) -> RealCluster:
    """The API server as the last test left it: each test begins with `kube.anew(…)`, which says what it serves."""
    return started_kube


@pytest.fixture(params=["v2alpha1", "v2"])
def version(request: pytest.FixtureRequest) -> str:
    """The version through which the owner of a pool applies it."""
    return str(request.param)


@pytest.fixture(params=list(OWNERS))
def owner(request: pytest.FixtureRequest) -> str:
    """How the owner of a pool applies it: a key of OWNERS."""
    return str(request.param)


@pytest.fixture
def kubectl(kube: RealCluster, tmp_path: pathlib.Path) -> Callable[..., str]:
    """Run kubectl as the admin: `kubectl("apply", "-f", "-", manifest={…})` returns what it prints."""
    from tests.kube.real import assets

    config = tmp_path / "kubeconfig"
    config.write_text(kube.kubeconfig())
    folder = assets()
    assert folder is not None

    def run(*arguments: str, manifest: dict[str, Any] | None = None) -> str:
        if manifest is not None:
            # For some seconds the server publishes the schema of another test's definition, by which
            # kubectl would judge; the server itself judges by the one that holds.
            arguments = (*arguments, "--validate=false")
        done = subprocess.run(
            [folder / "kubectl", f"--kubeconfig={config}", f"--cache-dir={tmp_path}", *arguments],
            input=None if manifest is None else json.dumps(manifest),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
