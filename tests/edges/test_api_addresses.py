"""addresses/{ip}/ tells who has an address or had it; instances/{id}/network/ what it is told."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission

from pools.core.observed.uses import Role
from pools.models import Cluster
from tests.edges import api as apis
from tests.observed.rows import observed

MATCH = {
    "cluster", "space", "pool", "block", "state", "holder", "org", "env", "since", "until",
}  # fmt: skip


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    api.cluster(cluster_prefix=apis.PREFIX)
    return api


def _told(api: apis.Api, address: str, **query: str) -> Any:
    answer = api.client.get(f"{apis.ROOT}addresses/{address}/", query_params=query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_who_has_it_now(api: apis.Api) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29"), "a", org="o", env="e")
    document = _told(api, "10.0.0.1", cluster="prod")
    assert set(document) == {"address", "at", "matches", "history", "observed_cidrs"}
    (match,) = document["matches"]
    assert set(match) >= MATCH
    assert (match["cluster"], match["pool"], match["block"]) == ("prod", "vms", "10.0.0.1/32")
    assert (match["state"], match["org"], match["env"]) == ("held", "o", "e")
    assert (match["holder"]["kind"], match["holder"]["id"]) == ("vm", "a")
    assert (match["since"], match["until"]) == (block["allocated_at"], None)


def test_an_address_inside_a_larger_block(api: apis.Api) -> None:
    part = {"mask_size": 24, "cidrs": ["10.9.0.0/16"]}
    pool = api.create("pools/", {"cluster": "prod", "name": "p", "category": "pod", "ipv4": part})
    api.create(f"pools/{pool['id']}/allocations/", apis.holder("n-1", "node"))
    (match,) = _told(api, "10.9.0.77")["matches"]
    assert (match["block"], match["holder"]["id"]) == ("10.9.0.0/24", "n-1")


def test_who_had_it_at_a_time(api: apis.Api) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29"), "a")
    assert _told(api, "10.0.0.1", at="2020-01-01T00:00:00Z")["matches"] == []
    allocated_at = block["allocated_at"]
    then = _told(api, "10.0.0.1", at=allocated_at)
    assert (then["at"], then["matches"][0]["holder"]["id"]) == (allocated_at, "a")


def test_one_address_in_two_clusters(api: apis.Api) -> None:
    api.take(api.vm_pool("10.0.0.0/29"), "a")
    api.cluster("other")
    body = {"cluster": "other", "name": "vms", "category": "vm", "cooldown_seconds": 0}
    part = {"mask_size": 32, "cidrs": ["10.0.0.0/29"]}
    api.take(api.create("pools/", body | {"ipv4": part})["id"], "b")
    assert {m["holder"]["id"] for m in _told(api, "10.0.0.1")["matches"]} == {"a", "b"}
    (match,) = _told(api, "10.0.0.1", cluster="other")["matches"]
    assert match["holder"]["id"] == "b"


def test_the_observed_cidrs_that_contain_it(api: apis.Api) -> None:
    prod = Cluster.objects.get(name="prod")
    observed(prod, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(prod, Role.LOAD_BALANCER, "10.96.7.0/24", namespace="lb", name="metal", detail="x")
    observed(prod, Role.NODE, "10.96.7.8/32")
    api.cluster("other")
    observed(Cluster.objects.get(name="other"), Role.SERVICES, "10.96.0.0/16", name="other")
    names = [row["name"] for row in _told(api, "10.96.7.7")["observed_cidrs"]]
    assert names == ["metal", "other", "kubernetes"]
    narrowest, _ = _told(api, "10.96.7.7", cluster="prod")["observed_cidrs"]
    assert {key: narrowest[key] for key in narrowest if key not in {"id", "uid"}} == {
        "cidr": "10.96.7.0/24", "cluster": "prod", "role": "load-balancer", "kind": "IPAddressPool",
        "namespace": "lb", "name": "metal", "detail": "x",
    }  # fmt: skip
    assert api("GET", f"observed-cidrs/{narrowest['id']}/").json() == narrowest
    assert _told(api, "10.97.0.1", cluster="other")["observed_cidrs"] == []


def test_observed_cidrs_of_a_time_are_not_known(api: apis.Api) -> None:
    observed(Cluster.objects.get(name="prod"), Role.SERVICES, "10.96.0.0/12")
    assert _told(api, "10.96.0.1", at="2020-01-01T00:00:00Z")["observed_cidrs"] is None


def test_observed_cidrs_are_for_those_who_may_list_them(api: apis.Api) -> None:
    observed(Cluster.objects.get(name="prod"), Role.SERVICES, "10.96.0.0/12")
    assert len(_told(apis.Api("viewer"), "10.96.0.1")["observed_cidrs"]) == 1
    apis.refused(apis.Api("vm-owner")("GET", "addresses/10.96.0.1/"), 403, "permission_denied")
    caller = apis.Api("vm-owner")
    caller.user.user_permissions.add(Permission.objects.get(codename="view_block"))
    assert _told(caller, "10.96.0.1")["observed_cidrs"] is None


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("path", "field", "code"),
    [
        ("10.0.0.256/", "address", "not_an_address"),
        ("010.0.0.1/", "address", "leading_zero"),
        ("fe80::1%25eth0/", "address", "zone_id_not_allowed"),
        ("10.0.0.1/?at=2026-01-01T00:00:00", "at", "time"),
        ("10.0.0.1/?at=99999-01-01T00:00:00Z", "at", "time"),
    ],
)
def test_what_cannot_be_answered(api: apis.Api, path: str, field: str, code: str) -> None:
    problem = apis.refused(api("GET", f"addresses/{path}"), 400, code)
    assert apis.fields(problem) == {field: code}


def test_the_network_of_an_instance(api: apis.Api) -> None:
    path = f"pools/{api.pool('instance')}/allocations/"
    api.create(path, apis.holder("i-1", "instance"))
    answer = api("GET", "instances/i-1/network/?cluster=prod")
    assert answer.json() == {
        "overlay_ipv6": "2001:db8:10:1::1",
        "gateway_ipv6": "fe80::1",
        "mtu": answer.json()["mtu"],
        "dns": [],
    }
    body = {"instance_gateway": "fe80::2", "instance_mtu": 1400, "instance_dns": ["fd00::53"]}
    assert api("PATCH", "clusters/prod/", body).status_code == 200
    changed = api("GET", "instances/i-1/network/").json()
    assert (changed["gateway_ipv6"], changed["mtu"], changed["dns"]) == (
        "fe80::2",
        1400,
        ["fd00::53"],
    )


def test_an_instance_of_two_clusters_is_asked_for_by_cluster(api: apis.Api) -> None:
    apis.refused(api("GET", "instances/i-1/network/"), 404, "not_found")
    api.cluster("other", cluster_prefix="2001:db8:20::/48")
    for pool in api("GET", "pools/?category=instance").json()["results"]:
        api.create(f"pools/{pool['id']}/allocations/", apis.holder("i-1", "instance"))
    apis.refused(api("GET", "instances/i-1/network/"), 400, "required")
    answer = api("GET", "instances/i-1/network/?cluster=other")
    assert answer.json()["overlay_ipv6"] == "2001:db8:20:1::1"
