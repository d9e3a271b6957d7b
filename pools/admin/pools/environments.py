"""Environments: list and page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters.field import cluster_choices
from pools.models import AllocationRequest, Block, Environment
from pools.models.blocks import LIVE
from pools.platform.admin import columns, display, filters, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

MOST = 50  # blocks on the page of an environment


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


def _reason(environment: Environment) -> SafeString:
    if not environment.reason:
        return display.DASH
    return format_html('<span title="{}">{}</span>', environment.reason, environment.message)


def _blocks(environment: Environment) -> SafeString:
    url = reverse("admin:pools_block_changelist", query={"q": environment.env})
    return display.link(url, gettext("blocks"))


@admin.register(Environment)
class EnvironmentAdmin(lists.ListAdmin[Environment]):
    list_display = (
        columns.link("env", _("environment")),
        "org",
        columns.related("cluster", _("cluster")),
        Column(
            "state",
            _("state"),
            lambda row: display.state("degraded" if row.degraded_since else "ok"),
        ),
        columns.timestamp("degraded_since", _("since")),
        Column("reason", _("reason"), _reason),
        Column("blocks", _("blocks"), _blocks),
    )
    list_filter = (
        filters.by_condition(
            _("state"),
            "state",
            {
                "degraded": (_("degraded"), Q(degraded_since__isnull=False)),
                "ok": (_("ok"), Q(degraded_since=None)),
            },
        ),
        filters.by_id(_("cluster"), "cluster", cluster_choices, "cluster_id"),
    )
    exported = ("cluster.name", "org", "env", "degraded_since", "reason", "message")
    search_fields = ("env", "org")
    search_help_text = _("Environment or organization")
    ordering = (F("degraded_since").desc(nulls_last=True), "org", "env", "id")
    sortable_by = ("org",)
    list_select_related = ("cluster",)
    list_before_template = "cadastre/environments_intro.html"
    row_pages = (
        Page("change", _page),
        lists.history(lambda row: {"q": row.env, "cluster": row.cluster_id}, "pools.view_event"),
    )
