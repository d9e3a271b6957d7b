"""pools/ and pools/{id}/: made, read, changed under If-Match, removed."""

from typing import Any

import pytest

from tests.edges import api as apis

GREEN: dict[str, Any] = {
    "cluster": "prod",
    "name": "green-pool",
    "category": "pod",
    "cooldown_seconds": 0,
    "ipv4": {
        "mask_size": 24,
        "cidrs": [{"cidr": "10.20.0.0/16", "reserved_ranges": ["10.20.0.0-10.20.0.99"]}],
    },
    "ipv6": {"mask_size": 120, "cidrs": [{"cidr": "fd00::/104", "reserved_ranges": []}]},
}


@pytest.fixture
def place(api: apis.Api) -> str:
    return f"pools/{api.create('pools/', GREEN)['id']}/"


def test_what_was_sent_is_said_again(api: apis.Api, place: str) -> None:
    answer = api("GET", place)
    document = answer.json()
    assert {name: document[name] for name in GREEN} == GREEN
    assert document["utilization"]["ipv6"]["capacity"] == str(2**16)
    assert answer.headers["ETag"] == f'"{document["version"]}"'


def test_capacities_beyond_64_bits_are_exact(api: apis.Api) -> None:
    part = {"mask_size": 128, "cidrs": ["fd00::/16"]}
    document = api.create(
        "pools/", {"cluster": "prod", "name": "v", "category": "vm", "ipv6": part}
    )
    usage = document["utilization"]["ipv6"]
    assert int(usage["capacity"]) in range(2**112 - 2, 2**112 + 1)
    assert int(usage["held"]) + int(usage["free"]) + int(usage["reserved"]) <= 2**112


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"id": 1}, 400, "read_only_field"),
        ({"utilization": {}}, 400, "read_only_field"),
        ({"category": "node"}, 409, "immutable_in_use"),
        ({"name": "blue-pool"}, 409, "immutable_in_use"),
        ({"ipv4": {"mask_size": 25, "cidrs": ["10.20.0.0/16"]}}, 409, "immutable_in_use"),
        ({"ipv4": {"mask_size": 24, "cidrs": []}}, 400, "required"),
        ({"ipv4": {"mask_size": 24, "cidrs": ["fd00::/104"]}}, 400, "mixed_family"),
        ({"description": "x" * 501}, 400, "too_long"),
    ],
    ids=[
        "id", "utilization", "category", "name", "mask", "no CIDR", "other family", "description",
    ],
)  # fmt: skip
def test_a_refused_change_changes_nothing(
    api: apis.Api, place: str, body: dict[str, Any], status: int, code: str
) -> None:
    before = api("GET", place).json()
    apis.refused(api("PATCH", place, body), status, code)
    assert api("GET", place).json() == before


def test_a_change_names_only_what_changes(api: apis.Api, place: str) -> None:
    longer = {"mask_size": 24, "cidrs": [*GREEN["ipv4"]["cidrs"], "10.21.0.0/16"]}
    same = {"name": "green-pool", "category": "pod", "cluster": "prod"}
    answer = api("PATCH", place, {"ipv4": longer, "labels": {"team": "a"}, **same})
    assert answer.status_code == 200
    document = answer.json()
    assert [cidr["cidr"] for cidr in document["ipv4"]["cidrs"]] == ["10.20.0.0/16", "10.21.0.0/16"]
    assert (document["labels"], document["ipv6"]) == ({"team": "a"}, GREEN["ipv6"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_if_match_guards_a_change(api: apis.Api, place: str, method: str) -> None:
    body = {"description": "x"} if method == "PATCH" else None
    etag = api("GET", place).headers["ETag"]
    newer = api("PATCH", place, {"cooldown_seconds": 7}).headers["ETag"]
    assert newer != etag
    apis.refused(api(method, place, body, If_Match=etag), 412, "version_mismatch")
    assert api(method, place, body, If_Match=newer).status_code in {200, 204}


def test_a_pool_in_use_stays(api: apis.Api, place: str) -> None:
    allocation = api.create(f"{place}allocations/", apis.holder("node-7", "node") | {"family": 4})
    problem = apis.refused(api("DELETE", place), 409, "pool_in_use")
    assert "node-7" in problem["detail"]
    smaller = {"mask_size": 24, "cidrs": ["10.22.0.0/16"]}
    apis.refused(api("PATCH", place, {"ipv4": smaller}), 409, "cidr_in_use")
    release = f"blocks/{allocation['blocks'][0]['id']}/release/"
    assert api("POST", release, apis.holder("node-7", "node")).status_code == 200
    assert api("DELETE", place).status_code == 204
    apis.refused(api("GET", place), 404, "not_found")


def test_names_and_networks_are_taken_once(api: apis.Api, place: str) -> None:
    other = {"mask_size": 24, "cidrs": ["10.99.0.0/16"]}
    same_name = {"cluster": "prod", "name": "green-pool", "category": "pod", "ipv4": other}
    apis.refused(api("POST", "pools/", same_name), 409, "already_exists")
    inside = {"mask_size": 24, "cidrs": ["10.20.128.0/17"]}
    apis.refused(
        api("POST", "pools/", same_name | {"name": "b", "ipv4": inside}), 409, "cidr_overlap"
    )


def test_a_cidr_or_a_range_twice_is_refused(api: apis.Api) -> None:
    cidr, span = "10.20.0.0/24", "10.20.0.0-10.20.0.15"
    part = {"mask_size": 28, "cidrs": [cidr]}
    body = {"cluster": "prod", "name": "blue", "category": "pod", "ipv4": part}
    path = f"pools/{api.create('pools/', body)['id']}/"
    twice = part | {"cidrs": [cidr, cidr]}
    apis.refused(api("PATCH", path, {"ipv4": twice}), 409, "cidr_overlap")
    ranges = part | {"cidrs": [{"cidr": cidr, "reserved_ranges": [span, span]}]}
    apis.refused(api("PATCH", path, {"ipv4": ranges}), 409, "ranges_overlap")
