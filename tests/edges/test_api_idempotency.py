"""Idempotency-Key over HTTP: the same request is done once, on every POST that changes something."""

from typing import Any

import pytest

from tests.edges import api as apis

PART = {"mask_size": 32, "cidrs": ["10.3.0.0/29"]}
POOL = {"cluster": "prod", "name": "p", "category": "vm", "ipv4": PART}
MANIFEST = """\
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: green}
spec: {ipv4: {cidrs: [10.20.0.0/16], maskSize: 24}}
"""


def _request(api: apis.Api, kind: str) -> tuple[str, Any, Any]:
    """(path, body, another body for the same path)"""
    if kind in {"cluster", "pool", "import"}:
        return {
            "cluster": ("clusters/", {"name": "c"}, {"name": "d"}),
            "pool": ("pools/", POOL, POOL | {"name": "q"}),
            "import": (
                "pools/import/",
                {"cluster": "prod", "manifest": MANIFEST},
                {"cluster": "prod", "manifest": MANIFEST + "# other"},
            ),
        }[kind]
    pool = api.vm_pool("10.0.0.0/29", cooldown=60)
    block = api.take(pool, "a")
    if kind == "release":
        released = f"blocks/{block['id']}/release/"
        return released, apis.holder("a"), apis.holder("a") | {"reason": "x"}
    if kind == "allocation":
        return f"pools/{pool}/allocations/", apis.holder("b"), apis.holder("c")
    if kind == "exact":
        body = apis.holder("b")
        return (
            f"pools/{pool}/allocations/",
            body | {"cidr": "10.0.0.5"},
            body | {"cidr": "10.0.0.6"},
        )
    if kind == "several":
        body = apis.holder("b")
        return f"pools/{pool}/allocations/", body | {"count": 2}, body | {"count": 3}
    cidrs = f"pools/{pool}/cidrs/"
    if kind == "cidr":
        return cidrs, {"cidr": "10.4.0.0/29"}, {"cidr": "10.5.0.0/29"}
    (cidr,) = api("GET", cidrs).json()["results"]
    ranges = f"{cidrs}{cidr['id']}/reserved-ranges/"
    return ranges, {"range": "10.0.0.6-10.0.0.7"}, {"range": "10.0.0.4-10.0.0.5"}


ALL = ["cluster", "pool", "import", "allocation", "exact", "several", "release", "cidr", "range"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ALL)
def test_done_once(api: apis.Api, kind: str) -> None:
    path, body, other = _request(api, kind)
    first = api("POST", path, body, Idempotency_Key="k-1")
    assert first.status_code in {200, 201}, first.content
    events = api("GET", "events/?limit=1").json()["results"]
    again = api("POST", path, body, Idempotency_Key="k-1")
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert api("GET", "events/?limit=1").json()["results"] == events
    refused = api("POST", path, other, Idempotency_Key="k-1")
    apis.refused(refused, 422, "idempotency_key_reused")
    assert api("GET", "events/?limit=1").json()["results"] == events


@pytest.mark.sample(24)
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "key",
    ["", "  ", '""', "x" * 300, "a\tb", "\N{SNOWMAN}"],
    ids=["none", "blank", "quoted", "long", "tab", "ASCII"],
)
def test_an_unusable_key_is_refused(api: apis.Api, kind: str, key: str) -> None:
    path, body, _ = _request(api, kind)
    events = api("GET", "events/?limit=1").json()["results"]
    problem = apis.refused(api("POST", path, body, Idempotency_Key=key), 400, "idempotency_key")
    assert apis.fields(problem) == {"Idempotency-Key": "idempotency_key"}
    assert api("GET", "events/?limit=1").json()["results"] == events


def test_a_key_belongs_to_one_address(api: apis.Api) -> None:
    body = apis.holder("a")
    for name, cidr, status in (("one", "10.1.0.0/29", 201), ("two", "10.2.0.0/29", 422)):
        path = f"pools/{api.vm_pool(cidr, name=name)}/allocations/"
        assert api("POST", path, body, Idempotency_Key="k").status_code == status


def test_a_key_belongs_to_its_user(api: apis.Api) -> None:
    path = f"pools/{api.vm_pool('10.1.0.0/29')}/allocations/"
    mine = api("POST", path, apis.holder("a"), Idempotency_Key="k")
    theirs = apis.Api()("POST", path, apis.holder("b"), Idempotency_Key="k")
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert mine.json() != theirs.json()


def test_a_refusal_is_not_kept(api: apis.Api) -> None:
    pool = api.vm_pool("10.1.0.1/32")
    path = f"pools/{pool}/allocations/"
    first = api.take(pool, "a")
    apis.refused(api("POST", path, apis.holder("b"), Idempotency_Key="k"), 409, "ipam_exhausted")
    api("POST", f"blocks/{first['id']}/release/", apis.holder("a"))
    assert api("POST", path, apis.holder("b"), Idempotency_Key="k").status_code == 201
