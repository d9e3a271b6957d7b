"""Topology of a network: gateways, reserved parts, entries, claims and workloads that the user may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.networks import page
from claims.core.networks import udn
from claims.models import Entry, IPAMClaim, Network
from pools.admin.pools import topology
from pools.admin.pools.topology import Branch
from pools.platform.admin import display

_MOST_ADDRESSES = 6  # of each part
_MOST = (topology.MOST - 42) // 3  # rows of each table, beside the parts with their rests


def view(request: HttpRequest, network: Network) -> HttpResponse:
    """Show what the network consists of, and who uses it."""
    root = Branch(network.name, display.url_of(network), gettext("network"))
    for name, values in _parts(network):
        if values:
            root.children.append(Branch(name, children=_address_shapes(values)))
    root.children += _users(request, network)
    columns = (gettext("Network"), gettext("Parts and users"), gettext("Addresses, VMs and pods"))
    return topology.page(request, network, root, columns)


def _parts(network: Network) -> Iterator[tuple[str, list[str]]]:
    yield gettext("Subnets"), list(network.subnets)
    yield gettext("Gateways"), list(udn.gateways(network))
    yield gettext("Reserved"), list(network.reserved_subnets)
    yield gettext("Infrastructure"), list(network.infrastructure_subnets)


def _address_shapes(values: list[str]) -> list[Branch]:
    few = values[:_MOST_ADDRESSES]
    shapes = [Branch(str(value), reverse("admin:find", query={"q": value})) for value in few]
    return shapes + topology.rest(len(values) - len(few), "")


def _users(request: HttpRequest, network: Network) -> Iterator[Branch]:
    """Yield the entries, claims and workloads that the user may see, a query for the rows of each."""
    rows: tuple[QuerySet[Any], ...] = (
        scoped.rows(request, Entry).filter(ippool__network=network),
        scoped.rows(request, IPAMClaim).filter(network=network),
        page.running(request, network),
    )
    for (label, number, url), queryset in zip(
        page.usage_counts(request, network), rows, strict=True
    ):
        few = queryset.order_by("pk")[:_MOST] if number else []
        shapes = [_row_shape(row) for row in few]
        shapes += topology.rest(number - len(shapes), url)
        yield Branch(label, url, usage=display.digits(number), children=shapes)


def _row_shape(row: Any) -> Branch:
    if isinstance(row, Entry):
        return Branch(row.mac, display.url_of(row), row.vm, ", ".join(row.ips[:1]))
    if isinstance(row, IPAMClaim):
        return Branch(str(row), display.url_of(row), "", ", ".join(row.ips[:1]))
    url = reverse("admin:find", query={"q": str(row)})
    return Branch(str(row), url, row.get_kind_display(), row.phase)
