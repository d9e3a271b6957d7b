"""Releases in a real API server: installed, upgraded, failed and removed."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from tests.deploy import shipped
from tests.deploy.helm import chart
from tests.deploy.real_api import Kubectl

GUIDE = shipped.DEPLOY.parent / "docs" / "how-to" / "install-with-helm.md"


class Helm:
    """Helm in the namespace cadastre of a cluster without controllers: `finish` ends the Job of a hook."""

    def __init__(self, program: str, folder: str, kubectl: Kubectl) -> None:
        self._program, self._folder, self.kubectl = program, folder, kubectl

    def __call__(
        self, command: str, release: str, *options: str
    ) -> subprocess.CompletedProcess[str]:
        folder = [self._folder] if command in {"install", "upgrade"} else []
        return chart.run_helm(
            self._program, command, release, *folder, "--namespace=cadastre",
            f"--kubeconfig={self.kubectl.config}", *options,
        )  # fmt: skip

    def with_hook(
        self, condition: str, command: str, release: str, *options: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Helm, and let the Job of its migration be Complete or Failed meanwhile."""
        done = threading.Event()
        thread = threading.Thread(
            target=self._finish, args=(f"{release}-cadastre-migrate", condition, done)
        )
        thread.start()
        try:
            return self(command, release, *options)
        finally:
            done.set()
            thread.join()

    def _finish(self, job: str, condition: str, done: threading.Event) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        before = "SuccessCriteriaMet" if condition == "Complete" else "FailureTarget"
        times = {"completionTime": moment, "succeeded": 1} if condition == "Complete" else {}
        conditions = [{"type": item, "status": "True"} for item in (before, condition)]
        status = json.dumps({"status": {"startTime": moment, "conditions": conditions, **times}})
        # An upgrade deletes the last Job first, which may have been patched.
        while not done.wait(0.2):
            self.kubectl(
                "patch", "job", job, "--namespace=cadastre", "--subresource=status",
                "--type=merge", f"--patch={status}",
            )  # fmt: skip

    def object_names(self) -> set[str]:
        """The objects with the chart's label, in the namespace and outside; those of hooks too."""
        kinds = (
            "all,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets,ingresses,"
            "horizontalpodautoscalers,clusterroles,clusterrolebindings,roles,rolebindings"
        )
        result = self.kubectl(
            "get", kinds, "--all-namespaces", "--output=name",
            "--selector=app.kubernetes.io/part-of=cadastre",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return set(result.stdout.split())


@pytest.fixture
def installer(helm: str, any_server: str, kubectl: Kubectl, namespace: None) -> Iterator[Helm]:
    result = Helm(helm, any_server, kubectl)
    assert result.object_names() == set()
    yield result
    for release in ("one", "two"):
        result("uninstall", release)
    for item in result.object_names():
        kubectl("delete", item, "--namespace=cadastre", "--now")


def test_two_releases_live_in_one_namespace_and_leave_nothing(installer: Helm) -> None:
    options = "--set=clusterAccess.enabled=true,ingress.enabled=true,web.autoscaling.enabled=true"
    for release in ("one", "two"):
        done = installer.with_hook("Complete", "install", release, options)
        assert done.returncode == 0, done.stderr
    names = {f"deployment.apps/{release}-cadastre-web" for release in ("one", "two")}
    assert names <= installer.object_names()
    assert installer("uninstall", "one").returncode == 0
    assert {name for name in installer.object_names() if "one-cadastre" in name} == set()
    assert installer("uninstall", "two").returncode == 0
    assert installer.object_names() == set()


@pytest.mark.parametrize("example", [name for name in chart.EXAMPLES if name != "default"])
def test_the_defaults_become_every_example_and_come_back(installer: Helm, example: str) -> None:
    """Nothing that cannot be changed differs; what only the example has goes again."""
    assert installer.with_hook("Complete", "install", "one").returncode == 0
    before = installer.object_names()
    values = chart.values_options(example)
    done = installer.with_hook("Complete", "upgrade", "one", *values)
    assert done.returncode == 0, done.stderr
    done = installer.with_hook("Complete", "upgrade", "one", "--reset-values")
    assert done.returncode == 0, done.stderr
    assert installer.object_names() == before


@pytest.mark.parametrize("release", ["2026.ipam", "r" * 53])
def test_a_release_with_any_name_is_installed(installer: Helm, release: str) -> None:
    done = installer("install", release, "--set=migrations.enabled=false,webhooks.enabled=true")
    try:
        assert done.returncode == 0, done.stderr
    finally:
        installer("uninstall", release)
    assert installer.object_names() == set()


def test_a_failed_migration_leaves_the_last_release_as_it_is(installer: Helm) -> None:
    assert installer.with_hook("Complete", "install", "one").returncode == 0
    before = _generations(installer)
    for condition, returncode in (("Failed", 1), ("Complete", 0)):
        done = installer.with_hook(condition, "upgrade", "one", "--set=settings.LOG_LEVEL=DEBUG")
        assert done.returncode == returncode, done.stderr
        assert (_generations(installer) == before) is (condition == "Failed")
    assert installer("uninstall", "one").returncode == 0
    assert installer.object_names() == set()


def _generations(installer: Helm) -> str:
    return installer.kubectl(
        "get", "deployments", "--namespace=cadastre",
        "--output=jsonpath={range .items[*]}{.metadata.name}={.metadata.generation} {end}",
    ).stdout  # fmt: skip


def test_a_failed_installation_is_removed(installer: Helm) -> None:
    """The Job stays, so that its log can be read; docs/how-to/install-with-helm.md deletes the rest."""
    assert installer.with_hook("Failed", "install", "one").returncode == 1
    assert installer("uninstall", "one").returncode == 0
    remaining = installer.object_names()
    assert "job.batch/one-cadastre-migrate" in remaining
    assert {name.partition("/")[2] for name in remaining} == {"one-cadastre-migrate"}
    (command,) = re.findall(r"(?m)^kubectl (.* delete job(?:.*\\\n)*.*)$", GUIDE.read_text())
    words = command.replace("\\\n", "").replace("instance=cadastre", "instance=one").split()
    assert installer.kubectl(*words).returncode == 0
    assert installer.object_names() == set()
