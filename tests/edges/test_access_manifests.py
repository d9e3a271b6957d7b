"""The commands of the page Connect: the manifests are those of deploy/ and the chart, for reading and for writing."""

from typing import Any

import pytest
import yaml
from django.urls import reverse

from pools.clusters import connection_test
from pools.models.clusters import Mode
from tests import factories, people
from tests.deploy import shipped

ROLES = {Mode.OBSERVED: "observe", Mode.MANAGED: "manage"}


def documents(command: str) -> dict[str, Any]:
    first, _, rest = command.partition("\n")
    assert first == "kubectl apply -f - <<'EOF'"
    text, _, last = rest.rpartition("\n")
    assert last == "EOF"
    assert "\nEOF\n" not in text
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize("mode", Mode)
def test_what_is_applied_is_what_is_shipped(mode: Mode) -> None:
    applied = documents(connection_test.apply_command(mode))
    file = f"cluster-role-{ROLES[mode]}.yaml"
    for folder in ("kubernetes", "helm/cadastre/files"):
        assert applied["ClusterRole"] == yaml.safe_load(
            (shipped.DEPLOY / folder / file).read_text()
        )
    assert applied["ClusterRoleBinding"]["roleRef"]["name"] == f"cadastre-{ROLES[mode]}"
    assert applied["ClusterRoleBinding"]["metadata"]["name"] == f"cadastre-{ROLES[mode]}"
    assert applied["Secret"]["metadata"]["name"] in connection_test.SHOW_LASTING
    account = applied["ServiceAccount"]["metadata"]
    for command in (connection_test.CREATE_TOKEN, connection_test.SHOW_LASTING):
        assert f"--namespace {account['namespace']} " in command
    assert f" token {account['name']} " in connection_test.CREATE_TOKEN


@pytest.mark.django_db
def test_the_page_shows_them() -> None:
    url = reverse("admin:pools_cluster_connect", args=[factories.cluster().pk])
    answer = people.browser().get(url)
    text = answer.content.decode()
    for command in connection_test.commands().values():
        assert command.splitlines()[0].replace("'", "&#x27;").replace("<", "&lt;") in text
    assert "CiliumPodIPPool" in text
