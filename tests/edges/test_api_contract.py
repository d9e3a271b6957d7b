"""The names and statuses that tooling is written against, from one end to the other."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.edges.api import PREFIX, Api

pytestmark = pytest.mark.django_db
GREEN = {
    "cluster": "prod",
    "name": "green-pool",
    "category": "pod",
    "cooldown_seconds": 0,
    "ipv4": {
        "mask_size": 24,
        "cidrs": [{"cidr": "10.20.0.0/16", "reserved_ranges": ["10.20.0.0-10.20.0.99"]}],
    },
}


@pytest.fixture
def api() -> Api:
    api = Api()
    assert api("POST", "clusters/", {"name": "prod", "cluster_prefix": PREFIX}).status_code == 201
    return api


def _holder(name: str) -> dict[str, Any]:
    return {"holder": {"kind": "instance", "id": name}}


def test_a_cluster_prefix_brings_node_and_instance_pools(api: Api) -> None:
    result = {p["category"]: p for p in api("GET", "pools/?cluster=prod").json()["results"]}
    assert result["node"]["ipv6"]["cidrs"][0]["cidr"] == "2001:db8:10::/64"
    assert result["instance"]["ipv6"]["cidrs"][0]["cidr"] == "2001:db8:10:1::/64"
    assert result["instance"]["utilization"]["ipv6"]["capacity"] == str(2**64 - 1)


@pytest.mark.exhaustive
def test_a_pool_is_made_read_changed_and_removed(api: Api) -> None:
    answer = api("POST", "pools/", GREEN)
    assert answer.status_code == 201
    path = f"pools/{answer.json()['id']}/"
    read = api("GET", path)
    assert read.json()["ipv4"] == GREEN["ipv4"]
    assert read.json()["utilization"]["ipv4"]["reserved"] == "1"
    assert read.headers["ETag"] == '"1"'
    stale = api("PATCH", path, {"description": "x"}, If_Match='"9"')
    assert (stale.status_code, stale.json()["code"]) == (412, "version_mismatch")
    assert api("PATCH", path, {"description": "x"}, If_Match='"1"').status_code == 200
    mask = api("PATCH", path, {"ipv4": GREEN["ipv4"] | {"mask_size": 25}})
    assert (mask.status_code, mask.json()["code"]) == (409, "immutable_in_use")
    assert api("DELETE", path).status_code == 204
    assert api("GET", path).status_code == 404


def test_an_address_is_allocated_told_of_and_released(api: Api) -> None:
    path = f"pools/{api.pool('instance')}/allocations/"
    body = _holder("i-1") | {"org": "o", "env": "e", "family": 6}
    first = api("POST", path, body, Idempotency_Key="k")
    assert first.status_code == 201
    (block,) = first.json()["blocks"]
    assert block["address"] == "2001:db8:10:1::1"
    assert (block["cluster"], block["pool"], block["state"]) == ("prod", "instances", "held")
    assert api("POST", path, body, Idempotency_Key="k").json() == first.json()
    assert api("POST", path, _holder("i-2"), Idempotency_Key="k").status_code == 422
    assert api("POST", path, _holder("i-1")).status_code == 200
    network = api("GET", "instances/i-1/network/?cluster=prod").json()
    assert network["overlay_ipv6"] == "2001:db8:10:1::1"
    assert network["gateway_ipv6"] == "fe80::1"
    document = api("GET", f"addresses/2001:db8:10:1::1/?at={block['allocated_at']}").json()
    assert document["matches"][0]["holder"]["id"] == "i-1"
    release = f"blocks/{block['id']}/release/"
    foreign = api("POST", release, _holder("i-9"))
    assert (foreign.status_code, foreign.json()["code"]) == (409, "holder_changed")
    done = api("POST", release, _holder("i-1"))
    assert (done.status_code, done.json()["state"]) == (200, "cooling")
    assert api("POST", release, _holder("i-1")).json() == done.json()
    types = [event["type"] for event in api("GET", "events/?holder_id=i-1").json()["results"]]
    assert types == ["released", "instance.allocated"]


def test_an_exhausted_pool_says_so_and_marks_the_environment(api: Api) -> None:
    cidrs = {"mask_size": 32, "cidrs": [{"cidr": "192.0.2.1/32"}]}
    pool = {"cluster": "prod", "name": "one", "category": "ipv4", "ipv4": cidrs}
    path = f"pools/{api('POST', 'pools/', pool).json()['id']}/allocations/"

    def ask(env: str, **more: Any) -> Any:
        return api("POST", path, {"holder": {"kind": "env", "id": env}, "org": "o", **more})

    assert ask("a").status_code == 201
    refused = ask("b")
    assert (refused.status_code, refused.json()["code"]) == (409, "ipam_exhausted")
    assert refused.headers["Content-Type"] == "application/problem+json"
    waiting = ask("c", wait=True)
    assert (waiting.status_code, waiting.json()["state"]) == (202, "pending")
    degraded = api("GET", "environments/?status=degraded").json()["results"]
    assert {(item["env"], item["reason"]) for item in degraded} == {
        ("b", "ipam_exhausted"),
        ("c", "ipam_exhausted"),
    }
    cancelled = api("DELETE", f"requests/{waiting.json()['id']}/")
    assert cancelled.json()["state"] == "cancelled"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"name": "a", "name": "b"}', "duplicate_key"),
        ('{"name": "a", "id": 1}', "unknown_field"),
        ("[]", "object_expected"),
        ('{"name": "A_b"}', "k8s_name"),
        ('{"name": "a", "cluster_prefix": "2001:db8::1/48"}', "host_bits_set"),
        ("[" * 100_000, "too_deep"),
    ],
    ids=["twice", "unknown", "list", "name", "host bits", "deep"],
)
def test_bad_input_is_told_by_code(api: Api, body: str, code: str) -> None:
    answer = api("POST", "clusters/", body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_pages_lead_to_each_other(api: Api) -> None:
    holders = [{"kind": "instance", "id": f"i-{n}"} for n in range(25)]
    path = f"pools/{api.pool('instance')}/allocations/"
    assert api("POST", path, {"holders": holders}).status_code == 201
    observed, url = [], "blocks/?limit=7&ordering=-cidr&fields=cidr"
    while url:
        page = api("GET", url.partition("/api/v1/")[2] or url).json()
        observed += [row["cidr"] for row in page["results"]]
        url = page["next"]
    assert len(set(observed)) == 25
    assert observed[0] == "2001:db8:10:1::19/128"
    assert api("GET", "blocks/?limit=0").status_code == 400
    assert api("GET", "blocks/?who=1").json()["code"] == "unknown_parameter"


def test_a_manifest_is_imported_whole_or_not_at_all(api: Api) -> None:
    good = (
        "apiVersion: cilium.io/v2alpha1\nkind: CiliumPodIPPool\nmetadata: {name: a}\n"
        "spec: {ipv4: {cidrs: [10.30.0.0/16], maskSize: 24}}\n"
    )
    bad = good.replace("name: a", "name: b").replace("10.30.0.0", "10.31.0.1")
    refused = api("POST", "pools/import/", {"cluster": "prod", "manifest": f"{good}---\n{bad}"})
    assert refused.status_code == 400
    assert [report["result"] for report in refused.json()["reports"]] == ["created", "refused"]
    assert api("GET", "pools/?name=a").json()["results"] == []
    done = api("POST", "pools/import/", {"cluster": "prod", "manifest": good})
    assert (done.status_code, done.json()["reports"][0]["result"]) == (201, "created")


def test_nobody_without_a_token() -> None:
    for path in ("pools/", "blocks/", "events/", "schema/", "clusters/prod/"):
        answer = Client().get(f"/api/v1/{path}")
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"] == "Bearer"
