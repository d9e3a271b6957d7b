"""List, form and pages of migration waves: VMs that are migrated together, and their readiness."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.waves import page
from claims.models import Network, Wave
from claims.waves import waves
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import columns, display, pages, related, row_forms
from pools.platform.admin import forms as fields
from pools.platform.admin.lists import Page


def _datetime_input() -> forms.Widget:
    attrs = {"class": "cad-input cad-input-short", "placeholder": "2026-12-05 22:00"}
    return forms.DateTimeInput(attrs=attrs, format="%Y-%m-%d %H:%M")  # no text: a format


def _zone_help() -> str:
    return gettext("In the time zone %(zone)s.") % {"zone": timezone.get_current_timezone_name()}


class WaveForm(row_forms.RowForm):
    """The cluster of an existing wave cannot be changed."""

    cluster = related.RelatedField(scoped.OFFERED_CLUSTERS, Cluster.objects.none())
    name = forms.CharField(max_length=63, widget=fields.text(placeholder="Saturday 1"))
    planned_at = forms.DateTimeField(
        label=_("Planned for"),
        required=False,
        widget=_datetime_input(),
        help_text=lazy(_zone_help, str)(),
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())


def add(request: HttpRequest, clusters: QuerySet[Cluster]) -> HttpResponse:
    """Show the form of a new wave and create it without VMs; its page adds them."""
    only_cluster_id = clusters[0].pk if len(clusters[:2]) == 1 else None
    form = WaveForm(
        request.POST or None, initial={"cluster": only_cluster_id, **request.GET.dict()}
    )
    form.fields["cluster"].queryset = clusters  # type: ignore[attr-defined]
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, _field_of_problem):
            wave = waves.create(**form.cleaned_data, author=pages.author(request))
            message = gettext("The wave %(wave)s was created. Add its VMs.") % {"wave": wave.name}
            return pages.done(request, message, wave)
    return pages.form_page(
        request,
        Wave,
        form,
        title=gettext("Add a wave"),
        template="wave_form.html",
        button=gettext("Save"),
        clusters_exist=clusters.exists(),
    )


def edit(request: HttpRequest, wave: Wave) -> HttpResponse:
    form = WaveForm(request.POST or None)
    del form.fields["cluster"]
    form.show_row(wave, lambda row: {name: getattr(row, name) for name in form.fields})
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, _field_of_problem):
            waves.change(
                wave.pk,
                form.cleaned_data,
                author=pages.author(request),
                version=form.check_version,
            )
            return pages.done(request, gettext("The wave was changed."), wave)
    return pages.form_page(
        request, wave, form, title=gettext("Edit %(wave)s") % {"wave": wave.name}
    )


def _field_of_problem(problem: errors.FieldProblem) -> str:
    return problem.field or "name"


def _add(request: HttpRequest) -> HttpResponse:
    return add(request, scoped.rows(request, Cluster).order_by("name"))


def _page(request: HttpRequest, wave: Wave) -> HttpResponse:
    if "edit" in request.GET:
        pages.require(request, "claims.change_wave")
        return edit(request, wave)
    return page.view(request, wave)


def _delete(request: HttpRequest, wave: Wave) -> HttpResponseBase:
    count = wave.vms.count()
    text = ngettext(
        "The list of %(number)s VM is deleted. Entries, claims and addresses of the VM are kept.",
        "The list of %(number)s VMs is deleted. Entries, claims and addresses of the VMs are kept.",
        count,
    )
    return pages.deletion(
        request,
        wave,
        lambda: waves.delete(wave.pk, author=pages.author(request)),
        title=gettext("Delete the wave %(wave)s?") % {"wave": wave.name},
        deleted=gettext("The wave %(wave)s was deleted; its VMs are unchanged.")
        % {"wave": wave.name},
        effects=[text % {"number": display.digits(count)}],
    )


@admin.register(Wave)
class WaveAdmin(scoped.Scoped[Wave]):
    """Only for users who see all namespaces: a wave lists VMs of several."""

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
    list_pages = (Page("add", _add, "claims.add_wave", namespaces.EVERY_NAMESPACE),)
    row_pages = (
        Page("change", _page, "claims.view_wave", namespaces.EVERY_NAMESPACE),
        Page("delete", _delete, "claims.delete_wave", namespaces.EVERY_NAMESPACE),
    )

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
