"""Names of any release are names of Kubernetes; what is no name of a host or an image is refused."""

import pathlib
import re
from typing import Any

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart

_LABEL = re.compile("[a-z]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1035, as names of Services have to be
_LABEL_VALUE = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@pytest.mark.parametrize(
    ("release", "values"),
    [
        ("2026-ipam", {}),
        ("7", {}),
        ("ipam.prod", {}),
        ("9.cadastre.test", {}),
        ("r" * 53, {}),
        ("r" * 36 + "---" + "r" * 14, {}),
        ("r" * 39 + ".r", {}),
        ("r", {"nameOverride": "4.2"}),
        ("r", {"nameOverride": "n" * 39 + ".n" * 12}),
        ("r", {"nameOverride": "n" * 63}),
        ("r", {"fullnameOverride": "0.f"}),
        ("r", {"fullnameOverride": "f" * 63}),
        ("r", {"fullnameOverride": "f" * 38 + "-.-f"}),
    ],
)
def test_names_of_any_release_are_names_of_kubernetes(
    helm: str, tmp_path: pathlib.Path, release: str, values: dict[str, Any]
) -> None:
    completed = chart.run_helm(
        helm, "template", release, str(chart.CHART), "--namespace=x",
        *chart.values_options("everything"), chart.path_of_values(tmp_path, values),
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    manifests = [item for item in yaml.safe_load_all(completed.stdout) if item]
    for manifest in manifests:
        metadata = manifest["metadata"]
        if not metadata["name"].startswith("system:"):
            assert _LABEL.fullmatch(metadata["name"]), metadata["name"]
        for value in metadata.get("labels", {}).values():
            assert _LABEL_VALUE.fullmatch(value), metadata["labels"]
    assert len(shipped.select(manifests, "Service")) >= 2


@pytest.mark.parametrize(
    ("values", "is_accepted"),
    [
        ({"host": "ipam.example.com"}, True),
        ({"host": "10.0.0.5"}, True),
        ({"host": "Ipam.example.com"}, False),  # of which an Ingress takes no notice: it is refused
        ({"host": "ipam..example.com"}, False),
        ({"host": "ipam.example.com."}, False),
        ({"host": "-ipam.example.com"}, False),
        ({"host": "ipam.example.com:8443"}, False),
        ({"host": "*.example.com"}, False),
        ({"extraHosts": ["a", "b.c"]}, True),
        ({"extraHosts": ["a/b"]}, False),
        ({"image": {"repository": "registry.example.com:5000/team/cadastre"}}, True),
        ({"image": {"repository": "registry.example.com/cadastre:1.2"}}, False),
        ({"image": {"repository": "cadastre@sha256"}}, False),
        ({"image": {"repository": " "}}, False),
        ({"image": {"repository": "registry.example.com/"}}, False),
        ({"image": {"tag": "1.2_3-rc.1"}}, True),
        ({"image": {"tag": "-1"}}, False),
        ({"image": {"tag": "1/2"}}, False),
        ({"nameOverride": "Ipam"}, False),
        ({"fullnameOverride": "ipam-"}, False),
    ],
    ids=str,
)
def test_what_is_no_name_is_refused(
    helm: str, tmp_path: pathlib.Path, values: dict[str, Any], is_accepted: bool
) -> None:
    completed = chart.template(helm, chart.path_of_values(tmp_path, values))
    assert (completed.returncode == 0) is is_accepted, completed.stderr
    if not is_accepted:
        assert "match" in completed.stderr


def test_a_digest_counts_and_not_the_tag(helm: str, tmp_path: pathlib.Path) -> None:
    digest = "sha256:" + "0" * 64
    values = {"image": {"repository": "r:5000/cadastre", "tag": "9", "digest": digest}}
    completed = chart.template(helm, chart.path_of_values(tmp_path, values))
    pods = shipped.pods([item for item in yaml.safe_load_all(completed.stdout) if item])
    containers = [
        container
        for pod in pods.values()
        for container in (*pod["containers"], *pod.get("initContainers", []))
    ]
    assert {container["image"] for container in containers} == {f"r:5000/cadastre@{digest}"}


def test_every_version_of_kubernetes_gets_the_same(helm: str) -> None:
    """1.27 is the oldest one that the chart is for; the newest is that of tomorrow."""
    rendered = {
        chart.rendered_text(helm, *chart.values_options("everything"), f"--kube-version={version}")
        for version in ("1.27.0", "1.30.3-gke.1", "1.99.0")
    }
    assert len(rendered) == 1
    refused = chart.template(helm, "--kube-version=1.26.15")
    assert refused.returncode == 1
    assert "incompatible with Kubernetes v1.26.15" in refused.stderr
