"""Rows of the address index by what they name."""

from __future__ import annotations

from django.db.models import QuerySet

from claims.models import IndexEntry, Network


def by_mac(mac: str) -> QuerySet[IndexEntry]:
    """Return the index entries that name a MAC address, in any network."""
    return _in_networks().filter(mac=mac)


def by_address(address: str) -> QuerySet[IndexEntry]:
    """Return the index entries that name an IP address, in any network."""
    return _in_networks().filter(address=address)


def _in_networks() -> QuerySet[IndexEntry]:
    """Return all index entries; the networks are named, because the indexes begin with them."""
    networks = list(Network.objects.order_by().values_list("pk", flat=True))
    return IndexEntry.objects.filter(network_id__in=networks)
