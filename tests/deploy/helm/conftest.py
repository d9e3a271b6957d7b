import pathlib
import re
import shutil

import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart, program
from tests.deploy.real_api import Guarded, Kubectl

_NAMESPACE = shipped.DEPLOY / "kustomize" / "base" / "namespace.yaml"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `helm` runs with each program."""
    if "helm" in metafunc.fixturenames:
        metafunc.parametrize(
            "helm", program.programs() or [""], ids=lambda path: path.rpartition("/")[2]
        )


@pytest.fixture(autouse=True)
def _helm_is_installed() -> None:
    program.require_programs()


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> None:
    """The namespace, restricted, as docs/how-to/install-with-helm.md makes it."""
    kubectl.apply([yaml.safe_load(_NAMESPACE.read_text())])
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "cadastre"},
    }
    kubectl.apply([account])


@pytest.fixture
def any_server(tmp_path: pathlib.Path, cluster: Guarded) -> str:
    """The chart for the API server of the tests, which may be older than what the chart is for, or without a version."""
    folder = shutil.copytree(chart.CHART, tmp_path / "cadastre")
    description = folder / "Chart.yaml"
    description.write_text(re.sub(r"(?m)^kubeVersion.*\n", "", description.read_text()))
    if cluster.minor < 26:
        pod = folder / "templates" / "_pod.tpl"
        text = re.sub(r".*unhealthyPodEvictionPolicy.*\n", "", pod.read_text())
        text = text.replace("policy/v1\n", "policy/v1beta1\n")
        pod.write_text(text.replace("autoscaling/v2\n", "autoscaling/v2beta2\n"))
    return str(folder)
