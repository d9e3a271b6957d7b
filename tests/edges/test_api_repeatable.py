"""`reuse`: what the holder has, else the next, in pools of every category, without a key."""

from typing import Any

import pytest

from tests.edges import api as apis

HOST = {"holder": {"kind": "host", "id": "web1.example.org"}, "reuse": True}


def _pool(api: apis.Api, category: str = "vm", name: str = "hosts", **parts: Any) -> str:
    parts = parts or {"ipv4": {"mask_size": 32, "cidrs": ["10.99.0.0/28"]}}
    pool = api.create("pools/", {"cluster": "prod", "name": name, "category": category, **parts})
    return f"pools/{pool['id']}/"


def _cidrs(answer: Any, status: int) -> list[str]:
    assert answer.status_code == status, answer.content
    return [block["cidr"] for block in answer.json()["blocks"]]


def test_the_same_host_three_times(api: apis.Api) -> None:
    place = f"{_pool(api)}allocations/"
    assert _cidrs(api("POST", place, HOST), 201) == ["10.99.0.1/32"]
    for _ in range(2):
        assert _cidrs(api("POST", place, HOST), 200) == ["10.99.0.1/32"]
    without = {"holder": HOST["holder"]}
    assert _cidrs(api("POST", place, without), 201) == ["10.99.0.2/32"]


@pytest.mark.parametrize(
    ("category", "mask", "kind"),
    [
        ("pod", 28, "node"),
        ("vm", 32, "vm"),
        ("ipv4", 32, "env"),
        ("node", 32, "node"),
        ("instance", 32, "instance"),
    ],
)
def test_in_each_category(api: apis.Api, category: str, mask: int, kind: str) -> None:
    part = {"mask_size": mask, "cidrs": ["198.51.100.0/24"]}
    place = f"{_pool(api, category, ipv4=part)}allocations/"
    body = {"holder": {"kind": kind, "id": "h1"}, "org": "o", "env": "h1", "reuse": True}
    first = _cidrs(api("POST", place, body), 201)
    assert _cidrs(api("POST", place, body), 200) == first


def test_the_second_family_is_asked_for_later(api: apis.Api) -> None:
    place = f"pools/{api.vm_pool('10.0.0.0/29', 'fd00::/125')}/allocations/"
    assert _cidrs(api("POST", place, HOST | {"family": 4}), 201) == ["10.0.0.1/32"]
    both = ["10.0.0.1/32", "fd00::1/128"]
    assert _cidrs(api("POST", place, HOST), 201) == both
    assert _cidrs(api("POST", place, HOST), 200) == both
    assert _cidrs(api("POST", place, HOST | {"family": 6}), 200) == both[1:]


def test_batches_and_counts_get_what_they_lack(api: apis.Api) -> None:
    place = f"{_pool(api)}allocations/"
    api.create(place, {"holder": {"kind": "vm", "id": "b"}})
    batch = {"holders": [{"kind": "vm", "id": name} for name in "abc"], "reuse": True}
    assert len(_cidrs(api("POST", place, batch), 201)) == 3
    first = set(_cidrs(api("POST", place, batch), 200))
    assert "10.99.0.1/32" in first
    two = {"holder": {"kind": "vm", "id": "b"}, "count": 2, "reuse": True}
    assert len(_cidrs(api("POST", place, two), 201)) == 2
    assert len(_cidrs(api("POST", place, two), 200)) == 2
    exact = {"holder": {"kind": "vm", "id": "d"}, "cidr": "10.99.0.9/32", "reuse": True}
    assert _cidrs(api("POST", place, exact), 201) == _cidrs(api("POST", place, exact), 200)


def test_other_pools_and_other_uids_do_not_count(api: apis.Api) -> None:
    place = f"{_pool(api)}allocations/"
    other = _pool(api, name="other", ipv4={"mask_size": 32, "cidrs": ["10.98.0.0/28"]})
    api.create(f"{other}allocations/", HOST)
    assert _cidrs(api("POST", place, HOST), 201) == ["10.99.0.1/32"]
    with_uid = {"holder": HOST["holder"] | {"uid": "u1"}, "reuse": True}
    assert _cidrs(api("POST", place, with_uid), 200) == ["10.99.0.1/32"]
    api.create(place, {"holder": {"kind": "host", "id": "w2", "uid": "u1"}})
    again = {"holder": {"kind": "host", "id": "w2", "uid": "u2"}, "reuse": True}
    apis.refused(api("POST", place, again), 409, "holder_changed")


def test_a_repeated_waiting_request_waits_once(api: apis.Api) -> None:
    pool = _pool(api, ipv4={"mask_size": 32, "cidrs": ["10.99.0.0/31"]})
    for name in "ab":
        api.create(f"{pool}allocations/", {"holder": {"kind": "vm", "id": name}})
    first = api("POST", f"{pool}allocations/", HOST | {"wait": True})
    second = api("POST", f"{pool}allocations/", HOST | {"wait": True})
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]


def test_an_exhausted_pool_says_what_cools(api: apis.Api) -> None:
    pool = _pool(api, cooldown_seconds=3600, ipv4={"mask_size": 32, "cidrs": ["10.99.0.0/31"]})
    for name in "ab":
        (block,) = api.create(f"{pool}allocations/", {"holder": {"kind": "vm", "id": name}})[
            "blocks"
        ]
        assert api("POST", f"blocks/{block['id']}/release/", apis.holder(name)).status_code == 200
    problem = apis.refused(api("POST", f"{pool}allocations/", HOST), 409, "ipam_exhausted")
    assert "2 blocks are in cooldown; the next one becomes free at 20" in problem["detail"]
    batch = {"holders": [{"kind": "vm", "id": name} for name in "cd"]}
    problem = apis.refused(api("POST", f"{pool}allocations/", batch), 409, "ipam_exhausted")
    assert "2 blocks are in cooldown" in problem["detail"]
    waiting = api("POST", f"{pool}allocations/", HOST | {"wait": True}).json()
    assert "2 blocks are in cooldown" in waiting["message"]


def test_blocks_and_pools_are_found_by_address_and_cidr(api: apis.Api) -> None:
    pool = _pool(api)
    api.create(f"{pool}allocations/", HOST)
    nodes = _pool(api, "pod", "pods", ipv4={"mask_size": 28, "cidrs": ["10.97.0.0/24"]})
    api.create(f"{nodes}allocations/", {"holder": {"kind": "node", "id": "n1"}})

    def listed(query: str) -> list[str]:
        return [row.get("cidr") or row["name"] for row in api("GET", query).json()["results"]]

    assert listed("blocks/?address=10.99.0.1") == ["10.99.0.1/32"]
    assert listed("blocks/?address=10.97.0.5") == ["10.97.0.0/28"]
    assert listed("blocks/?address=10.97.0.77") == []
    assert listed("pools/?cidr=10.97.0.0/24") == ["pods"]
    assert listed("pools/?cidr=10.97.0.0/25") == listed("pools/?cidr=10.97.0.1") == []
    apis.refused(api("GET", "blocks/?address=10.97.0.0/28"), 400, "not_an_address")
    problem = apis.refused(api("GET", "pools/?subnet=10.97.0.0/24"), 400, "unknown_parameter")
    message = problem["errors"][0]["message"]
    assert message.startswith("there is no such parameter; there are: ")
    assert {"cidr", "within", "limit"} <= set(message.rpartition(": ")[2].split(", "))
