"""Cadastre's own webhook, called by the API server as the printed manifest tells it to."""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pools.webhooks import configuration
from tests import eventually, factories
from tests.kube import own_site
from tests.kube.api import OLD_POOLS, POOLS, Api, Cluster, pool

pytestmark = pytest.mark.django_db(transaction=True)
DEPLOY = pathlib.Path(__file__).parents[2] / "deploy" / "kubernetes"
_KIND = "validatingwebhookconfigurations"


@pytest.fixture
def register(tmp_path: pathlib.Path, cluster: Cluster, api: Api) -> Iterator[Any]:
    """A cluster of the register, whose webhook the API server calls."""
    known = factories.cluster()
    with own_site.asked_by(cluster, known.name, tmp_path, "validate-ciliumpodippools"):
        eventually.until(lambda: _denied(api))
        yield known
        cluster.remove(_KIND, configuration.CILIUM_POD_IP_POOLS.name)
        eventually.until(lambda: not _denied(api))


def _denied(api: Api) -> bool:
    """Whether it is in force: it refuses host bits."""
    return api.call("POST", POOLS, pool("probe", "10.0.0.7/16"), dryRun="All").status == 422


def _taken(register: Any, name: str, *cidrs: str) -> None:
    created = factories.pool(*cidrs, within=register, name=name, category="pod", mask=24)
    factories.take(created, factories.holder("n1", kind="node"))


def test_what_is_in_use_is_not_removed(api: Api, register: Any, name: str) -> None:
    assert api.call("POST", POOLS, pool(name, "10.0.0.0/16", "10.1.0.0/16")).status == 201
    _taken(register, name, "10.0.0.0/16", "10.1.0.0/16")
    refused = api.apply(POOLS, pool(name, "10.1.0.0/16"), "test", force="true")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert "10.0.0.0/16 cannot be removed: it has 1 held" in refused.json["message"]
    assert "node n1 (10.0.0.0/24, held)" in refused.json["message"]
    refused = api.call("DELETE", f"{POOLS}/{name}")
    assert refused.status == 403
    assert f"the pool {name} is in use" in refused.json["message"]
    assert api.get(f"{POOLS}/{name}").json["spec"]["ipv4"]["cidrs"][0] == "10.0.0.0/16"


def test_what_is_free_may_change(api: Api, register: Any, name: str) -> None:
    assert api.call("POST", POOLS, pool(name, "10.2.0.0/16", "10.3.0.0/16")).status == 201
    _taken(register, name, "10.2.0.0/16", "10.3.0.0/16")
    assert api.apply(POOLS, pool(name, "10.2.0.0/16"), "test", force="true").status == 200
    labelled = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    assert api.call("PATCH", f"{POOLS}/{name}", labelled, content_type=merge).status == 200


def test_problems_and_warnings_reach_the_user(api: Api, register: Any, name: str) -> None:
    refused = api.call("POST", POOLS, pool(name, "10.4.0.0/16", "10.4.5.0/24"))
    assert refused.status == 422
    assert "spec.ipv4.cidrs.1: 10.4.5.0/24 overlaps 10.4.0.0/16" in refused.json["message"]
    assert "spec.ipv4.cidrs.1" in refused.causes
    odd = api.call("POST", POOLS, pool(name, "10.4.0.0/24", mask=26))
    assert odd.status == 201
    assert "only 4 blocks of /26" in odd.headers["Warning"]
    gone = api.call("DELETE", f"{POOLS}/{name}")
    assert "the register has no pool" in gone.headers["Warning"]


def test_the_old_version_is_judged_too(api: Api, register: Any, name: str) -> None:
    old = pool(name, "10.5.0.7/16") | {"apiVersion": "cilium.io/v2alpha1"}
    refused = api.call("POST", OLD_POOLS, old)
    assert "spec.ipv4.cidrs.0" in refused.json["message"]


def test_a_dry_run_is_judged_and_changes_nothing(api: Api, register: Any, name: str) -> None:
    _taken(register, name, "10.6.0.0/16")
    assert api.call("POST", POOLS, pool(name, "10.6.0.0/16")).status == 201
    assert api.call("DELETE", f"{POOLS}/{name}", dryRun="All").status == 403


def test_generated_names(api: Api, register: Any, name: str) -> None:
    unnamed = pool("x", "10.7.0.0/16")
    unnamed["metadata"] = {"generateName": f"{name}-"}
    answer = api.call("POST", POOLS, unnamed)
    assert answer.status == 201
    api.call("DELETE", f"{POOLS}/{answer.json['metadata']['name']}")


def test_the_role_that_manages_may_create_by_server_side_apply(cluster: Cluster, name: str) -> None:
    (role,) = yaml.safe_load_all((DEPLOY / "cluster-role-manage.yaml").read_text())
    token = cluster.user(f"manager-{name}", role["rules"])
    managing = Api(cluster, token=token)
    with contextlib.closing(managing):
        created: list[Any] = []

        def applied() -> bool:
            created.append(managing.apply(POOLS, pool(name, "10.8.0.0/16"), "cadastre"))
            return created[-1].status in {200, 201}

        eventually.until(applied)  # a server learns of a role a moment after it was written
        assert managing.call("DELETE", f"{POOLS}/{name}").status == 403


def test_the_manifests_are_accepted(api: Api) -> None:
    for path in sorted(DEPLOY.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if "KEY" not in str(document) and (collection := _collection(api, document)):
                answer = api.call(
                    "POST", collection, document, dryRun="All", fieldValidation="Strict"
                )
                assert answer.status == 201, answer.json


def _collection(api: Api, document: Any) -> str:
    """Its path; "" in the fake, which has no RBAC objects: its users have rules."""
    base = f"/apis/{document['apiVersion']}" if "/" in document["apiVersion"] else "/api/v1"
    answer = api.get(base)
    listed = answer.json["resources"] if answer.status == 200 else ()
    result = [
        item for item in listed if item["kind"] == document["kind"] and "/" not in item["name"]
    ]
    if not result:
        return ""
    if not result[0]["namespaced"]:
        return f"{base}/{result[0]['name']}"
    if document["metadata"]["namespace"] != "kube-system":
        document["metadata"]["namespace"] = "default"  # a dry run makes no namespace
    return f"{base}/namespaces/{document['metadata']['namespace']}/{result[0]['name']}"
