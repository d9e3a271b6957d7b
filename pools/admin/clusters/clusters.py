"""Clusters: list, page, and what their forms save."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from pools.admin.clusters import address_map, cluster_form, connections, observed
from pools.admin.pools import page, topology
from pools.clusters import connections as cluster_connections, fleet
from pools.core import errors
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Cluster, Connection, Event, ObservedCIDR, Pool
from pools.platform import database, events, search
from pools.platform.admin import (
    attributes,
    columns,
    display,
    filters,
    lists,
    objects,
    pages,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.alerts import open_alerts
from pools.register import clusters, event_filters, usage

SHOWN_CIDRS = 50


def _by_state(_request: HttpRequest, rows: QuerySet[Cluster], state: str) -> QuerySet[Cluster]:
    if state == "none":
        return rows.filter(connection__isnull=True)
    now = database.now()
    return rows.filter(
        pk__in=[
            row.cluster_id
            for row in fleet.list_connections()
            if cluster_connections.status(row, now).state.key == state
        ]
    )


def _state_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    states = [(state.key, gettext(state.word)) for state in ConnectionState]
    return [*states, ("none", gettext("not connected"))]


def _of_connection(
    name: str, title: StrOrPromise, cell: Callable[[Any, fleet.ConnectionSummary], object]
) -> Column:
    """A column of the connection: `cell` of the cluster and its summary, a dash without connection."""
    return Column(
        name,
        title,
        lambda cluster: cell(cluster, cluster.summary) if cluster.summary else display.DASH,
    )


def _list_link(name: str, cluster: Cluster, number: object) -> SafeString:
    return display.link(reverse(name, query={"cluster": cluster.pk}), number)


def _page(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    pools = Pool.objects.filter(cluster=cluster)
    chosen_map = search.parse(request.GET.get("map", "")).network
    events = event_filters.of_cluster(Event.objects.all(), cluster.pk).order_by("-id")[:10]
    return pages.page(
        request,
        "cluster.html",
        cluster,
        title=cluster.name,
        call=f"clusters/{cluster.name}/",
        rows=list(page.measure(pools.prefetch_related("cidrs"))),
        maps=address_map.read_views(cluster, chosen_map),
        chosen_map=chosen_map,
        observed_cidrs=ObservedCIDR.objects.filter(space__cluster=cluster)[:SHOWN_CIDRS],
        events=events,
        claims=observed.claims_of_cluster(request, cluster),
        alerts=open_alerts.alerts_about(f"cluster/{cluster.pk}")[: open_alerts.SHOWN],
        **connections.context(cluster),
    )


def _divide(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    form = cluster_form.DivideForm(cluster, request.POST or None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        with pages.errors_at_field(form, cluster_form.field_of_problem):
            clusters.divide_prefix(
                cluster,
                values["cluster_prefix"],
                author=pages.author(request),
                node=values["node_prefix"],
                instance=values["instance_prefix"],
            )
            return pages.done(
                request, gettext("The node pool and the instance pool were created."), cluster
            )
    return pages.form_page(
        request,
        cluster,
        form,
        title=gettext("Split a prefix of %(cluster)s") % {"cluster": cluster.name},
        template="cluster_form.html",
        button=gettext("Create the pools"),
    )


CLUSTERS = attributes.bulk_changes(
    Cluster, lambda row, values, author: clusters.change(row, values, author=author)
)


@admin.register(Cluster)
class ClusterAdmin(attributes.AttributedList[Cluster], objects.ObjectAdmin[Cluster]):
    form = cluster_form.ClusterChangeForm
    add_form = cluster_form.ClusterForm
    list_display = (
        Column("name", _("name"), display.row_link, ordering="name"),
        Column(
            "state",
            _("state"),
            lambda cluster: display.connection_status(
                cluster.summary.status if cluster.summary else None
            ),
        ),
        _of_connection(
            "last_sync",
            _("last full sync"),
            lambda _cluster, summary: display.timestamp(summary.connection.succeeded_at),
        ),
        _of_connection(
            "objects",
            _("objects"),
            lambda cluster, summary: _list_link(
                "admin:pools_observedobject_changelist", cluster, display.number(summary.objects)
            ),
        ),
        _of_connection(
            "drift",
            _("drift"),
            lambda cluster, summary: _list_link(
                "admin:pools_drift_changelist", cluster, display.number(summary.drift)
            ),
        ),
        _of_connection(
            "managed_resources",
            _("managed resources"),
            lambda _cluster, summary: (
                ", ".join(summary.connection.managed_resources)
                or summary.connection.get_mode_display()
            ),
        ),
        _of_connection(
            "version", _("version"), lambda _cluster, summary: summary.connection.version
        ),
        Column(
            "pools",
            _("pools"),
            lambda cluster: _list_link("admin:pools_pool_changelist", cluster, cluster.pool_count),
            ordering="pool_count",
        ),
        columns.address("cluster_prefix", _("cluster prefix"), ordering="cluster_prefix"),
    )
    more_columns = (
        columns.text("description", _("description"), ordering="description"),
        columns.number("instance_mtu", _("MTU of instances")),
        columns.timestamp("created_at", _("created"), ordering="created_at"),
    )
    live_columns = ("state", "last_sync", "objects", "drift")
    list_filter = (filters.custom(_("state"), "state", _state_choices, _by_state),)
    search_help_text = _("Name")
    exported = ("id", "name", "cluster_prefix", "pool_count", "created_at", "description")
    ordering = ("name",)
    list_before_template = "cadastre/clusters_intro.html"
    empty_text = _(
        "No clusters yet. A cluster with an IPv6 prefix gets one pool for nodes and one for "
        "instances."
    )
    list_pages = (CLUSTERS.page(),)
    actions = (CLUSTERS.action(),)
    row_pages = (
        Page("change", _page),
        Page("topology", topology.of_cluster, "pools.view_cluster", "pools.view_pool"),
        Page("divide", _divide, "pools.change_cluster", "pools.add_pool"),
        Page("connect", connections.connect, "pools.view_cluster"),
        Page("terms", connections.terms, "pools.change_connection"),
        Page("test", connections.test, "pools.reconcile"),
        Page("pause", connections.pause, "pools.change_connection"),
        Page("resume", connections.resume, "pools.change_connection"),
        Page("reconcile", connections.reconcile, "pools.reconcile"),
        Page("disconnect", connections.disconnect, "pools.delete_connection"),
        lists.history(lambda cluster: {"cluster": cluster.pk}, "pools.view_event"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        return super().get_queryset(request).annotate(pool_count=Count("pools"))

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        connected = Connection.objects.filter(cluster__in=rows).select_related("cluster")
        summaries = {
            summary.connection.cluster_id: summary
            for summary in fleet.summaries(connected.defer("sealed"))
        }
        for cluster in rows:
            cluster.summary = summaries.get(cluster.pk)

    def field_of_problem(self, problem: errors.FieldProblem) -> str | None:
        return cluster_form.field_of_problem(problem)

    def form_context(self, request: HttpRequest, row: Cluster | None) -> dict[str, Any]:
        if row is not None:
            return {}
        return {"template": "cluster_form.html", "button": gettext("Add the cluster")}

    def save_row(self, row: Cluster | None, form: Any, author: events.Author) -> Cluster:
        if row is not None:
            return clusters.change(row, form.changes(), author=author, version=form.check_version)
        description = form.cleaned_data["description"] or ""
        return clusters.create(author=author, **{**form.cleaned_data, "description": description})

    def show_saved(self, request: HttpRequest, row: Cluster, message: str) -> HttpResponse:
        if "_connect" in request.POST:
            url = reverse("admin:pools_cluster_connect", args=[row.pk])
            return pages.done(request, message, url)
        return super().show_saved(request, row, message)

    def delete_model(self, request: HttpRequest, obj: Cluster) -> None:
        clusters.remove(obj, author=pages.author(request))

    def deletion_context(self, request: HttpRequest, row: Cluster) -> dict[str, Any]:
        pools = list(Pool.objects.filter(cluster=row).order_by("name"))
        families = usage.usage_by_pool(pools)
        used = sum(counts.used for by_family in families.values() for counts in by_family.values())
        names = ", ".join(pool.name for pool in pools) or gettext("none")
        if not used:
            effects = [
                gettext("Pools that are deleted: %(pools)s.") % {"pools": names},
                gettext("No block is in use. The history is kept."),
            ]
            return {"effects": effects}
        text = ngettext(
            "%(number)s block is held or in cooldown in the pools %(pools)s. Release it first.",
            "%(number)s blocks are held or in cooldown in the pools %(pools)s. Release them first.",
            used,
        )
        holders = reverse("admin:pools_block_changelist", query={"cluster": row.pk})
        return {
            "refusal": True,
            "effects": [text % {"number": display.digits(used), "pools": names}],
            "links": [(holders, gettext("Show holders"))],
        }
