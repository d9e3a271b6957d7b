"""Decisions of the webhooks, and the address delivery settings of each cluster."""

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from claims.admin import scoped
from claims.models import Decision, NetworkSettings
from claims.models.networks import Annotation
from claims.workloads import vm_lookup
from pools.core import addresses, holders
from pools.models import Cluster
from pools.platform.admin import (
    columns,
    display,
    filters,
    forms as fields,
    lists,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.webhooks import configuration

SETTINGS = "admin:claims_networksettings_changelist"


def _decision_page(request: HttpRequest, row: Decision) -> HttpResponse:
    return pages.page(
        request,
        "decision.html",
        row,
        title=f"{row.namespace}/{row.vm or row.name}: {row.code}",
        vm=f"{row.namespace}/{row.vm}" if row.vm else "",
        patch=json.dumps(row.patch, indent=2, ensure_ascii=False) if row.patch else "",
    )


@admin.register(Decision)
class DecisionAdmin(scoped.Scoped[Decision]):
    list_display = (
        Column(
            "vm",
            _("VM"),
            lambda row: display.row_link(row, f"{row.namespace}/{row.vm or row.name}"),
        ),
        columns.related("cluster", _("cluster")),
        columns.code("code", _("decision")),
        "message",
        Column("network", _("network"), lambda row: display.search_link(row.network)),
        columns.timestamp("at", _("when")),
    )
    list_filter = (
        scoped.cluster_filter(),
        scoped.namespace_filter(Decision),
        filters.by_value(
            _("webhook"), "path", {"mutate-pods": _("launcher pods"), "mutate-vms": _("VMs")}
        ),
        filters.by_condition(
            _("outcome"),
            "outcome",
            {
                "written": (_("addresses written"), Q(patch__isnull=False)),
                "nothing": (_("nothing written"), Q(patch=None)),
            },
        ),
    )
    search_help_text = _("VM, namespace, network, code or message")
    exported = (
        "id", "at", "cluster.name", "path", "operation", "namespace", "name", "vm", "network",
        "code", "message", "allowed", "milliseconds",
    )  # fmt: skip
    ordering = ("-id",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/decisions_intro.html"
    empty_text = _(
        "No webhook decisions. Each VM that starts in a cluster whose webhooks call Cadastre "
        "adds one."
    )
    row_pages = (Page("change", _decision_page),)


class SettingsForm(row_forms.RowForm):
    annotation = forms.ChoiceField(
        label=_("Delivery method"),
        choices=Annotation.choices,
        widget=fields.select(),
        help_text=_("In clusters with kubevirt/ipam-extensions choose the second method."),
    )
    default_nad_namespace = fields.ParsedField(
        lambda text: holders.parse_label(text.strip(addresses.BLANKS)),
        label=_("Namespace of the default network's NAD"),
        widget=related.name_widget(scoped.OFFERED_NAMESPACES),
        help_text=_(
            "ovn-kubernetes; in OpenShift openshift-ovn-kubernetes. OVN-Kubernetes"
            " rejects pods that name another namespace."
        ),
    )
    default_nad_name = fields.ParsedField(
        lambda text: holders.parse_name(text.strip(addresses.BLANKS)),
        label=_("Name of the default network's NAD"),
        widget=fields.text(),
    )


def _edit_view(request: HttpRequest, cluster_id: int) -> HttpResponse:
    pages.require(request, "claims.view_networksettings")
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        raise Http404(gettext("There is no such cluster."))
    row = vm_lookup.settings_of_cluster(cluster.pk)
    form = SettingsForm(request.POST or None)
    form.show_row(row, lambda row: {name: getattr(row, name) for name in form.fields})
    if request.method == "POST":
        pages.require(request, "claims.change_networksettings")
        if form.is_valid():
            with pages.errors_at_field(form):
                vm_lookup.change_settings(
                    cluster,
                    form.cleaned_data,
                    author=pages.author(request),
                    version=form.check_version,
                )
                return pages.done(
                    request,
                    gettext("The settings of %(cluster)s were changed.") % {"cluster": cluster},
                    SETTINGS,
                )
    return pages.page(
        request,
        "network_settings.html",
        NetworkSettings,
        title=gettext("Address delivery to VMs of %(cluster)s") % {"cluster": cluster},
        cluster=cluster,
        form=form,
        webhooks=[configuration.path(hook, cluster.name) for hook in configuration.HOOKS],
        call=f"clusters/{cluster.name}/network-settings/",
    )


def _settings_page(_request: HttpRequest, row: NetworkSettings) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:claims_networksettings_of", args=[row.cluster_id]))


@admin.register(NetworkSettings)
class NetworkSettingsAdmin(lists.ListAdmin[NetworkSettings]):
    """The settings of every cluster; a cluster without a row has the defaults."""

    list_pages = (Page("of", _edit_view, path="of/<int:cluster_id>"),)
    row_pages = (Page("change", _settings_page),)

    def changelist_view(self, request: HttpRequest, *_args: Any, **_more: Any) -> HttpResponse:
        pages.require(request, "claims.view_networksettings")
        clusters = Cluster.objects.select_related("network_settings").order_by("name")
        rows = Paginator(clusters, self.list_per_page).get_page(request.GET.get("page"))
        return pages.page(
            request,
            "network_settings_list.html",
            NetworkSettings,
            title=gettext("Address delivery to VMs"),
            rows=rows,
            settings_of_rows=[
                getattr(cluster, "network_settings", None) or NetworkSettings(cluster=cluster)
                for cluster in rows
            ],
        )
