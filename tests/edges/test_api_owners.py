"""Instances' and public IPv4 addresses say whom they serve; a cluster's prefix bounds its pools."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import AllocationRequest, Block
from pools.register.demo import demo
from tests import factories, people
from tests.edges.api import PREFIX, Api


@pytest.fixture
def api(settings: Any) -> Api:
    settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS = False
    return Api()


def _ipv4(api: Api) -> int:
    api.cluster("edge")
    body = {"cluster": "edge", "name": "public", "category": "ipv4"}
    body |= {"ipv4": {"mask_size": 32, "cidrs": ["192.0.2.0/28"]}}
    return int(api.create("pools/", body)["id"])


def _refused(answer: Any) -> list[str]:
    assert answer.status_code == 400, answer.content
    problem = answer.json()
    assert problem["code"] == "owner_required"
    assert {error["code"] for error in problem["errors"]} == {"owner_required"}
    return [error["field"] for error in problem["errors"]]


def _instance(name: str = "i-1") -> dict[str, str]:
    return {"kind": "instance", "id": name}


@pytest.mark.sample(4)
@pytest.mark.parametrize("more", [{}, {"count": 1, "wait": True}, {"family": 6},
                                  {"cidr": "2001:db8:10:1::9/128"}],
                         ids=["one", "wait", "family", "exact"])  # fmt: skip
def test_an_instance_names_its_org_and_env(api: Api, more: dict[str, Any]) -> None:
    api.cluster(cluster_prefix=PREFIX)
    path = f"pools/{api.pool('instance')}/allocations/"
    vm = {"holder": {"kind": "vm", "id": "a"}} | more
    assert _refused(api("POST", path, vm)) == ["org", "env", "holder.kind"]
    assert _refused(api("POST", path, {"holder": _instance(), "org": "acme"} | more)) == ["env"]
    assert _refused(api("POST", path, {"holder": _instance(), "env": "prod"} | more)) == ["org"]
    assert not Block.objects.filter(state="held").exists()
    assert not AllocationRequest.objects.exists()
    done = api("POST", path, {"holder": _instance(), "org": "acme", "env": "prod"} | more)
    assert done.status_code == 201, done.content


def test_a_batch_names_each_holder_that_does_not_fit(api: Api) -> None:
    api.cluster(cluster_prefix=PREFIX)
    path = f"pools/{api.pool('instance')}/allocations/"
    holders = [_instance(), {"kind": "node", "id": "n"}, {"kind": "env", "id": "prod"}]
    fields = _refused(api("POST", path, {"holders": holders, "org": "acme"}))
    assert fields == ["env", "holders.1.kind", "holders.2.kind"]


def test_a_public_address_is_held_by_an_environment_of_an_org(api: Api) -> None:
    path = f"pools/{_ipv4(api)}/allocations/"
    assert _refused(api("POST", path, {"holder": _instance()})) == ["org", "holder.kind"]
    env = {"kind": "env", "id": "prod"}
    assert _refused(api("POST", path, {"holder": env})) == ["org"]
    assert api("POST", path, {"holder": env, "org": "acme"}).status_code == 201


def test_a_setting_relaxes_it_and_nodes_are_not_asked(api: Api, settings: Any) -> None:
    api.cluster(cluster_prefix=PREFIX)
    node = {"holder": {"kind": "node", "id": "n-1"}}
    assert api("POST", f"pools/{api.pool('node')}/allocations/", node).status_code == 201
    settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS = True
    path = f"pools/{api.pool('instance')}/allocations/"
    assert api("POST", path, {"holder": _instance()}).status_code == 201


def _pool(cidr: str, category: str = "instance") -> dict[str, Any]:
    part = {"mask_size": 128, "cidrs": [cidr]}
    return {"cluster": "prod", "name": "more", "category": category, "ipv6": part}


@pytest.mark.parametrize("category", ["node", "instance"])
def test_a_pool_outside_of_the_prefix_is_refused(api: Api, category: str) -> None:
    api.cluster(cluster_prefix=PREFIX)
    answer = api("POST", "pools/", _pool("2001:db8:11::/64", category))
    assert (answer.status_code, answer.json()["code"]) == (400, "outside_cluster_prefix")
    pool = api.create("pools/", _pool("2001:db8:10:7::/64", category))
    answer = api("POST", f"pools/{pool['id']}/cidrs/", {"cidr": "2001:db8:12::/64"})
    assert (answer.status_code, answer.json()["code"]) == (400, "outside_cluster_prefix")


def test_a_prefix_comes_later(api: Api) -> None:
    api.cluster()
    answer = api("PATCH", "clusters/prod/", {"cluster_prefix": PREFIX})
    assert (answer.status_code, answer.json()["cluster_prefix"]) == (200, PREFIX)
    pools = api("GET", "pools/?cluster=prod").json()["results"]
    assert [(pool["category"], pool["ipv6"]["cidrs"][0]["cidr"]) for pool in pools] == [
        ("node", "2001:db8:10::/64"),
        ("instance", "2001:db8:10:1::/64"),
    ]
    assert api("PATCH", "clusters/prod/", {"cluster_prefix": PREFIX}).status_code == 200
    answer = api("PATCH", "clusters/prod/", {"cluster_prefix": "2001:db8:20::/48"})
    assert (answer.status_code, answer.json()["code"]) == (409, "immutable_in_use")


def test_a_prefix_holds_the_pools_that_are_there(api: Api) -> None:
    api.cluster()
    api.create("pools/", _pool("2001:db8:10:1::/64"))
    answer = api("PATCH", "clusters/prod/", {"cluster_prefix": "2001:db8:20::/48"})
    assert (answer.status_code, answer.json()["code"]) == (400, "outside_cluster_prefix")
    assert api("PATCH", "clusters/prod/", {"cluster_prefix": PREFIX}).status_code == 200
    pools = api("GET", "pools/?cluster=prod").json()["results"]
    assert sorted(pool["category"] for pool in pools) == ["instance", "node"]


def test_the_form_of_the_admin_asks_too(settings: Any) -> None:
    settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS = False
    pool = factories.pool("2001:db8:5::/64", category="instance")
    url = reverse("admin:pools_pool_allocate", args=[pool.pk])
    form_data = {"kind": "instance", "id": "i-1", "family": "6"}
    answer = people.browser().post(url, form_data)
    assert answer.status_code == 200
    assert {"org", "env"} <= set(answer.context["form"].errors)
    assert not Block.objects.filter(state="held").exists()
    assert people.browser().post(url, form_data | {"org": "acme", "env": "prod"}).status_code == 302
    block = Block.objects.get(state="held")
    assert (block.holder_kind, block.org, block.env) == ("instance", "acme", "prod")


@pytest.mark.exhaustive
def test_the_demo_fleet_names_its_owners(settings: Any) -> None:
    settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS = False
    assert demo.load()
    held = Block.objects.filter(state="held", category__in=["instance", "ipv4"])
    assert held.exists()
    assert not held.filter(org="").exists()
    assert not held.filter(env="").exists()
