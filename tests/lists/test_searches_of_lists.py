"""A list finds what it prints: parts of addresses, CIDRs, names and reasons."""

from typing import Any

import pytest
from django.urls import reverse

from claims.models import IPPool, Network
from pools.models import Environment, Pool
from pools.register import pools
from tests import factories, people
from tests.claims import worlds


def search_results(path: str, text: str) -> list[Any]:
    page = people.browser().get(f"/admin/{path}/", {"q": text})
    return list(page.context["cl"].result_list)


def test_events_of_a_cidr_a_name_and_a_reason() -> None:
    pool = factories.pool("10.40.0.0/20")
    Pool.objects.filter(pk=pool.pk).update(description="x")
    author = factories.BY.__class__("ann", "api", reason="see CHG-4711")
    pools.change(pool.pk, pools.PoolChange(description="new"), author=author)
    assert [event.type for event in search_results("pools/event", "10.40.0.0/20")] == [
        "pool.cidr_added"
    ]
    assert "pool.created" in {event.type for event in search_results("pools/event", pool.name)}
    assert {event.reason for event in search_results("pools/event", "chg-4711")} == {"see CHG-4711"}


def test_networks_and_entries_by_the_beginning_of_an_address() -> None:
    network = worlds.network("blue", subnets=["10.128.0.0/22"])
    ippool: IPPool = worlds.ippool(network)
    entry = worlds.entry(ippool, "02:aa:aa:aa:aa:01", "10.128.1.21/22")
    other = worlds.entry(ippool, "02:aa:aa:aa:aa:02", "10.128.2.21/22")
    assert search_results("claims/entry", "10.128.1") == [entry]
    assert search_results("claims/entry", "10.128.2.21/22") == [other]
    assert set(search_results("claims/entry", "10.128")) == {entry, other}
    assert search_results("claims/network", "10.128") == [network]
    assert search_results("claims/network", "10.129") == []
    Network.objects.filter(pk=network.pk).update(default_gateways=["192.0.2.1"])
    assert search_results("claims/network", "192.0.2.1") == [network]  # the second list of a row
    assert search_results("claims/network", "10.128.3.0/24") == [network]


@pytest.mark.exhaustive
def test_environments_by_words_in_any_letter_case_and_column() -> None:
    cluster = factories.cluster()
    for org, env, text in (
        ("acme", "Shop-1", "Owned by Team Red"),
        ("team", "web", "red \"quoted\" back\\slash"),
        ("big", "\u0131stanbul", "Straße É"),
    ):  # fmt: skip
        Environment.objects.create(cluster=cluster, org=org, env=env, description=text)
    client = people.browser()
    for text, envs in {
        "SHOP": {"Shop-1"},
        "team red": {"Shop-1", "web"},
        '"team red"': {"Shop-1"},
        "'by team' me": {"Shop-1"},
        "red back\\slash": {"web"},
        "straße": {"\u0131stanbul"},
        "é \u0131ST": {"\u0131stanbul"},
        "b": {"Shop-1", "web", "\u0131stanbul"},
        "acme/shop": {"Shop-1"},
        "acme/web": set(),
        "red blue": set(),
    }.items():
        page = client.get(reverse("admin:pools_environment_changelist"), {"q": text})
        assert {row.env for row in page.context["cl"].result_list} == envs, text
