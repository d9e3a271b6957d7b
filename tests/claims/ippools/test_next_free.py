"""What forms of entries and claims offer: the next free address, and the names that the register knows."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.entries import entries
from claims.models import Entry, IPPool, Network
from pools.models import Environment
from pools.register.allocator import allocation
from pools.register.demo import demo
from tests import factories, people
from tests.claims import worlds

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture
def network() -> Network:
    return worlds.network("cluster_udn_blue", subnets=("10.60.0.0/28",))


@pytest.fixture
def ippool(network: Network) -> IPPool:
    return worlds.ippool(network, "blue")


def free(client: Client, **query: object) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(reverse("admin:claims_network_free"), query).json()
    return answer


def names(client: Client, offered: str, text: str = "") -> Any:
    return client.get(reverse("admin:names", args=[offered]), {"q": text}).json()["names"]


def owner_of(network: Network, namespace: str) -> Client:
    return people.signed_in(worlds.owner(network.cluster, namespace).user)


def test_the_next_free_address_can_be_saved(ippool: IPPool, browser: Client) -> None:
    first = free(browser, ippool=ippool.pk)["addresses"]
    data = {"ippool": ippool.pk, "mac": A, "ips": first, "vm": "web", "namespace": "shop"}
    assert browser.post(reverse("admin:claims_entry_add"), data).status_code == 302
    assert Entry.objects.get().ips == first
    second = free(browser, ippool=f"{ippool.cluster.name}/{ippool.name}")["addresses"]
    assert second != first
    assert free(browser, network=ippool.network_id)["addresses"] == second
    worlds.entry(ippool, B, *second)
    assert free(browser, ippool=ippool.pk)["addresses"] not in (first, second)


def test_a_full_network_and_no_network_say_so(network: Network, ippool: IPPool) -> None:
    client = people.browser()
    assert free(client) == {"problem": "Choose a network first."}
    assert free(client, network="9" * 30) == {"problem": "Choose a network first."}
    for number in range(16):
        worlds.entry(ippool, f"02:00:00:00:01:{number:02x}", f"10.60.0.{number}/28")
    assert "has no free IPv4 address" in free(client, network=network.pk)["problem"]


def test_a_network_that_holds_no_claims_says_so_before_they_are_saved(browser: Client) -> None:
    layer3 = worlds.network("cluster_udn_legacy", subnets=("10.61.0.0/16",), topology="layer3")
    says = "network cluster_udn_legacy cannot hold claims"
    assert says in free(browser, network=layer3.pk)["problem"]
    url = reverse("admin:claims_ipamclaim_add")
    assert says in browser.get(url, {"network": layer3.pk}).content.decode()
    data = {"network": layer3.pk, "namespace": "shop", "vm": "web"}
    assert says in browser.post(url, data).context["form"].errors["network"][0]


def test_namespaces_are_those_that_the_user_may_see(network: Network, ippool: IPPool) -> None:
    worlds.entry(ippool, A, "10.60.0.5/28", vm="web", namespace="shop")
    worlds.entry(ippool, B, "10.60.0.6/28", vm="db", namespace="bank")
    assert names(people.browser(), "namespaces") == ["bank", "shop"]
    assert names(people.browser(), "namespaces", "ho") == ["shop"]
    assert names(owner_of(network, "shop"), "namespaces") == ["shop"]
    other = worlds.network("other", of=factories.cluster())
    assert free(owner_of(other, "shop"), network=network.pk) == {
        "problem": "Choose a network first."
    }


def test_organizations_and_environments_are_suggested(browser: Client) -> None:
    cluster = factories.cluster()
    for org, env in (("acme", "prod"), ("acme", "test"), ("globex", "prod")):
        Environment.objects.create(cluster=cluster, org=org, env=env)
    assert names(browser, "organizations") == ["acme", "globex"]
    assert names(browser, "environments", "\0") == []
    assert names(browser, "environments", "te") == ["test"]
    page = browser.get(reverse("admin:pools_environment_add")).content.decode()
    assert f'data-names="{reverse("admin:names", args=["organizations"])}"' in page


def test_nodes_are_suggested_where_a_node_gets_a_block() -> None:
    pool = factories.pool("10.0.0.0/29", category="node")
    for name in ("worker-1", "worker-2"):
        factories.take(pool, allocation.Holder("node", name))
    client, url = people.browser(), reverse("admin:names", args=["nodes"])
    assert names(client, "nodes") == ["worker-1", "worker-2"]
    assert names(client, "nodes", "2") == ["worker-2"]
    page = reverse("admin:pools_pool_allocate", args=[pool.pk])
    assert f'data-names="{url}"' in client.get(page).content.decode()
    assert people.browser([]).get(url).status_code == 403


# --- The filter of entries offers each namespace once, without reading all entries ----------------
@pytest.mark.exhaustive
def test_used_namespaces_are_the_distinct_ones() -> None:
    assert entries.used_namespaces(5) == []
    demo.load()
    names = Entry.objects.exclude(namespace="").order_by("namespace")
    expected = list(names.values_list("namespace", flat=True).distinct())
    assert len(expected) > 1
    assert entries.used_namespaces(500) == expected
    assert entries.used_namespaces(1) == expected[:1]
