"""The bars of time of MAC entries and claims, and what of them a VM owner sees."""

from typing import Any

import pytest
from django.urls import reverse

from claims.models import Entry, Network
from pools.platform import events
from tests.claims import worlds
from tests.claims.imports import pages


@pytest.fixture
def network() -> Network:
    return worlds.network("net", subnets=("10.0.0.0/24",))


@pytest.fixture
def entry(network: Network) -> Entry:
    """An entry that was the bank's before it was the shop's."""
    made = worlds.entry(
        worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.5/24", vm="safe", namespace="bank"
    )
    with events.recorded_by(worlds.BY):
        Entry.objects.filter(pk=made.pk).update(vm="web", namespace="shop")
    return Entry.objects.get(pk=made.pk)


def _page(client: Any, entry: Entry) -> str:
    return pages.text(client.get(reverse("admin:claims_entry_change", args=[entry.pk])))


def test_an_entry_shows_what_it_named_when(entry: Entry) -> None:
    page = _page(pages.browser("viewer"), entry)
    assert 'aria-label="02:00:00:00:00:01 over time"' in page
    for label in ("bank/safe 10.0.0.5/24", "shop/web 10.0.0.5/24"):
        assert f"<td>{label}</td>" in page


def test_an_owner_does_not_see_what_others_had(network: Network, entry: Entry) -> None:
    page = _page(pages.owner(network, "shop"), entry)
    assert "<td>shop/web 10.0.0.5/24</td>" in page
    assert "bank/safe" not in page
    assert "10.0.0.5 ·" not in page


def test_a_claim_shows_its_addresses_over_time(network: Network) -> None:
    claim = worlds.claim(network, "web", "10.0.0.7/24", namespace="shop")
    url = reverse("admin:claims_ipamclaim_change", args=[claim.pk])
    page = pages.text(pages.browser("viewer").get(url))
    assert "<td>shop/web 10.0.0.7/24</td>" in page
