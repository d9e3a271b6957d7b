"""A real API server with pod security, and kubectl for it.

The kinds of cert-manager, of the Prometheus operator and of OpenShift are defined here as objects of any
content: that their objects say the right thing is not proved by this. An API server that is older than what is
shipped (1.27) gets the older versions of the same kinds, and before 1.25 a pod security policy in the place of
pod security admission.
"""

import copy
import pathlib
import re
import subprocess
from typing import Any

import yaml

from tests.deploy import shipped
from tests.kube.real import RealCluster

FOREIGN = {
    "cert-manager.io": ["Certificate", "Issuer"],
    "monitoring.coreos.com": ["ServiceMonitor", "PrometheusRule"],
    "route.openshift.io": ["Route"],
}


# As the standard "restricted"; where a pod says nothing it fills in, which is looked for as well.
RESTRICTED = {
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

    def _arguments(self, *arguments: Any) -> list[str]:
        version = subprocess.run(
            [self._programs / "kube-apiserver", "--version"], capture_output=True, check=True
        ).stdout.decode()
        result = re.search(r"v1\.(\d+)", version)
        # A build that was not stamped is of 1.20.
        self.old = not result or int(result[1]) < 25
        policies = ["--enable-admission-plugins=PodSecurityPolicy"] * self.old
        return [*super()._arguments(*arguments), *policies]


def definition(group: str, kind: str) -> shipped.Manifest:
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
    served = copy.deepcopy(manifest)
    if served["kind"] == "PodDisruptionBudget" and minor < 26:
        del served["spec"]["unhealthyPodEvictionPolicy"]
        served["apiVersion"] = "policy/v1" if minor > 20 else "policy/v1beta1"
    if served["kind"] == "HorizontalPodAutoscaler" and minor < 23:
        served["apiVersion"] = "autoscaling/v2beta2"
    return served


class Kubectl:
    def __init__(self, cluster: Guarded, folder: pathlib.Path) -> None:
        self._minor = cluster.minor
        self.config = folder / "kubeconfig"
        self.config.write_text(cluster.kubeconfig())

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shipped.kubectl(), f"--kubeconfig={self.config}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def apply(self, manifests: list[shipped.Manifest], *options: str) -> None:
        text = yaml.safe_dump_all([_as_served(item, self._minor) for item in manifests])
        done = self(
            "apply", "--server-side", "--validate=strict", *options, "--filename=-", stdin=text
        )
        assert done.returncode == 0, done.stderr
        # Also what the server only warns of: deprecated versions, pods that enforcement would refuse.
        warned = [line for line in done.stderr.splitlines() if "Warning" in line]
        assert not [line for line in warned if "v1beta1" not in line and "v2beta2" not in line]
