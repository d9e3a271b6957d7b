"""A real API server takes what deploy/kustomize builds: no field that it does not know, no pod refused.

The kinds of cert-manager and of the Prometheus operator are defined here as objects of any content: that
their objects say the right thing is not proved by this. An API server that is older than what is shipped
(1.27) gets the older versions of the same kinds, and before 1.25 a pod security policy in the place of
pod security admission.
"""

from __future__ import annotations

import copy
import json
import pathlib
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy import shipped
from tests.kube.real import RealCluster

_FOREIGN = {
    "cert-manager.io": ["Certificate", "Issuer"],
    "monitoring.coreos.com": ["ServiceMonitor", "PrometheusRule"],
}


# As the standard "restricted"; where a pod says nothing it fills in, which is looked for as well.
_RESTRICTED = {
    "apiVersion": "policy/v1beta1",
    "kind": "PodSecurityPolicy",
    "metadata": {
        "name": "restricted",
        "annotations": {
            "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "runtime/default"
        },
    },
    "spec": {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "requiredDropCapabilities": ["ALL"],
        "volumes": ["configMap", "emptyDir", "projected", "secret"],
        "readOnlyRootFilesystem": True,
        "runAsUser": {"rule": "MustRunAsNonRoot"},
        "runAsGroup": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]},
        "fsGroup": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]},
        "supplementalGroups": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]},
        "seLinux": {"rule": "RunAsAny"},
    },
}


class Guarded(RealCluster):
    """With policies for pods, where there is no pod security admission yet."""

    def _arguments(self, *given: Any) -> list[str]:
        version = subprocess.run(
            [self._programs / "kube-apiserver", "--version"], capture_output=True, check=True
        ).stdout.decode()
        found = re.search(r"v1\.(\d+)", version)
        # A build that was not stamped is of 1.20.
        self.old = not found or int(found[1]) < 25
        policies = ["--enable-admission-plugins=PodSecurityPolicy"] * self.old
        return [*super()._arguments(*given), *policies]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    if not request.config.getoption("--real"):
        pytest.skip("needs --real: make test-cluster")
    with Guarded() as running:
        if running.old:
            running.put(_RESTRICTED)
        for group, kinds in _FOREIGN.items():
            for kind in kinds:
                running.put(_definition(group, kind))
        yield running


def _definition(group: str, kind: str) -> shipped.Manifest:
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything}, "required": ["spec"]}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def _as_served(manifest: shipped.Manifest, minor: int) -> shipped.Manifest:
    one = copy.deepcopy(manifest)
    if one["kind"] == "PodDisruptionBudget" and minor < 26:
        del one["spec"]["unhealthyPodEvictionPolicy"]
        one["apiVersion"] = "policy/v1" if minor > 20 else "policy/v1beta1"
    if one["kind"] == "HorizontalPodAutoscaler" and minor < 23:
        one["apiVersion"] = "autoscaling/v2beta2"
    return one


class Kubectl:
    def __init__(self, cluster: Guarded, folder: pathlib.Path) -> None:
        self._minor = cluster.minor
        self._config = folder / "kubeconfig"
        self._config.write_text(cluster.kubeconfig())

    def __call__(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shipped.kubectl(), f"--kubeconfig={self._config}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    def apply(self, given: list[shipped.Manifest], *options: str) -> None:
        text = yaml.safe_dump_all([_as_served(one, self._minor) for one in given])
        done = self(
            "apply", "--server-side", "--validate=strict", *options, "--filename=-", given=text
        )
        assert done.returncode == 0, done.stderr
        # Also what the server only warns of: deprecated versions, pods that enforcement would refuse.
        warned = [line for line in done.stderr.splitlines() if "Warning" in line]
        assert not [line for line in warned if "v1beta1" not in line and "v2beta2" not in line]


@pytest.fixture(scope="module")
def kubectl(cluster: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(cluster, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module", params=shipped.OVERLAYS)
def applied(request: pytest.FixtureRequest, kubectl: Kubectl) -> list[shipped.Manifest]:
    """The kustomization, in the server; the example over the base, as an upgrade would be."""
    manifests = shipped.built(request.param)
    kubectl("delete", "job", "--all", "--namespace=cadastre", "--wait=true")
    kubectl.apply(manifests)
    return manifests


def test_all_of_it_is_stored(kubectl: Kubectl, applied: list[shipped.Manifest]) -> None:
    for one in applied:
        group = one["apiVersion"].rpartition("/")[0].partition("/")[0]
        kind = f"{one['kind']}.{group}".rstrip(".")
        found = kubectl("get", kind, one["metadata"]["name"], "--namespace=cadastre")
        assert found.returncode == 0, found.stderr
    level = shipped.of(applied, "Namespace")["cadastre"]["metadata"]["labels"]
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
    return kubectl("create", *options, given=json.dumps(pod))


def test_its_pods_are_admitted_as_they_are(
    kubectl: Kubectl, applied: list[shipped.Manifest]
) -> None:
    names = list(shipped.pods(applied))
    assert {*shipped.supervised(), "migrate"} <= set(names)
    for name in names:
        asked = _pod(name, applied)
        created = _create(kubectl, asked)
        assert created.returncode == 0, created.stderr
        assert "Warning" not in created.stderr
        stored = json.loads(created.stdout)["spec"]
        # Whatever had to be filled in would be refused elsewhere.
        assert stored["securityContext"].items() >= asked["spec"]["securityContext"].items()
        for kind in ("containers", "initContainers"):
            got = [one["securityContext"] for one in stored.get(kind, [])]
            assert got == [one["securityContext"] for one in asked["spec"].get(kind, [])]


@pytest.mark.parametrize(
    "loosened",
    [
        pytest.param({"runAsUser": 0, "runAsNonRoot": False}, id="root"),
        pytest.param({"allowPrivilegeEscalation": True}, id="escalation"),
        pytest.param({"privileged": True}, id="privileged"),
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
    said = "cert-manager.io/inject-ca-from=cadastre/cadastre-webhooks"
    annotated = kubectl(
        "annotate", "--local", "--filename=-", "--output=yaml", said, given=manifest
    )
    assert annotated.returncode == 0, annotated.stderr
    kubectl.apply([yaml.safe_load(annotated.stdout)], "--dry-run=server")
    names = shipped.of(applied, "Certificate", "Service")
    if "cadastre-webhooks-ca" in names:  # the overlay has the component
        (name,) = {one["metadata"]["name"] for one in applied if one["kind"] == "Certificate"} - {
            "cadastre-webhooks-ca"
        }
        assert f"cadastre/{name}" == said.partition("=")[2]
        certificate = shipped.of(applied, "Certificate")[name]["spec"]
        assert "cadastre-webhooks.cadastre.svc" in certificate["dnsNames"]
        volumes = shipped.pods(applied)["webhooks"]["volumes"]
        assert certificate["secretName"] in {
            one["secret"]["secretName"] for one in volumes if "secret" in one
        }
