"""networks/ID/workloads/ over REST: pages, filters, scope, and adopting."""

from typing import Any

import pytest

from claims.access import namespaces
from claims.models import NAD, Entry, IPPool, Network
from claims.workloads import results
from tests.claims import worlds
from tests.edges.api import Api

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
FIVE, SIX = "10.0.0.5/24", "10.0.0.6/24"


@pytest.fixture
def network() -> Network:
    """One of each result."""
    result = worlds.network()
    ippool = worlds.ippool(result)
    NAD.objects.create(network=result, namespace="blue", name="n")
    worlds.entry(ippool, A, FIVE, vm="db", namespace="blue")
    worlds.entry(ippool, B, SIX, vm="web", namespace="blue")
    worlds.entry(ippool, C, "10.0.0.7/24")
    worlds.workload(result, "db", A, FIVE)
    worlds.workload(result, "web", B, "10.0.0.66/24")
    worlds.workload(result, "new", "02:00:00:00:00:0d", "10.0.0.8/24")
    return result


def page(api: Api, network: Network, query: str = "") -> dict[str, Any]:
    answer = api("GET", f"networks/{network.pk}/workloads/?{query}")
    assert answer.status_code == 200, answer.content
    result: dict[str, Any] = answer.json()
    return result


def test_each_result(network: Network, api: Api) -> None:
    matches = [result["result"] for result in page(api, network)["results"]]
    assert matches == ["matching", "different", "missing", "unknown"]
    for result in matches:
        (row,) = page(api, network, f"result={result}")["results"]
        assert row["result"] == result
    counts = api("GET", f"networks/{network.pk}/workloads/counts/").json()
    assert counts == dict.fromkeys(matches, 1)
    assert api("GET", f"networks/{network.pk}/workloads/?result=odd").status_code == 400


def test_a_row(network: Network) -> None:
    (row,) = page(Api(), network, "result=different")["results"]
    assert row["registered"]["ips"] == [SIX]
    assert (row["registered"]["source"], row["registered"]["vm"]) == ("ippool", "web")
    assert row["running"] == {"mac": B, "ips": ["10.0.0.66/24"]}
    assert (row["workload"]["kind"], row["workload"]["name"]) == ("vmi", "web")
    codes = ["address_not_running", "address_not_registered"]
    assert [reason["code"] for reason in row["reasons"]] == codes


def test_pages(network: Network) -> None:
    api, observed, query = Api(), [], "limit=1"
    while query:
        result = page(api, network, query)
        observed += [row["result"] for row in result["results"]]
        query = (result["next"] or "").partition("?")[2]
    assert observed == ["matching", "different", "missing", "unknown"]


def adopt(api: Api, network: Network, body: Any, query: str = "") -> Any:
    return api("POST", f"networks/{network.pk}/workloads/adopt/{query}", body)


def test_adopting(network: Network, api: Api) -> None:
    body = {"result": "unknown", "reason": "they run"}
    before = adopt(api, network, body, "?dry_run=true").json()
    assert (before["create"], Entry.objects.count()) == (1, 3)
    assert adopt(api, network, body).json() == before
    assert Entry.objects.filter(source="adopted", vm="new").count() == 1
    assert adopt(api, network, body).json()["steps"] == []


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"result": "unknown"}, "required"),
        ({"reason": "r"}, "one_of"),
        ({"reason": "r", "result": "unknown", "workloads": [1]}, "one_of"),
        ({"reason": "r", "result": "matching"}, "invalid_choice"),
        ({"reason": "r", "workloads": []}, "wrong_type"),
        ({"reason": "r", "workloads": ["1"]}, "wrong_type"),
        ({"reason": "r", "result": "unknown", "more": 1}, "unknown_field"),
    ],
)
def test_what_is_refused(network: Network, body: Any, code: str) -> None:
    answer = adopt(Api(), network, body)
    assert answer.status_code == 400
    assert code in {error["code"] for error in answer.json()["errors"]}


def test_a_workload_that_is_not_there(network: Network) -> None:
    assert adopt(Api(), network, {"reason": "r", "workloads": [1 << 40]}).status_code == 404


def test_a_vm_owner_sees_their_own_namespaces_as_if_alone(network: Network) -> None:
    """A foreign VM runs with their MAC, and theirs with a foreign one: neither can be told."""
    ippool = IPPool.objects.get(network=network)
    worlds.entry(ippool, "02:00:00:00:00:1a", "10.0.0.20/24", vm="mine", namespace="red")
    worlds.workload(network, "foreign", "02:00:00:00:00:1a", "10.0.0.20/24")
    worlds.entry(ippool, "02:00:00:00:00:1b", "10.0.0.21/24", vm="foreign-2", namespace="blue")
    worlds.workload(network, "mine", "02:00:00:00:00:1b", "10.0.0.21/24", namespace="red")
    scope = namespaces.Scope(namespaces={network.cluster_id: frozenset({"red"})})
    rows = results.visible_rows(scope).filter(network=network).order_by(*results.ORDER)
    (shape,) = results.render_rows(list(rows.values()))
    assert (shape["result"], shape["workload"].name) == ("different", "mine")
    assert results.result_counts(network.pk, scope)["different"] == 1
