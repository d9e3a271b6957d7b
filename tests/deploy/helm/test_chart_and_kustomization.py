"""The chart's objects are those of deploy/kustomize. Each difference is one of `DIFFERENCES`."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart, program

Objects = dict[tuple[str, str], shipped.Manifest]
# Labels that only Helm sets. The instance is in selectors too, so that a namespace can have two releases.
_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}


def _named(manifests: list[shipped.Manifest]) -> Objects:
    objects = {
        (manifest["kind"], manifest["metadata"]["name"]): copy.deepcopy(manifest)
        for manifest in manifests
    }
    assert len(objects) == len(manifests)
    return objects


def _without_labels(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_labels(item) for key, item in value.items() if key not in _LABELS}
    return [_without_labels(item) for item in value] if isinstance(value, list) else value


def _name_settings(kustomized: Objects) -> None:
    """The name of the ConfigMap has a digest of its content in a kustomization."""
    ((_, name),) = [key for key in kustomized if key[0] == "ConfigMap"]
    text = yaml.safe_dump(list(kustomized.values()))
    renamed = yaml.safe_load(text.replace(name, "cadastre"))
    kustomized.clear()
    kustomized.update(_named(renamed))


def _drop_namespace(kustomized: Objects, charted: Objects) -> None:
    """Helm creates the namespace of a release itself (--create-namespace)."""
    del kustomized["Namespace", "cadastre"]


def _drop_checksums(kustomized: Objects, charted: Objects) -> None:
    """A digest of the settings is an annotation of the chart's pods, so that a change reaches them."""
    _name_settings(kustomized)
    for manifest in charted.values():
        if manifest["kind"] in {"Deployment", "Job"}:
            metadata = manifest["spec"]["template"]["metadata"]
            assert re.fullmatch("[0-9a-f]{64}", metadata["annotations"].pop("checksum/settings"))
            assert not metadata.pop("annotations")


def _drop_hooks(kustomized: Objects, charted: Objects) -> None:
    """The migration runs before the other objects exist, with its own copies of two of them."""
    job = charted["Job", "cadastre-migrate"]
    assert chart.hooks(job) == ["pre-install", "pre-upgrade"]
    for kind, name in (("ConfigMap", "cadastre"), ("ServiceAccount", "cadastre-site")):
        early = charted.pop((kind, "cadastre-migrate"))
        assert chart.hooks(early) == chart.hooks(job)
        original = charted[kind, name]
        assert {**early, "metadata": 0} == {**original, "metadata": 0}
    del job["metadata"]["annotations"]
    pod = job["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "cadastre-migrate"
    pod["serviceAccountName"] = "cadastre-site"
    (source,) = pod["containers"][0]["envFrom"]
    assert source["configMapRef"]["name"] == "cadastre-migrate"
    source["configMapRef"]["name"] = "cadastre"


def _narrow_denial(kustomized: Objects, charted: Objects) -> None:
    """The chart denies the release's pods; the namespace of a kustomization is Cadastre's alone."""
    selector = charted["NetworkPolicy", "cadastre-default-deny"]["spec"]["podSelector"]
    assert selector == {"matchLabels": {"app.kubernetes.io/name": "cadastre"}}
    selector.clear()


def _drop_service_type(kustomized: Objects, charted: Objects) -> None:
    """The default type of a Service is written out."""
    for (kind, _), manifest in charted.items():
        if kind == "Service":
            assert manifest["spec"].pop("type") == "ClusterIP"


def _use_environment_maps(kustomized: Objects, charted: Objects) -> None:
    """The order of variables differs; none refers to another."""
    for manifest in (*kustomized.values(), *charted.values()):
        if manifest["kind"] in {"Deployment", "Job"}:
            pod = manifest["spec"]["template"]["spec"]
            for container in (*pod["containers"], *pod.get("initContainers", [])):
                container["env"] = {item["name"]: item["value"] for item in container["env"]}
                container["volumeMounts"].sort(key=lambda mount: mount["name"])
            pod["volumes"].sort(key=lambda volume: volume["name"])


DIFFERENCES: list[Callable[[Objects, Objects], None]] = [
    _drop_namespace,
    _drop_checksums,
    _drop_hooks,
    _narrow_denial,
    _drop_service_type,
    _use_environment_maps,
]


@pytest.mark.parametrize(
    ("overlay", "example"),
    [
        ("base", "default"),
        ("overlays/example", "kustomize-example"),
        ("overlays/openshift", "openshift"),
    ],
)
def test_the_objects_are_the_same(helm: str, overlay: str, example: str) -> None:
    kustomized = _named(shipped.built(overlay))
    charted = _named(_without_labels(chart.installed(chart.render(helm, example))))
    for difference in DIFFERENCES:
        difference(kustomized, charted)
    assert sorted(charted) == sorted(kustomized)
    for key, expected in kustomized.items():
        labels = charted[key]["metadata"].pop("labels")
        assert labels.items() >= expected["metadata"].pop("labels", {}).items(), key
        assert labels["app.kubernetes.io/part-of"] == "cadastre"
        assert charted[key] == expected, key


def test_selectors_name_the_release(helm: str) -> None:
    """Two releases in one namespace do not select each other's pods."""
    for manifest in chart.render(helm, "everything"):
        spec = manifest.get("spec", {})
        for key in ("selector", "podSelector"):
            selector = spec.get(key, {})
            labels = selector.get("matchLabels", selector)
            assert not selector or labels["app.kubernetes.io/instance"] == "cadastre"


def test_both_versions_of_helm_render_the_same(helm: str) -> None:
    for example in chart.EXAMPLES:
        assert chart.render(helm, example) == chart.render(program.programs()[0], example)
