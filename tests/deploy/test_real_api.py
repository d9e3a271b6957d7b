"""A real API server takes what deploy/kustomize builds: no field that it does not know, no pod refused."""

import copy
import json
import re
import subprocess

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.real_api import Kubectl


@pytest.fixture(scope="module", params=shipped.OVERLAYS)
def applied(request: pytest.FixtureRequest, kubectl: Kubectl) -> list[shipped.Manifest]:
    """The kustomization, in the server; the example over the base, as an upgrade would be."""
    manifests = shipped.built(request.param)
    kubectl("delete", "job", "--all", "--namespace=cadastre", "--wait=true")
    kubectl.apply(manifests)
    return manifests


def test_all_of_it_is_stored(kubectl: Kubectl, applied: list[shipped.Manifest]) -> None:
    for item in applied:
        group = item["apiVersion"].rpartition("/")[0].partition("/")[0]
        kind = f"{item['kind']}.{group}".rstrip(".")
        result = kubectl("get", kind, item["metadata"]["name"], "--namespace=cadastre")
        assert result.returncode == 0, result.stderr
    level = shipped.select(applied, "Namespace")["cadastre"]["metadata"]["labels"]
    assert level["pod-security.kubernetes.io/enforce"] == "restricted"


def _pod(name: str, manifests: list[shipped.Manifest]) -> shipped.Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"try-{name}", "namespace": "cadastre"},
        "spec": {"restartPolicy": "Always"} | copy.deepcopy(shipped.pods(manifests)[name]),
    }


def _create(kubectl: Kubectl, pod: shipped.Manifest) -> subprocess.CompletedProcess[str]:
    options = ("--dry-run=server", "--output=json", "--filename=-")
    return kubectl("create", *options, stdin=json.dumps(pod))


def test_its_pods_are_admitted_as_they_are(
    kubectl: Kubectl, applied: list[shipped.Manifest]
) -> None:
    names = list(shipped.pods(applied))
    assert {*shipped.supervised(), "migrate"} <= set(names)
    for name in names:
        pod = _pod(name, applied)
        created = _create(kubectl, pod)
        assert created.returncode == 0, created.stderr
        assert "Warning" not in created.stderr
        stored = json.loads(created.stdout)["spec"]
        # Whatever had to be filled in would be refused elsewhere.
        assert stored["securityContext"].items() >= pod["spec"]["securityContext"].items()
        for kind in ("containers", "initContainers"):
            got = [item["securityContext"] for item in stored.get(kind, [])]
            security_contexts = [item["securityContext"] for item in pod["spec"].get(kind, [])]
            if "runAsUser" not in pod["spec"]["securityContext"]:
                # OpenShift assigns ids; nothing else is filled in.
                got = [dict(item, runAsGroup=None) for item in got]
                security_contexts = [dict(item, runAsGroup=None) for item in security_contexts]
            assert got == security_contexts


@pytest.mark.parametrize(
    "loosened",
    [
        pytest.param({"runAsUser": 0, "runAsNonRoot": False}, id="root"),
        pytest.param({"allowPrivilegeEscalation": True}, id="escalation"),
        pytest.param({"privileged": True, "allowPrivilegeEscalation": True}, id="privileged"),
        pytest.param({"capabilities": {"add": ["NET_ADMIN"]}}, id="capabilities"),
        pytest.param({"seccompProfile": {"type": "Unconfined"}}, id="seccomp"),
    ],
)
def test_others_are_refused(
    kubectl: Kubectl, applied: list[shipped.Manifest], loosened: shipped.Manifest
) -> None:
    """Otherwise the test above would prove nothing."""
    pod = _pod("web", applied)
    pod["spec"]["containers"][0]["securityContext"] |= loosened
    refused = _create(kubectl, pod)
    assert refused.returncode == 1
    assert re.search("violates PodSecurity|PodSecurityPolicy: unable to admit", refused.stderr)


def test_the_ca_is_injected_where_the_annotation_says(
    kubectl: Kubectl, applied: list[shipped.Manifest]
) -> None:
    """The command of docs/how-to/deploy.md, over the template of the webhook."""
    template = (shipped.DEPLOY / "kubernetes" / "webhook.yaml").read_text()
    service = "service: {name: cadastre-webhooks, namespace: cadastre, path: /webhooks/v1/a/b/validate-ciliumpodippools}"
    url = next(line.strip() for line in template.splitlines() if line.strip().startswith("url:"))
    manifest = template.replace(url, service).replace("    caBundle: CA\n", "")
    path = "cert-manager.io/inject-ca-from=cadastre/cadastre-webhooks"
    annotated = kubectl(
        "annotate", "--local", "--filename=-", "--output=yaml", path, stdin=manifest
    )
    assert annotated.returncode == 0, annotated.stderr
    kubectl.apply([yaml.safe_load(annotated.stdout)], "--dry-run=server")
    names = shipped.select(applied, "Certificate", "Service")
    if "cadastre-webhooks-ca" in names:  # the overlay has the component
        (name,) = {
            item["metadata"]["name"] for item in applied if item["kind"] == "Certificate"
        } - {"cadastre-webhooks-ca"}
        assert f"cadastre/{name}" == path.partition("=")[2]
        certificate = shipped.select(applied, "Certificate")[name]["spec"]
        assert "cadastre-webhooks.cadastre.svc" in certificate["dnsNames"]
        volumes = shipped.pods(applied)["webhooks"]["volumes"]
        assert certificate["secretName"] in {
            volume["secret"]["secretName"] for volume in volumes if "secret" in volume
        }
