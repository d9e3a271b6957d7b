"""Clusters: list, page, forms to add, split a prefix and delete."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import cluster_form, connections
from pools.admin.pools import page
from pools.clusters import connections as cluster_connections
from pools.clusters import fleet
from pools.core import blocks, errors
from pools.core.kubernetes.connection_status import ConnectionState
from pools.models import Cluster, Connection, Event, Pool
from pools.platform import database
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.platform.alerts import open_alerts
from pools.register import clusters, usage


class ClusterForm(forms.Form):
    name = fields.name_field(label=_("Name"))
    description = fields.reason_field(label=_("Description"), required=False, help_text="")
    cluster_prefix = fields.cidr_field(
        label=_("Cluster prefix"),
        required=False,
        widget=fields.addresses_text(placeholder="2001:db8:10::/48"),
        help_text=_(
            "IPv6, /64 or larger. It is split into one pool for nodes and one for "
            "instances. Leave it empty for a cluster without these pools."
        ),
    )
    node_prefix = fields.cidr_field(
        label=_("Node prefix"),
        required=False,
        help_text=_("Empty: the first /64 of the cluster prefix."),
    )
    instance_prefix = fields.cidr_field(
        label=_("Instance prefix"),
        required=False,
        help_text=_("Empty: the second /64 of the cluster prefix."),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        node, instance = values.get("node_prefix"), values.get("instance_prefix")
        prefix = values.get("cluster_prefix")
        if prefix is not None:
            try:
                self.parts = blocks.divide_cluster_prefix(prefix, node=node, instance=instance)
            except errors.InvalidInput as error:
                pages.add_errors(self, error)
        elif (node or instance) and "cluster_prefix" not in self.errors:
            self.add_error("cluster_prefix", gettext("Enter the prefix to split."))
        return values


class ClusterList(lists.BoundedList):
    """Adds the connection summary to each cluster, with a few queries for the whole page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        page_clusters = list(self.result_list)
        rows = Connection.objects.filter(cluster__in=page_clusters).select_related("cluster")
        rows = rows.defer("sealed")
        summaries = {summary.connection.cluster_id: summary for summary in fleet.summaries(rows)}
        for cluster in page_clusters:
            cluster.summary = summaries.get(cluster.pk)
        self.result_list = page_clusters


class ClusterStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(state.key, gettext(state.word)) for state in ConnectionState] + [
            ("none", gettext("not connected"))
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Cluster]) -> QuerySet[Cluster]:
        if self.value() == "none":
            return rows.filter(connection__isnull=True)
        if not self.value():
            return rows
        now = database.now()
        return rows.filter(
            pk__in=[
                row.cluster_id
                for row in fleet.list_connections()
                if cluster_connections.status(row, now).state.key == self.value()
            ]
        )


@admin.register(Cluster)
class ClusterAdmin(lists.ReadOnlyAdmin[Cluster]):
    list_display = (
        "shown_name",
        "shown_state",
        "shown_last_sync",
        "shown_objects",
        "shown_drift",
        "shown_managed_resources",
        "shown_version",
        "shown_pools",
        "shown_prefix",
    )
    list_filter = (ClusterStateFilter,)
    list_display_links = None
    search_fields = ("name", "description")
    search_help_text = _("Name")
    exported = ("id", "name", "cluster_prefix", "pool_count", "created_at", "description")
    ordering = ("name",)
    list_before_template = "cadastre/clusters_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        return super().get_queryset(request).annotate(pool_count=Count("pools"))

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, cluster: Cluster) -> SafeString:
        return display.row_link(cluster)

    @admin.display(description=_("cluster prefix"), ordering="cluster_prefix")
    def shown_prefix(self, cluster: Cluster) -> SafeString:
        return display.address(cluster.cluster_prefix) if cluster.cluster_prefix else display.DASH

    @admin.display(description=_("pools"), ordering="pool_count")
    def shown_pools(self, cluster: Any) -> SafeString:
        url = reverse("admin:pools_pool_changelist", query={"cluster": cluster.pk})
        return display.link(url, cluster.pool_count)

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return ClusterList

    @admin.display(description=_("state"))
    def shown_state(self, cluster: Any) -> SafeString:
        return display.connection_status(cluster.summary.status if cluster.summary else None)

    @admin.display(description=_("last full sync"))
    def shown_last_sync(self, cluster: Any) -> SafeString:
        return (
            display.timestamp(cluster.summary.connection.succeeded_at)
            if cluster.summary
            else display.DASH
        )

    @admin.display(description=_("objects"))
    def shown_objects(self, cluster: Any) -> SafeString:
        if not cluster.summary:
            return display.DASH
        url = reverse("admin:pools_observedobject_changelist", query={"cluster": cluster.pk})
        return display.link(url, display.number(cluster.summary.objects))

    @admin.display(description=_("drift"))
    def shown_drift(self, cluster: Any) -> SafeString:
        if not cluster.summary:
            return display.DASH
        url = reverse("admin:pools_drift_changelist", query={"cluster": cluster.pk})
        return display.link(url, display.number(cluster.summary.drift))

    @admin.display(description=_("managed resources"))
    def shown_managed_resources(self, cluster: Any) -> SafeString | str:
        if not cluster.summary:
            return display.DASH
        row = cluster.summary.connection
        return ", ".join(row.managed_resources) or row.get_mode_display()

    @admin.display(description=_("version"))
    def shown_version(self, cluster: Any) -> SafeString | str:
        return cluster.summary.connection.version if cluster.summary else display.DASH

    # --- pages ------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.add_cluster")

    def has_delete_permission(self, request: HttpRequest, obj: Cluster | None = None) -> bool:
        return request.user.has_perm("pools.delete_cluster")

    def get_urls(self) -> list[URLPattern]:
        divide = path(
            "<int:cluster_id>/divide/", pages.in_admin(_divide), name="pools_cluster_divide"
        )
        edit = path("<int:cluster_id>/edit/", pages.in_admin(_edit), name="pools_cluster_edit")
        return [divide, edit, *connections.urls(), *super().get_urls()]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        pages.require(request, "pools.add_cluster")
        form = ClusterForm(request.POST or None)
        if request.method == "POST" and form.is_valid() and "_preview" not in request.POST:
            try:
                cluster = _create(form, request)
            except errors.IpamError as error:
                pages.add_errors(form, error, _field_of_problem)
            else:
                messages.success(
                    request, gettext("Cluster %(cluster)s was added.") % {"cluster": cluster.name}
                )
                return HttpResponseRedirect(display.url_of(cluster))
        return pages.page(
            request,
            "cluster_form.html",
            title=gettext("Add cluster"),
            opts=Cluster._meta,
            form=form,
        )

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_cluster")
        cluster = _cluster(object_id)
        pools = list(
            Pool.objects.filter(cluster=cluster).prefetch_related(
                "cidrs__reserved_ranges", "cidrs__pool"
            )
        )
        families = usage.usage_by_pool(pools)
        rows = [
            (pool, families[pool.pk], page.pool_state(families[pool.pk], list(pool.cidrs.all())))
            for pool in pools
        ]
        events = Event.objects.filter(cluster_id=cluster.pk).order_by("-id")[:10]
        return pages.page(
            request,
            "cluster.html",
            title=cluster.name,
            opts=Cluster._meta,
            original=cluster,
            cluster=cluster,
            call=f"clusters/{cluster.name}/",
            rows=rows,
            events=events,
            alerts=open_alerts.alerts_about(f"cluster/{cluster.pk}")[: open_alerts.SHOWN],
            **connections.context(cluster),
        )

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.delete_cluster")
        cluster = _cluster(object_id)
        if request.method == "POST":
            with pages.errors_as_messages(request):
                clusters.remove(cluster, author=pages.author(request))
                messages.success(
                    request, gettext("Cluster %(cluster)s was deleted.") % {"cluster": cluster.name}
                )
                return HttpResponseRedirect(reverse("admin:pools_cluster_changelist"))
        pools = list(Pool.objects.filter(cluster=cluster))
        families = usage.usage_by_pool(pools)
        used = sum(counts.used for by_family in families.values() for counts in by_family.values())
        return pages.page(
            request,
            "cluster_delete.html",
            title=gettext("Delete cluster %(cluster)s?") % {"cluster": cluster.name},
            opts=Cluster._meta,
            original=cluster,
            cluster=cluster,
            pools=pools,
            names=", ".join(pool.name for pool in pools),
            used=used,
        )

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_event")
        url = reverse("admin:pools_event_changelist", query={"cluster": object_id})
        return HttpResponseRedirect(url)


def _create(form: ClusterForm, request: HttpRequest) -> Cluster:
    values = form.cleaned_data
    return clusters.create(
        values["name"],
        author=pages.author(request),
        cluster_prefix=values["cluster_prefix"],
        node_prefix=values["node_prefix"],
        instance_prefix=values["instance_prefix"],
        description=values["description"] or "",
    )


class DivideForm(ClusterForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        del self.fields["name"], self.fields["description"]
        self.fields["cluster_prefix"].required = True


def _divide(request: HttpRequest, cluster_id: int) -> HttpResponse:
    pages.require(request, "pools.change_cluster", "pools.add_pool")
    cluster = _cluster(str(cluster_id))
    form = DivideForm(request.POST or None, initial={"cluster_prefix": cluster.cluster_prefix})
    if request.method == "POST" and form.is_valid() and "_preview" not in request.POST:
        values = form.cleaned_data
        try:
            clusters.divide_prefix(
                cluster,
                values["cluster_prefix"],
                author=pages.author(request),
                node=values["node_prefix"],
                instance=values["instance_prefix"],
            )
        except errors.IpamError as error:
            pages.add_errors(form, error, _field_of_problem)
        else:
            messages.success(request, gettext("The node pool and the instance pool were created."))
            return HttpResponseRedirect(display.url_of(cluster))
    return pages.page(
        request,
        "cluster_form.html",
        title=gettext("Split a prefix of %(cluster)s") % {"cluster": cluster.name},
        opts=Cluster._meta,
        original=cluster,
        form=form,
        cluster=cluster,
    )


def _edit(request: HttpRequest, cluster_id: int) -> HttpResponse:
    pages.require(request, "pools.change_cluster")
    return cluster_form.edit(request, _cluster(str(cluster_id)))


def _field_of_problem(problem: errors.FieldProblem) -> str | None:
    if problem.code == "already_exists":
        return "name"
    if problem.code == "cidr_overlap" and not problem.field:
        return "cluster_prefix"
    return problem.field


def _cluster(object_id: str) -> Cluster:
    number = lists.parse_id(object_id)
    cluster = Cluster.objects.filter(pk=number).first()
    if cluster is None:
        raise Http404(gettext("This cluster does not exist."))
    return cluster
