"""Decisions of the webhooks, and the address delivery settings of each cluster."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.models import Decision, NetworkSettings
from claims.models.settings import Annotation
from claims.networks import settings
from pools.core import addresses
from pools.models import Cluster
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.webhooks import configuration

SETTINGS = "admin:claims_networksettings_changelist"


class DecisionClusterFilter(scoped.ScopedClusterFilter):
    pass


class PathFilter(lists.ChoiceFilter):
    title = _("webhook")
    parameter_name = "path"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("mutate-pods", gettext("launcher pods")), ("mutate-vms", gettext("VMs"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Decision]) -> QuerySet[Decision]:
        return rows.filter(path=self.value()) if self.value() else rows


class DecisionOutcomeFilter(lists.ChoiceFilter):
    title = _("outcome")
    parameter_name = "outcome"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [
            ("written", gettext("addresses written")),
            ("nothing", gettext("nothing written")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Decision]) -> QuerySet[Decision]:
        if self.value() == "written":
            return rows.exclude(patch=None)
        return rows.filter(patch=None) if self.value() == "nothing" else rows


@admin.register(Decision)
class DecisionAdmin(scoped.Scoped[Decision]):
    list_display = (
        "shown_vm",
        "shown_cluster",
        "shown_code",
        "message",
        "shown_network",
        "shown_at",
    )
    list_display_links = None
    list_filter = (DecisionClusterFilter, PathFilter, DecisionOutcomeFilter)
    search_fields = ("=vm", "=namespace", "=code", "=network", "=name")
    search_help_text = _("Full name of a VM, namespace or network, or a full code")
    exported = (
        "id",
        "at",
        "cluster.name",
        "path",
        "operation",
        "namespace",
        "name",
        "vm",
        "network",
        "code",
        "message",
        "allowed",
        "milliseconds",
    )
    ordering = ("-id",)
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/decisions_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        return super().get_queryset(request).select_related("cluster")

    @admin.display(description=_("VM"))
    def shown_vm(self, row: Decision) -> SafeString:
        return display.row_link(row, f"{row.namespace}/{row.vm or row.name}")

    @admin.display(description=_("cluster"))
    def shown_cluster(self, row: Decision) -> SafeString:
        return display.row_link(row.cluster)

    @admin.display(description=_("decision"))
    def shown_code(self, row: Decision) -> SafeString:
        return format_html('<code class="cad-mono cad-nowrap">{}</code>', row.code)

    @admin.display(description=_("network"))
    def shown_network(self, row: Decision) -> SafeString:
        return display.search_link(row.network)

    @admin.display(description=_("when"))
    def shown_at(self, row: Decision) -> SafeString:
        return display.timestamp(row.at)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_decision")
        row = self.row_or_404(request, object_id)
        return pages.page(
            request,
            "decision.html",
            title=f"{row.namespace}/{row.vm or row.name}: {row.code}",
            opts=Decision._meta,
            original=row,
            decision=row,
            vm=f"{row.namespace}/{row.vm}" if row.vm else "",
            patch=json.dumps(row.patch, indent=2, ensure_ascii=False) if row.patch else "",
        )


class SettingsForm(forms.Form):
    annotation = forms.ChoiceField(
        label=_("Delivery method"),
        choices=Annotation.choices,
        widget=fields.select(),
        help_text=_("In clusters with kubevirt/ipam-extensions choose the second method."),
    )
    default_nad_namespace = fields.ParsedField(
        lambda text: settings.parse_namespace(text.strip(addresses.BLANKS)),
        label=_("Namespace of the default network's NAD"),
        widget=fields.text(),
        help_text=_(
            "ovn-kubernetes; in OpenShift openshift-ovn-kubernetes. OVN-Kubernetes"
            " rejects pods that name another namespace."
        ),
    )
    default_nad_name = fields.ParsedField(
        lambda text: settings.parse_name(text.strip(addresses.BLANKS)),
        label=_("Name of the default network's NAD"),
        widget=fields.text(),
    )


@admin.register(NetworkSettings)
class NetworkSettingsAdmin(lists.ReadOnlyAdmin[NetworkSettings]):
    """The settings of every cluster; a cluster without a row has the defaults."""

    def get_urls(self) -> list[URLPattern]:
        edit = path(
            "of/<int:cluster_id>/", pages.in_admin(_edit_view), name="claims_networksettings_of"
        )
        return [edit, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, *_args: Any, **_more: Any) -> HttpResponse:
        pages.require(request, "claims.view_networksettings")
        settings_by_cluster = {row.cluster_id: row for row in NetworkSettings.objects.all()}
        clusters = Cluster.objects.order_by("name")
        return pages.page(
            request,
            "network_settings_list.html",
            title=gettext("Address delivery to VMs"),
            opts=NetworkSettings._meta,
            rows=[
                settings_by_cluster.get(cluster.pk) or NetworkSettings(cluster=cluster)
                for cluster in clusters
            ],
        )

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_networksettings")
        row = NetworkSettings.objects.filter(pk=lists.parse_id(object_id)).first()
        if row is None:
            raise Http404(gettext("There is no such object."))
        return HttpResponseRedirect(
            reverse("admin:claims_networksettings_of", args=[row.cluster_id])
        )


def _edit_view(request: HttpRequest, cluster_id: int) -> HttpResponse:
    pages.require(request, "claims.view_networksettings")
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        raise Http404(gettext("There is no such cluster."))
    row = settings.for_cluster(cluster)
    names = tuple(SettingsForm.base_fields)
    form = SettingsForm(request.POST or None, initial={name: getattr(row, name) for name in names})
    if request.method == "POST":
        pages.require(request, "claims.change_networksettings")
        if form.is_valid():
            settings.change(cluster, form.cleaned_data, author=pages.author(request))
            messages.success(
                request,
                (gettext("The settings of %(cluster)s were changed.") % {"cluster": cluster}),
            )
            return HttpResponseRedirect(reverse(SETTINGS))
    return pages.page(
        request,
        "network_settings.html",
        title=(gettext("Address delivery to VMs of %(cluster)s") % {"cluster": cluster}),
        opts=NetworkSettings._meta,
        cluster=cluster,
        form=form,
        webhooks=[configuration.path(hook, cluster.name) for hook in configuration.HOOKS],
        call=f"clusters/{cluster.name}/network-settings/",
    )
