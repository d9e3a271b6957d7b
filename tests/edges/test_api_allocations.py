"""POST pools/{id}/allocations/ in all its variants, for environments of one name, and blocks/{id}/release/.

A release is a compare-and-set; forced ones and ended cooldowns need a right and a reason.
"""

from typing import Any

import pytest

from tests.edges import api as apis

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


def _release(api: apis.Api, block: dict[str, Any], name: str, **more: Any) -> Any:
    return api("POST", f"blocks/{block['id']}/release/", apis.holder(name) | more)


def test_a_cooldown_begins(api: apis.Api) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29", cooldown=600), "a")
    released = _release(api, block, "a")
    assert released.status_code == 200
    document = released.json()
    assert (document["id"], document["cidr"], document["state"]) == (
        block["id"],
        block["cidr"],
        "cooling",
    )
    assert document["cooldown_until"] > document["released_at"] >= block["allocated_at"]


@pytest.mark.parametrize("cooldown", [0, 600])
def test_a_repeated_release_changes_nothing(api: apis.Api, cooldown: int) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29", cooldown=cooldown), "a")
    first = _release(api, block, "a")
    events = api("GET", "events/").json()["results"]
    second = _release(api, block, "a")
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert api("GET", "events/").json()["results"] == events


PROD = apis.holder("prod", "env")


def _public(api: apis.Api, cidr: str) -> str:
    part = {"mask_size": 32, "cidrs": [{"cidr": cidr}]}
    body = {"cluster": "prod", "name": "public", "category": "ipv4", "ipv4": part}
    return f"pools/{api.create('pools/', body)['id']}/allocations/"


def _taken(answer: Any) -> tuple[int, str, str]:
    (block,) = answer.json()["blocks"]
    return answer.status_code, block["cidr"], block["org"]


def test_environments_of_one_name_have_one_each(api: apis.Api) -> None:
    place = _public(api, "203.0.113.0/29")
    for status in (201, 200):  # asked twice, each keeps what it has
        answers = [_taken(api("POST", place, PROD | {"org": org})) for org in ("acme", "globex")]
        assert answers == [(status, "203.0.113.1/32", "acme"), (status, "203.0.113.2/32", "globex")]
    rows = api("GET", "blocks/?holder_id=prod&org=globex").json()["results"]
    assert [block["cidr"] for block in rows] == ["203.0.113.2/32"]
    assert len(api("GET", "environments/?env=prod").json()["results"]) == 2


def test_a_release_may_say_the_organisation(api: apis.Api) -> None:
    place = _public(api, "203.0.113.1/32")
    (block,) = api.create(place, PROD | {"org": "globex"})["blocks"]
    release = f"blocks/{block['id']}/release/"
    apis.refused(api("POST", release, PROD | {"org": "acme"}), 409, "holder_changed")
    apis.refused(api("POST", release, PROD | {"org": 7}), 400, "wrong_type")
    assert api("GET", f"blocks/{block['id']}/").json()["state"] == "held"
    for _ in range(2):
        assert api("POST", release, PROD | {"org": "globex"}).json()["state"] == "cooling"
