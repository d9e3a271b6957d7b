"""The Helm chart, rendered by the helm program."""

import functools
import os
import pathlib
import subprocess
import tempfile

import yaml

from tests.deploy import shipped

FOLDER = shipped.DEPLOY / "helm"
CHART = FOLDER / "cadastre"
# Names of a rendering -> its files with values, in folder examples.
EXAMPLES = {
    "default": (),
    "minimal": ("minimal.yaml",),
    "kustomize-example": ("kustomize-example.yaml",),
    "everything": ("everything.yaml",),
    "external-tls": ("external-tls.yaml",),
    "openshift": ("openshift.yaml",),
    "openshift-reencrypt": ("openshift.yaml", "openshift-reencrypt.yaml"),
}


def run_helm(helm: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm without any file of its user."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        return subprocess.run(
            [helm, *arguments], env=environment, capture_output=True, text=True, check=False
        )


def template(helm: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run_helm(helm, "template", "cadastre", str(CHART), "--namespace=cadastre", *options)


def values_options(example: str) -> list[str]:
    return [f"--values={FOLDER / 'examples' / name}" for name in EXAMPLES[example]]


@functools.cache
def rendered_text(helm: str, *options: str) -> str:
    completed = template(helm, *options)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def render(helm: str, example: str, *options: str) -> list[shipped.Manifest]:
    """The objects of an example, hooks and tests included."""
    text = rendered_text(helm, *values_options(example), *options)
    return [manifest for manifest in yaml.safe_load_all(text) if manifest]


def hooks(manifest: shipped.Manifest) -> list[str]:
    annotations = manifest["metadata"].get("annotations", {})
    return [hook for hook in annotations.get("helm.sh/hook", "").split(",") if hook]


def installed(manifests: list[shipped.Manifest]) -> list[shipped.Manifest]:
    """Without the objects of `helm test`."""
    return [manifest for manifest in manifests if "test" not in hooks(manifest)]


def path_of_values(folder: pathlib.Path, values: shipped.Manifest) -> str:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return f"--values={path}"
