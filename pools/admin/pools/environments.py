"""Environments: list and page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.pools import pools
from pools.models import AllocationRequest, Block, Environment
from pools.models.blocks import LIVE
from pools.platform.admin import display, lists, pages

MOST = 50  # blocks on the page of an environment


class EnvironmentStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("degraded", gettext("degraded")), ("ok", gettext("ok"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Environment]) -> QuerySet[Environment]:
        if self.value() in {"degraded", "ok"}:
            return rows.filter(degraded_since__isnull=self.value() == "ok")
        return rows


class EnvironmentClusterFilter(pools.PoolClusterFilter):
    """The filter of pools."""


@admin.register(Environment)
class EnvironmentAdmin(lists.ReadOnlyAdmin[Environment]):
    list_display = (
        "shown_env",
        "org",
        "shown_cluster",
        "shown_state",
        "shown_since",
        "shown_reason",
        "shown_blocks",
    )
    list_display_links = None
    list_filter = (EnvironmentStateFilter, EnvironmentClusterFilter)
    exported = ("cluster.name", "org", "env", "degraded_since", "reason", "message")
    search_fields = ("env", "org")
    search_help_text = _("Environment or organization")
    ordering = (F("degraded_since").desc(nulls_last=True), "org", "env", "id")
    sortable_by = ("org",)
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/environments_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Environment]:
        return super().get_queryset(request).select_related("cluster")

    @admin.display(description=_("environment"))
    def shown_env(self, environment: Environment) -> SafeString:
        return display.row_link(environment, environment.env)

    @admin.display(description=_("cluster"))
    def shown_cluster(self, environment: Environment) -> SafeString:
        return display.row_link(environment.cluster)

    @admin.display(description=_("state"))
    def shown_state(self, environment: Environment) -> SafeString:
        return display.state("degraded" if environment.degraded_since else "ok")

    @admin.display(description=_("since"))
    def shown_since(self, environment: Environment) -> SafeString:
        return display.timestamp(environment.degraded_since)

    @admin.display(description=_("reason"))
    def shown_reason(self, environment: Environment) -> SafeString:
        if not environment.reason:
            return display.DASH
        return format_html('<span title="{}">{}</span>', environment.reason, environment.message)

    @admin.display(description=_("blocks"))
    def shown_blocks(self, environment: Environment) -> SafeString:
        url = reverse("admin:pools_block_changelist", query={"q": environment.env})
        return display.link(url, gettext("blocks"))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_environment")
        rows = Environment.objects.select_related("cluster")
        environment = rows.filter(pk=lists.parse_id(object_id)).first()
        if environment is None:
            raise Http404(gettext("This environment does not exist."))
        return _page(request, environment)

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_event")
        environment = Environment.objects.filter(pk=lists.parse_id(object_id)).first()
        query = {
            "q": environment.env if environment else "",
            "cluster": environment.cluster_id if environment else "",
        }
        return HttpResponseRedirect(reverse("admin:pools_event_changelist", query=query))


def _page(request: HttpRequest, environment: Environment) -> HttpResponse:
    held = Block.objects.filter(
        env=environment.env,
        org=environment.org,
        pool__cluster=environment.cluster_id,
        state__in=LIVE,
    )
    waiting = AllocationRequest.objects.filter(
        env=environment.env,
        org=environment.org,
        pool__cluster=environment.cluster_id,
        state="pending",
    )
    parameters = {
        "cluster": environment.cluster.name,
        "org": environment.org,
        "env": environment.env,
    }
    return pages.page(
        request,
        "environment.html",
        title=str(environment),
        opts=Environment._meta,
        original=environment,
        row=environment,
        waiting=waiting.select_related("pool__cluster"),
        blocks=held.select_related("pool__cluster").order_by("space_id", "cidr")[:MOST],
        most=MOST,
        call=f"environments/?{urlencode(parameters)}",
    )
