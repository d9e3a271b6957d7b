"""The address plan shows what clusters use themselves, and never offers it as free."""

import pytest

from pools.core.observed.uses import Role
from tests import factories, people
from tests.edges.api import Api
from tests.observed.rows import observed


def _level(api: Api, parent: str = "", **query: str) -> dict[str, list[str]]:
    """The rows of a level: CIDR -> what has it."""
    pairs = "&".join(
        f"{name}={value}" for name, value in {"parent": parent, **query}.items() if value
    )
    rows = api("GET", f"address-plan/?{pairs}").json()["results"]
    return {
        row["cidr"]: [f"{item['type']} {item['name']} {item['cluster']}" for item in row["objects"]]
        for row in rows
    }


def test_free_prefixes_exclude_what_clusters_use() -> None:
    cluster = factories.cluster()
    observed(cluster, Role.SERVICES, "10.0.0.0/20")
    observed(cluster, Role.NODE, "10.0.16.7/32")
    api = Api()
    container = api.create("containers/", {"cidr": "10.0.0.0/16"})["id"]
    path = f"containers/{container}/available-prefixes/?prefix_length=20&limit=2"
    assert api("GET", path).json()["results"] == ["10.0.32.0/20", "10.0.48.0/20"]
    body = {"prefix_length": 20, "purpose": "container", "name": "next"}
    created = api.create(f"containers/{container}/next-prefix/", body)
    assert created["cidr"] not in {"10.0.0.0/20", "10.0.16.0/20"}


def test_a_container_that_a_cluster_uses_as_a_whole_has_nothing_free() -> None:
    observed(factories.cluster(), Role.SERVICES, "10.96.0.0/12")
    api = Api()
    container = api.create("containers/", {"cidr": "10.96.0.0/12"})["id"]
    path = f"containers/{container}/available-prefixes/?prefix_length=20"
    assert api("GET", path).json()["results"] == []
    body = {"prefix_length": 20, "purpose": "container"}
    answer = api("POST", f"containers/{container}/next-prefix/", body)
    assert answer.json()["code"] == "no_free_prefix"


def test_the_tree_has_the_objects_of_all_clusters() -> None:
    first, second = factories.cluster(), factories.cluster()
    for cluster in (first, second):
        observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(first, Role.NODE, "10.96.0.7/32", name="worker-1")
    api = Api()
    api.create("containers/", {"cidr": "10.0.0.0/8", "name": "all"})
    assert _level(api, "10.0.0.0/8")["10.96.0.0/12"] == [
        f"observed_cidr ServiceCIDR kubernetes {first.name}",
        f"observed_cidr ServiceCIDR kubernetes {second.name}",
    ]
    assert _level(api, "10.96.0.0/12") == {
        "10.96.0.7/32": [f"observed_cidr Node worker-1 {first.name}"]
    }
    assert _level(api, "10.0.0.0/8", cluster=second.name) == {
        "10.96.0.0/12": [f"observed_cidr ServiceCIDR kubernetes {second.name}"]
    }
    assert list(_level(api, "", address_space=second.name)) == ["10.96.0.0/12"]


def test_the_page_shows_and_finds_them() -> None:
    cluster = factories.cluster()
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    browser = people.browser()
    for query in ("", "?q=kubernetes", "?q=10.96.0.1", f"?cluster={cluster.pk}"):
        page = browser.get(f"/admin/address-plan/{query}").content.decode()
        assert "10.96.0.0/12" in page
        assert "kubernetes" in page


@pytest.mark.exhaustive
def test_find_knows_addresses_and_names() -> None:
    cluster = factories.cluster()
    observed(cluster, Role.EGRESS, "192.168.1.100/32", name="egress-prod")
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(cluster, Role.LOAD_BALANCER, "192.168.7.0/24", name="metal", namespace="lb")
    browser = people.browser()
    for text, expected in (
        ("lb/metal", "192.168.7.0/24"),
        ("192.168.1.100", "egress-prod"),
        ("192.168.0.0/16", "egress-prod"),
        ("egress", "192.168.1.100"),
        ("10.96.0.10", "kubernetes"),
        ("kubernetes", "10.96.0.0/12"),
    ):
        page = browser.get("/admin/find/", {"q": text}).content.decode()
        assert "Observed CIDRs" in page
        assert expected in page
    page = browser.get("/admin/find/", {"q": "192.168.9.9"}).content.decode()
    assert "Not in any pool, and not used by a cluster." in page


@pytest.mark.exhaustive
def test_the_cluster_s_page_draws_them() -> None:
    cluster = factories.cluster()
    factories.pool("10.20.0.0/16", within=cluster, category="pod", mask=24, name="pods")
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(cluster, Role.NODE, "192.168.1.10/32", name="worker-1")
    browser = people.browser()
    page = browser.get(f"/admin/pools/cluster/{cluster.pk}/change/").content.decode()
    for text in ("m-use-pool", "m-use-services", "m-use-nodes", "worker-1", "kubernetes"):
        assert text in page
    assert "m-use-clash" not in page
    observed(cluster, Role.LOAD_BALANCER, "10.20.0.0/24", name="metal")
    page = browser.get(f"/admin/pools/cluster/{cluster.pk}/change/").content.decode()
    assert "m-use-clash" in page
    part = browser.get(f"/admin/pools/cluster/{cluster.pk}/change/?map=10.20.0.0/24")
    assert "Map of 10.20.0.0/24" in part.content.decode()


def test_filters_of_the_list() -> None:
    cluster, other = factories.cluster(), factories.cluster()
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(cluster, Role.NODE, "192.168.1.10/32", name="worker-1")
    observed(other, Role.NODE, "192.168.1.11/32", name="worker-2")
    api = Api("viewer")

    def names(query: str) -> list[str]:
        rows = api("GET", f"observed-cidrs/?ordering=cidr&{query}").json()["results"]
        return [row["name"] for row in rows]

    assert names("") == ["kubernetes", "worker-1", "worker-2"]
    assert names(f"cluster={other.name}") == ["worker-2"]
    assert names("role=services") == ["kubernetes"]
    assert names("kind=Node&name=worker-1") == ["worker-1"]
    assert names("within=192.168.0.0/16") == ["worker-1", "worker-2"]
    assert names("overlapping=10.96.0.1/32") == ["kubernetes"]
    assert api("GET", "observed-cidrs/?role=bad").status_code == 400
    assert api("POST", "observed-cidrs/", {}).status_code == 405
    assert Api("viewer")("GET", "observed-cidrs/999/").status_code == 404


def test_a_disconnected_cluster_uses_nothing() -> None:
    """As its observed objects, what they used goes."""
    from pools.clusters import connections
    from pools.models import Connection, ObservedCIDR
    from pools.models.fields import Now

    cluster = factories.cluster()
    observed(cluster, Role.SERVICES, "10.96.0.0/12")
    connection = Connection.objects.create(cluster=cluster, server="https://x", due_at=Now())
    connections.disconnect(connection, author=factories.BY)
    assert not ObservedCIDR.objects.exists()
