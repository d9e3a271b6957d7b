"""What deploy/ ships, as values: processes of the supervisor, of compose and of the manifests."""

import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from ipam_site.supervisor import run

PROJECT = pathlib.Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
OVERLAYS = ("base", "overlays/example", "overlays/openshift")
Manifest = dict[str, Any]

# What the processes themselves read of the environment beside settings.py and gunicorn_conf.py.
FOREIGN = {"REMAP_SIGTERM"}  # Celery: which signal is the soft shutdown


def kubectl() -> str:
    """The program of KUBEBUILDER_ASSETS, or the machine's; skips the test without any."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "/nonexistent")
    result = shutil.which("kubectl", path=folder) or shutil.which("kubectl")
    if not result:
        pytest.skip("needs kubectl")
    return result


def built(name: str) -> list[Manifest]:
    """The objects of a kustomization, in the order in which kubectl would apply them."""
    command = [kubectl(), "kustomize", str(DEPLOY / "kustomize" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr  # nothing deprecated
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def select(manifests: list[Manifest], *kinds: str) -> dict[str, Manifest]:
    return {
        manifest["metadata"]["name"]: manifest
        for manifest in manifests
        if manifest["kind"] in kinds
    }


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod's spec of each Deployment and Job, by the name without `cadastre-`."""
    return {
        name.removeprefix("cadastre-"): manifest["spec"]["template"]["spec"]
        for name, manifest in select(manifests, "Deployment", "Job").items()
    }


def container(pod: Manifest) -> Manifest:
    """The one that does the work."""
    (only,) = pod["containers"]
    result: Manifest = only
    return result


def environment(process: Manifest, manifests: list[Manifest]) -> dict[str, str]:
    """What a container sees: the ConfigMap's settings, and its own above them."""
    settings = {
        key: value
        for source in process.get("envFrom", [])
        if not source["configMapRef"].get("optional")
        for key, value in select(manifests, "ConfigMap")[source["configMapRef"]["name"]][
            "data"
        ].items()
    }
    return settings | {item["name"]: item["value"] for item in process.get("env", [])}


def compose() -> Manifest:
    result: Manifest = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    return result


def supervised() -> dict[str, tuple[list[str], str]]:
    """Of each process of `manage.py up`: what follows `python -m`, and its role."""
    return {spec.name: (spec.command[2:], spec.env["IPAM_ROLE"]) for spec in run._site_specs({})}
