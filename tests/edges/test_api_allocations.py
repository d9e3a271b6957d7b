"""POST pools/{id}/allocations/ in all its variants."""

from typing import Any

import pytest

from tests.edges import api as apis

pytestmark = pytest.mark.django_db
BLOCK = {
    "id", "cidr", "address", "pool", "cluster", "holder", "org", "env", "state", "allocated_at",
    "cooldown_until",
}  # fmt: skip


@pytest.fixture
def place(api: apis.Api) -> str:
    """Where blocks of a pool with both families are allocated."""
    return f"pools/{api.vm_pool('10.0.0.0/29', 'fd00::/125')}/allocations/"


def _cidrs(answer: Any) -> list[str]:
    assert answer.status_code == 201, answer.content
    return [block["cidr"] for block in answer.json()["blocks"]]


def test_a_block_says_what_tooling_needs(api: apis.Api, place: str) -> None:
    body = apis.holder("v-1") | {"org": "o", "env": "e", "family": 4}
    (block,) = api.create(place, body)["blocks"]
    assert set(block) >= BLOCK
    assert (block["cidr"], block["address"]) == ("10.0.0.1/32", "10.0.0.1")
    assert (block["pool"], block["cluster"], block["state"]) == ("vms", "prod", "held")
    assert (block["org"], block["env"], block["cooldown_until"]) == ("o", "e", None)
    assert block["holder"] == {"kind": "vm", "id": "v-1", "uid": ""}
    assert block["allocated_at"].endswith("Z")
    assert api("GET", f"blocks/{block['id']}/").json() == block


def test_larger_blocks_have_no_bare_address(api: apis.Api) -> None:
    part = {"mask_size": 24, "cidrs": ["10.9.0.0/16"]}
    body = {"cluster": "prod", "name": "pods", "category": "pod", "ipv4": part}
    pool = api.create("pools/", body)["id"]
    (block,) = api.create(f"pools/{pool}/allocations/", apis.holder("n-1", "node"))["blocks"]
    assert (block["cidr"], block["address"]) == ("10.9.0.0/24", None)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (apis.holder("a") | {"family": 6}, ["fd00::1/128"]),
        (apis.holder("a"), ["10.0.0.1/32", "fd00::1/128"]),
        (apis.holder("a") | {"family": 4, "count": 2}, ["10.0.0.1/32", "10.0.0.2/32"]),
        (apis.holder("a") | {"cidr": "10.0.0.5/32"}, ["10.0.0.5/32"]),
        (apis.holder("a") | {"cidr": "10.0.0.5"}, ["10.0.0.5/32"]),
        (apis.holder("a") | {"cidr": "fd00::4", "family": 6}, ["fd00::4/128"]),
        (
            {"holders": [{"kind": "vm", "id": "a"}, {"kind": "vm", "id": "b"}], "family": 4},
            ["10.0.0.1/32", "10.0.0.2/32"],
        ),
        (apis.holder("a") | {"family": 4, "wait": True}, ["10.0.0.1/32"]),
    ],
    ids=["one family", "both", "count", "exact", "bare", "exact v6", "holders", "no need to wait"],
)
def test_what_is_asked_for_is_given(
    api: apis.Api, place: str, body: dict[str, Any], expected: list[str]
) -> None:
    assert _cidrs(api("POST", place, body)) == expected


def test_holders_get_one_each(api: apis.Api, place: str) -> None:
    holders = [{"kind": "vm", "id": name} for name in ("b", "a")]
    blocks = api.create(place, {"holders": holders, "family": 4})["blocks"]
    assert [block["holder"]["id"] for block in blocks] == ["b", "a"]


def test_one_that_cools_down_says_when_to_ask_again(api: apis.Api) -> None:
    pool = api.vm_pool("10.1.0.0/29", cooldown=600)
    block = api.take(pool, "a")
    assert api("POST", f"blocks/{block['id']}/release/", apis.holder("a")).status_code == 200
    answer = api("POST", f"pools/{pool}/allocations/", apis.holder("b") | {"cidr": block["cidr"]})
    apis.refused(answer, 409, "cooling_down")
    assert 590 < int(answer.headers["Retry-After"]) <= 600
