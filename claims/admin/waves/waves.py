"""List, form and pages of migration waves: VMs that are migrated together, and their readiness."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, F, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.waves import page
from claims.models import Network, Wave
from claims.waves import waves
from pools.models import Cluster
from pools.platform.admin import (
    columns,
    display,
    forms as fields,
    objects,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.lists import Page
from pools.platform.events import Author


def _datetime_input() -> forms.Widget:
    attrs = {"class": "cad-input cad-input-short", "placeholder": "2026-12-05 22:00"}
    return forms.DateTimeInput(attrs=attrs, format="%Y-%m-%d %H:%M")  # no text: a format


def _zone_help() -> str:
    return gettext("In the time zone %(zone)s.") % {"zone": timezone.get_current_timezone_name()}


class WaveForm(row_forms.ObjectForm):
    cluster = related.RelatedField(scoped.OFFERED_CLUSTERS, Cluster.objects.order_by("name"))
    name = forms.CharField(max_length=63, widget=fields.text(placeholder="Saturday 1"))
    planned_at = forms.DateTimeField(
        label=_("Planned for"),
        required=False,
        widget=_datetime_input(),
        help_text=lazy(_zone_help, str)(),
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())

    class Meta:
        model = Wave
        fields = ("cluster", "name", "planned_at", "note")


@admin.register(Wave)
class WaveAdmin(scoped.Scoped[Wave], objects.ObjectAdmin[Wave]):
    """Only for users who see all namespaces: a wave lists VMs of several."""

    form = WaveForm
    default_field = "name"
    fixed_fields = ("cluster",)
    form_template = "wave_form.html"
    add_title = _("Add a wave")
    more_permissions = (namespaces.EVERY_NAMESPACE,)
    list_display = (
        columns.link("name", _("wave"), ordering="name"),
        columns.timestamp("planned_at", _("planned"), ordering="planned_at"),
        columns.number("counted", _("VMs"), ordering="counted"),
        columns.related("cluster", _("cluster"), ordering="cluster__name"),
        columns.text("note", _("note")),
    )
    list_per_page = 50
    list_filter = (scoped.cluster_filter(),)
    exported = ("id", "cluster.name", "name", "planned_at", "counted", "note", "created_at")
    search_help_text = _("Name or note")
    ordering = (F("planned_at").desc(nulls_last=True), "-pk")
    list_select_related = ("cluster",)
    list_before_template = "cadastre/waves_intro.html"
    row_pages = (Page("change", page.view, "claims.view_wave", namespaces.EVERY_NAMESPACE),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Wave]:
        return super().get_queryset(request).annotate(counted=Count("vms"))

    def has_view_permission(self, request: HttpRequest, obj: Wave | None = None) -> bool:
        every = request.user.has_perm(namespaces.EVERY_NAMESPACE)
        return every and super().has_view_permission(request, obj)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, Wave).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
        }

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        clusters = scoped.rows(request, Cluster)[:2]
        only_cluster = {"cluster": clusters[0].pk} if len(clusters) == 1 else {}
        return {**only_cluster, **super().get_changeform_initial_data(request)}

    def form_context(self, request: HttpRequest, row: Wave | None) -> dict[str, Any]:
        return {"clusters_exist": row is not None or scoped.rows(request, Cluster).exists()}

    def save_row(self, row: Wave | None, form: Any, author: Author) -> Wave:
        if row is None:
            return waves.create(**form.cleaned_data, author=author)
        return waves.change(row.pk, form.cleaned_data, author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: Wave) -> None:
        waves.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: Wave) -> list[str]:
        count = row.vms.count()
        text = ngettext(
            "The list of %(number)s VM is deleted. Entries, claims and addresses of the VM are kept.",
            "The list of %(number)s VMs is deleted. Entries, claims and addresses of the VMs are kept.",
            count,
        )
        return [text % {"number": display.digits(count)}]
