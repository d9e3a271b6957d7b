from __future__ import annotations

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pools.admin import lists, pools, show
from pools.models import Environment


class StateFilter(lists.Choice):
    title = "state"
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("degraded", "degraded"), ("ok", "ok")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Environment]) -> QuerySet[Environment]:
        if self.value() in {"degraded", "ok"}:
            return rows.filter(degraded_since__isnull=self.value() == "ok")
        return rows


class ClusterFilter(pools.ClusterFilter):
    """The same as of pools."""


@admin.register(Environment)
class EnvironmentAdmin(lists.Listed[Environment]):
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
    list_filter = (StateFilter, ClusterFilter)
    exported = ("cluster.name", "org", "env", "degraded_since", "reason", "message")
    search_fields = ("env", "org")
    search_help_text = "Environment or organisation"
    ordering = (F("degraded_since").desc(nulls_last=True), "org", "env", "id")
    sortable_by = ("org",)
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/environments_intro.html"
    readonly_fields = ("cluster", "org", "env", "degraded_since", "reason", "message")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Environment]:
        return super().get_queryset(request).select_related("cluster")

    @admin.display(description="environment")
    def shown_env(self, environment: Environment) -> SafeString:
        return show.to(environment, environment.env)

    @admin.display(description="cluster")
    def shown_cluster(self, environment: Environment) -> SafeString:
        return show.to(environment.cluster)

    @admin.display(description="state")
    def shown_state(self, environment: Environment) -> SafeString:
        return show.state("degraded" if environment.degraded_since else "ok")

    @admin.display(description="since")
    def shown_since(self, environment: Environment) -> SafeString:
        return show.when(environment.degraded_since)

    @admin.display(description="why")
    def shown_reason(self, environment: Environment) -> SafeString:
        if not environment.reason:
            return show.DASH
        return format_html('<span title="{}">{}</span>', environment.reason, environment.message)

    @admin.display(description="blocks")
    def shown_blocks(self, environment: Environment) -> SafeString:
        url = reverse("admin:pools_block_changelist", query={"q": environment.env})
        return show.link(url, "blocks")
