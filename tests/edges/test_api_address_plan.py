"""The address plan over REST: pages of a level, groups of single addresses, and the next free prefix at its edges."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.models import AddressSpace, Container, ObservedCIDR, Pool
from tests import factories
from tests.edges import api as apis

POOL = {
    "prefix_length": 20, "purpose": "pool", "cluster": "prod", "name": "green", "category": "pod", "mask_size": 24,
}  # fmt: skip


@pytest.fixture
def api() -> apis.Api:
    return apis.Api()


def _nodes(*texts: str) -> str:
    """A cluster whose nodes have these addresses; its name."""
    cluster = factories.cluster()
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    ObservedCIDR.objects.bulk_create(
        ObservedCIDR(space=space, kind="Node", name=text, uid=text, role="node-address", cidr=ip_network(text))
        for text in texts
    )  # fmt: skip
    return cluster.name


def _pages(api: apis.Api, query: str) -> list[dict[str, Any]]:
    """The rows of all pages of a level."""
    rows: list[dict[str, Any]] = []
    behind: str | None = ""
    while behind is not None:
        page = api("GET", f"address-plan/?{query}{behind and f'&behind={behind}'}").json()
        rows += page["results"]
        behind = page["next"]
    return rows


def _code(answer: Any) -> tuple[int, str, str]:
    document = answer.json()
    return answer.status_code, document["code"], document["errors"][0]["field"]


@pytest.mark.exhaustive
def test_thousands_of_addresses_are_a_row_for_each_24(api: apis.Api) -> None:
    nodes = [
        f"10.{second}.{third}.{last}"
        for second in (1, 2)
        for third in range(3)
        for last in range(1, 250)
    ]
    cluster = _nodes(*nodes, *(f"2001:db8::{number:x}" for number in range(1, 300)))  # fmt: skip
    rows = _pages(api, "group_addresses=true&limit=2")
    counts = [(row["cidr"], row["addresses"]) for row in rows]
    of_24 = [{"role": "node-address", "cluster": cluster, "count": 249}]
    assert counts == [
        *((f"10.{second}.{third}.0/24", of_24) for second in (1, 2) for third in range(3)),
        ("2001:db8::/64", [{"role": "node-address", "cluster": cluster, "count": 299}]),
    ]
    assert all(row["grouped"] and row["expandable"] and not row["free"] for row in rows)
    inside = _pages(api, "group_addresses=true&limit=100&parent=10.1.0.0/24")
    assert [row["cidr"] for row in inside] == [f"{text}/32" for text in nodes[:249]]
    single = _pages(api, "limit=1000")
    assert len(single) == len(nodes) + 299
    assert not any(row["grouped"] or row["addresses"] for row in single)


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("parent=10.1.0.0/16&behind=10.0.255.255", "out_of_range", "behind"),
        ("parent=10.1.0.0/16&behind=10.2.0.0", "out_of_range", "behind"),
        ("parent=2001:db8::/32&behind=10.1.0.0", "out_of_range", "behind"),
        ("family=6&behind=10.1.0.0", "out_of_range", "behind"),
        ("parent=10.1.0.0/16&family=6", "conflicting_fields", "family"),
        ("group_addresses=maybe", "invalid_choice", "group_addresses"),
    ],
)
def test_a_page_that_is_not_of_the_level_is_refused(
    api: apis.Api, query: str, code: str, field: str
) -> None:
    assert _code(api("GET", f"address-plan/?{query}")) == (400, code, field)


def test_what_a_next_prefix_creates_has_its_attributes_at_once(api: apis.Api) -> None:
    api.cluster("prod")
    path = f"containers/{api.create('containers/', {'cidr': '10.0.0.0/16'})['id']}/next-prefix/"
    stage = {
        "name": "stage",
        "label": "Stage",
        "type": "text",
        "object_types": ["pool", "container"],
        "required": True,
    }
    api.create("custom-fields/", stage)
    assert _code(api("POST", path, POOL)) == (400, "required", "custom_fields.stage")
    assert not Pool.objects.exists()
    values = {"tags": ["Team Net"], "owner": "net@example.org", "custom_fields": {"stage": "live"}}
    pool = Pool.objects.get(pk=api.create(path, POOL | values)["id"])
    assert (pool.tags, pool.owner) == (["team-net"], "net@example.org")
    assert pool.custom_fields == {"stage": "live"}
    body: dict[str, Any] = {"prefix_length": 20, "purpose": "container"}
    assert _code(api("POST", path, body)) == (400, "required", "custom_fields.stage")
    container = Container.objects.get(pk=api.create(path, body | values)["id"])
    assert (container.tags, container.custom_fields) == (["team-net"], {"stage": "live"})
    body = {"prefix_length": 20, "purpose": "cluster_prefix", "cluster": "prod", "owner": "me"}
    assert _code(api("POST", path, body)) == (400, "unknown_field", "owner")


@pytest.mark.parametrize("cidr", ["10.0.0.1/32", "2001:db8::1/128"])
def test_a_single_address_has_no_parts(api: apis.Api, cidr: str) -> None:
    container = api.create("containers/", {"cidr": cidr})["id"]
    body = {"prefix_length": int(cidr.rpartition("/")[2]), "purpose": "container"}
    answer = api("POST", f"containers/{container}/next-prefix/", body)
    assert _code(answer) == (400, "prefix_length", "prefix_length")
    assert "is a single address" in answer.json()["detail"]


def test_a_key_answers_the_same_after_a_deletion_and_to_nobody_else(api: apis.Api) -> None:
    path = f"containers/{api.create('containers/', {'cidr': '10.0.0.0/30'})['id']}/next-prefix/"
    body = {"prefix_length": 32, "purpose": "container"}
    first = api("POST", path, body, Idempotency_Key="k")
    assert api("DELETE", f"containers/{first.json()['id']}/").status_code == 204
    assert api("POST", path, body, Idempotency_Key="k").json() == first.json()
    reused = api("POST", path, body | {"prefix_length": 31}, Idempotency_Key="k")
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
    other = apis.Api("operator")("POST", path, body, Idempotency_Key="k")
    assert (other.json()["cidr"], other.json()["id"] != first.json()["id"]) == ("10.0.0.0/32", True)
    for cidr in ("10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"):
        assert api.create(path, body)["cidr"] == cidr
    assert api("POST", path, body).json()["code"] == "no_free_prefix"
