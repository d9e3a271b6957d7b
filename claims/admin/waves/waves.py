"""List and pages of migration waves: VMs that are migrated together, and their readiness."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.waves import form, page
from claims.models import Network, Wave
from claims.waves import waves
from pools.models import Cluster
from pools.platform.admin import columns, pages
from pools.platform.admin.lists import Page


def _add(request: HttpRequest) -> HttpResponse:
    return form.add(request, scoped.rows(request, Cluster).order_by("name"))


def _page(request: HttpRequest, wave: Wave) -> HttpResponse:
    if "edit" in request.GET:
        pages.require(request, "claims.change_wave")
        return form.edit(request, wave)
    return page.view(request, wave)


def _delete(request: HttpRequest, wave: Wave) -> HttpResponseBase:
    return pages.deletion(
        request,
        wave,
        lambda: waves.delete(wave.pk, author=pages.author(request)),
        title=gettext("Delete the wave %(wave)s?") % {"wave": wave.name},
        deleted=gettext("The wave %(wave)s was deleted; its VMs are unchanged.")
        % {"wave": wave.name},
        template="wave_delete.html",
    )


@admin.register(Wave)
class WaveAdmin(scoped.Scoped[Wave]):
    """Only for users who see all namespaces: a wave lists VMs of several."""

    list_display = (
        columns.link("name", _("wave"), ordering="name"),
        columns.timestamp("planned_at", _("planned"), ordering="planned_at"),
        columns.number("counted", _("VMs")),
        columns.related("cluster", _("cluster")),
        columns.text("note", _("note")),
    )
    list_per_page = 50
    list_filter = (scoped.cluster_filter(),)
    exported = ("id", "cluster.name", "name", "planned_at", "counted", "note", "created_at")
    search_fields = ("name", "note")
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
