"""Demand and blocks of nodes: the CiliumNodes of a cluster compared with the register."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext

from pools.cilium import pod_cidrs
from pools.clusters import fleet
from pools.models import Cluster, Connection
from pools.platform.admin import lists, pages

SHOWN = 50  # nodes on a page


def view(request: HttpRequest) -> HttpResponse:
    """Show one page of the nodes of a cluster, sorted by name."""
    pages.require(request, "pools.view_observedobject")
    clusters = list(Cluster.objects.filter(connection__isnull=False).order_by("name"))
    chosen_id = lists.parse_id(request.GET.get("cluster", ""))
    cluster = next(
        (row for row in clusters if row.pk == chosen_id), clusters[0] if clusters else None
    )
    name = request.GET.get("q", "").strip().replace("\0", "")
    after = request.GET.get("after", "").replace("\0", "")
    nodes: list[pod_cidrs.NodeAddresses] = []
    if cluster is not None:
        nodes = pod_cidrs.list_nodes(cluster.pk, after=after, limit=SHOWN + 1, name=name)
    more = len(nodes) > SHOWN
    return pages.page(
        request,
        "nodes.html",
        title=gettext("Nodes"),
        clusters=clusters,
        cluster=cluster,
        summary=_summary(cluster),
        nodes=nodes[:SHOWN],
        name=name,
        after=after,
        more=_url(cluster, after=nodes[SHOWN - 1].name) if more and cluster else "",
        first=_url(cluster) if after and cluster else "",
        call=f"clusters/{cluster.name}/nodes/" if cluster else "",
    )


def _summary(cluster: Cluster | None) -> fleet.ConnectionSummary | None:
    row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
    return fleet.summary(row) if cluster and row else None


def _url(cluster: Cluster, **more: Any) -> str:
    return reverse("admin:nodes", query={"cluster": cluster.pk, **more})
