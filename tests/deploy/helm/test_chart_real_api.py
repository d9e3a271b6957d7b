"""A real API server takes what the chart renders: no field that it does not know, no pod refused.

Hooks are applied like the rest: no controller runs there that would finish their Job.
"""

import base64
import json
import re

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart, program
from tests.deploy.real_api import Kubectl


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
