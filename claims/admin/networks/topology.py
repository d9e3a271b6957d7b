"""Topology of a network: gateways, reserved parts, entries, claims and workloads that the user may see.

A query with an `entry`, a `claim` or a `workload` starts at this row.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext

from claims.admin import scoped
from claims.core.networks import udn
from claims.models import Entry, IPAMClaim, Network, Workload
from claims.models.workloads import WorkloadKind
from pools.admin.pools import topology
from pools.admin.pools.topology import Branch
from pools.models import Cluster
from pools.platform.admin import display, lists

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
    """Yield the entries, claims and workloads that the user may see, two queries for the rows of each."""
    rows: tuple[tuple[str, QuerySet[Any]], ...] = (
        ("entry", scoped.rows(request, Entry).filter(ippool__network=network)),
        ("claim", scoped.rows(request, IPAMClaim).filter(network=network)),
        ("workload", running_workloads(request, network)),
    )
    for (label, number, url), (name, queryset) in zip(
        usage_counts(request, network), rows, strict=True
    ):
        start = lists.parse_id(request.GET.get(name, ""))
        few = list(queryset.filter(pk=start)) if start else []
        few += queryset.exclude(pk=start).order_by("pk")[: _MOST - len(few)] if number else []
        shapes = [_row_shape(row) for row in few]
        for shape in shapes[:1]:
            shape.start = few[0].pk == start
        shapes += topology.rest(number - len(shapes), url)
        yield Branch(label, url, usage=display.digits(number), children=shapes)


def _row_shape(row: Any) -> Branch:
    usage = row.ips[0].partition("/")[0] if row.ips else ""
    if isinstance(row, Entry):
        return Branch(row.mac, display.url_of(row), row.vm, usage)
    if isinstance(row, IPAMClaim):
        return Branch(str(row), display.url_of(row), "", usage)
    url = reverse("admin:find", query={"q": str(row)})
    return Branch(str(row), url, row.get_kind_display(), usage or row.phase)


def guests(
    request: HttpRequest, cluster: Cluster, nodes: Sequence[str], most: int
) -> dict[str, list[Branch]]:
    """Return the VMs and pods on each node that the user may see, at most `most` shapes with their rest."""
    if not request.user.has_perm("claims.view_workload"):
        return {}
    rows = scoped.rows(request, Workload).filter(network__cluster=cluster, node__in=nodes)
    rows = rows.exclude(kind=WorkloadKind.TEMPLATE).annotate(
        number=Window(Count("*"), partition_by="node"),
        place=Window(RowNumber(), partition_by="node", order_by=("namespace", "name", "pk")),
    )
    shapes: dict[str, list[Branch]] = {}
    for row in rows.filter(place__lte=most).order_by("node", "place"):
        on_node = shapes.setdefault(row.node, [])
        if row.place < most or row.number == most:
            on_node.append(_row_shape(row))
        else:
            url = reverse("admin:find", query={"q": row.node})
            on_node += topology.rest(row.number - len(on_node), url)
    return shapes


def running_workloads(request: HttpRequest, network: Network) -> QuerySet[Any]:
    rows = scoped.rows(request, Workload).filter(network=network)
    return rows.exclude(kind=WorkloadKind.TEMPLATE)


def usage_counts(request: HttpRequest, network: Network) -> Any:
    """Yield (label, number, URL of the list) of the visible objects that use the network."""
    tables: list[tuple[str, type[Model], QuerySet[Any]]] = [
        (
            gettext("MAC entries"),
            Entry,
            scoped.rows(request, Entry).filter(ippool__network=network),
        ),
        ("IPAMClaims", IPAMClaim, scoped.rows(request, IPAMClaim).filter(network=network)),
        (gettext("Workloads"), Workload, running_workloads(request, network)),
    ]
    for label, model, rows in tables:
        url = ""
        if admin.site.is_registered(model):
            name = f"admin:claims_{model._meta.model_name}_changelist"
            url = reverse(name, query={"network": network.pk})
        yield label, rows.count(), url
