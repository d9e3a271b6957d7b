"""The chart at a real API server."""

import base64
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart, program
from tests.deploy.real_api import Kubectl


# --- A real API server takes what the chart renders: no field that it does not know, no pod
# refused
#
# Hooks are applied like the rest: no controller runs there that would finish their Job.
@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("example", chart.EXAMPLES)
def test_all_of_it_is_accepted(kubectl: Kubectl, example: str) -> None:
    kubectl.apply(chart.render(program.require_programs()[-1], example), "--dry-run=server")


@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("example", ["default", "everything", "external-tls"])
def test_its_pods_are_admitted_as_they_are(kubectl: Kubectl, example: str) -> None:
    manifests = chart.render(program.require_programs()[-1], example)
    pods = {name: dict(spec) for name, spec in shipped.pods(manifests).items()}
    pods |= {name: dict(pod["spec"]) for name, pod in shipped.select(manifests, "Pod").items()}
    assert len(pods) >= 7
    for name, spec in pods.items():
        # A service account that is not there yet is another refusal.
        pod_spec = {"restartPolicy": "Always"} | spec | {"serviceAccountName": "default"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"try-{name}", "namespace": "cadastre"},
            "spec": pod_spec,
        }
        options = ("--dry-run=server", "--output=json", "--filename=-")
        created = kubectl("create", *options, stdin=json.dumps(pod))
        assert created.returncode == 0, created.stderr
        assert "Warning" not in created.stderr
        stored = json.loads(created.stdout)["spec"]
        assert stored["securityContext"].items() >= pod_spec["securityContext"].items()


@pytest.mark.usefixtures("namespace")
def test_keys_are_made_once(helm: str, kubectl: Kubectl, any_server: str) -> None:
    options = (
        f"--kubeconfig={kubectl.config}",
        "--dry-run=server",
        "--namespace=cadastre",
        "--set=secrets.generateKeys=true",
    )

    def rendered() -> list[shipped.Manifest]:
        completed = chart.run_helm(helm, "template", "cadastre", any_server, *options)
        assert completed.returncode == 0, completed.stderr
        return [item for item in yaml.safe_load_all(completed.stdout) if item]

    manifests = rendered()
    keys = shipped.select(manifests, "Secret")["cadastre-keys"]
    assert set(chart.hooks(keys)) == {"pre-install", "pre-upgrade"}
    weight = int(keys["metadata"]["annotations"]["helm.sh/hook-weight"])
    job = shipped.select(manifests, "Job")["cadastre-migrate"]
    assert weight < int(job["metadata"]["annotations"]["helm.sh/hook-weight"])
    string_data = keys["stringData"]
    assert set(string_data) == {"SECRET_KEY", "IPAM_KEY_RING", "IPAM_METRICS_TOKEN"}
    assert len(base64.b64decode(string_data["IPAM_KEY_RING"])) == 32
    assert re.fullmatch(r"\w{64}", string_data["SECRET_KEY"])
    (volume,) = (
        volume["projected"]["sources"]
        for volume in shipped.pods(manifests)["web"]["volumes"]
        if volume["name"] == "secrets"
    )
    assert {"secret": {"name": "cadastre"}} in volume
    kubectl.apply([keys])
    assert "cadastre-keys" not in shipped.select(rendered(), "Secret")
    kubectl("delete", "secret", "cadastre-keys", "--namespace=cadastre")
    # Others are made, never the same.
    assert shipped.select(rendered(), "Secret")["cadastre-keys"]["stringData"] != string_data


# --- Releases in a real API server: installed, upgraded, failed and removed -----------------------
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
