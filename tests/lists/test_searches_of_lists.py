"""A list finds what it prints: parts of addresses, CIDRs, names and reasons."""

from typing import Any

import pytest

from claims.models import IPPool
from pools.models import Pool
from pools.register import pools
from tests import factories, people
from tests.claims import worlds

pytestmark = pytest.mark.django_db


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
