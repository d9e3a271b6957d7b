"""List and pages of migration waves: VMs that are migrated together, and their readiness."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.waves import form, page
from claims.models import Network, Wave
from claims.waves import waves
from pools.models import Cluster
from pools.platform.admin import display, pages

LIST = "admin:claims_wave_changelist"


@admin.register(Wave)
class WaveAdmin(scoped.Scoped[Wave]):
    """Only for users who see all namespaces: a wave lists VMs of several."""

    list_display = ("shown_name", "shown_planned", "shown_vms", "shown_cluster", "shown_note")
    list_display_links = None
    list_per_page = 50
    list_filter = (scoped.ScopedClusterFilter,)
    exported = ("id", "cluster.name", "name", "planned_at", "counted", "note", "created_at")
    search_fields = ("name", "note")
    search_help_text = _("Name or note")
    ordering = (F("planned_at").desc(nulls_last=True), "-pk")
    sortable_by = ("shown_name", "shown_planned")
    list_before_template = "cadastre/waves_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Wave]:
        rows = super().get_queryset(request).select_related("cluster")
        return rows.annotate(counted=Count("vms"))

    @admin.display(description=_("wave"), ordering="name")
    def shown_name(self, wave: Wave) -> SafeString:
        return display.row_link(wave, wave.name)

    @admin.display(description=_("planned"), ordering="planned_at")
    def shown_planned(self, wave: Wave) -> SafeString:
        return display.timestamp(wave.planned_at)

    @admin.display(description=_("VMs"))
    def shown_vms(self, wave: Any) -> SafeString:
        return display.number(wave.counted)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, wave: Wave) -> SafeString:
        return display.row_link(wave.cluster)

    @admin.display(description=_("note"))
    def shown_note(self, wave: Wave) -> SafeString | str:
        return wave.note or display.DASH

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not scoped.rows(request, Wave).exists(),
            "networks_exist": scoped.rows(request, Network).exists(),
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_view_permission(self, request: HttpRequest, obj: Wave | None = None) -> bool:
        every = request.user.has_perm(namespaces.EVERY_NAMESPACE)
        return every and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(["claims.add_wave", namespaces.EVERY_NAMESPACE])

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        pages.require(request, "claims.add_wave", namespaces.EVERY_NAMESPACE)
        clusters = scoped.rows(request, Cluster).order_by("name")
        return form.add(request, clusters)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_wave", namespaces.EVERY_NAMESPACE)
        wave = self.row_or_404(request, object_id)
        if "edit" in request.GET:
            pages.require(request, "claims.change_wave")
            return form.edit(request, wave)
        return page.view(request, wave)

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.delete_wave", namespaces.EVERY_NAMESPACE)
        wave = self.row_or_404(request, object_id)
        if request.method == "POST":
            waves.delete(wave.pk, author=pages.author(request))
            messages.success(
                request,
                gettext("The wave %(wave)s was deleted; its VMs are unchanged.")
                % {"wave": wave.name},
            )
            return HttpResponseRedirect(reverse(LIST))
        return pages.page(
            request,
            "wave_delete.html",
            title=gettext("Delete the wave %(wave)s?") % {"wave": wave.name},
            opts=Wave._meta,
            original=wave,
            wave=wave,
        )
