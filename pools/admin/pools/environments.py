"""Environments, and the allocation requests that wait for blocks: lists, pages, forms to add and edit, deletion."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters.field import (
    cluster_field,
    cluster_filter,
    env_field,
    org_field,
    tenant_filters,
)
from pools.admin.pools import blocks as block_list, pools
from pools.core import errors
from pools.models import LIVE, AllocationRequest, Block, Environment, RequestState
from pools.platform.admin import (
    columns,
    display,
    filters,
    forms as fields,
    lists,
    objects,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.events import Author
from pools.register import environments
from pools.register.allocator import requests

MOST = 50  # blocks on the page of an environment


class EnvironmentForm(row_forms.ObjectForm):
    cluster = cluster_field()
    org = org_field()
    env = env_field()
    description = fields.description_field()

    class Meta:
        model = Environment
        fields = ("cluster", "org", "env", "description")


def _page(request: HttpRequest, environment: Environment) -> HttpResponse:
    held = environments.blocks(environment).filter(state__in=LIVE)
    waiting = environments.pending_requests(environment)
    parameters = {
        "cluster": environment.cluster.name,
        "org": environment.org,
        "env": environment.env,
    }
    return pages.page(
        request,
        "environment.html",
        environment,
        title=str(environment),
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
class EnvironmentAdmin(objects.ObjectAdmin[Environment]):
    form = EnvironmentForm
    fixed_fields = ("cluster", "org", "env")
    intro = _(
        "An environment appears with its first allocation. Add it here to describe it before."
    )
    list_display = (
        columns.link("env", _("environment"), ordering="env"),
        "org",
        "description",
        columns.related("cluster", _("cluster"), ordering="cluster__name"),
        Column(
            "state",
            _("state"),
            lambda row: display.state("degraded" if row.degraded_since else "ok"),
        ),
        columns.timestamp("degraded_since", _("since"), ordering="degraded_since"),
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
        cluster_filter(),
        *tenant_filters("org"),
    )
    exported = ("cluster.name", "org", "env", "degraded_since", "reason", "message", "description")
    search_help_text = _("Environment or organization")
    ordering = (F("degraded_since").desc(nulls_last=True), "org", "env", "id")
    sortable_by = ("org",)
    list_select_related = ("cluster",)

    list_before_template = "cadastre/environments_intro.html"
    actions = (pools.ENVIRONMENT_CHANGES.action(),)
    list_pages = (pools.ENVIRONMENT_CHANGES.page(),)
    row_pages = (
        Page("change", _page),
        lists.history(lambda row: {"q": row.env, "cluster": row.cluster_id}, "pools.view_event"),
    )

    def field_of_problem(self, _problem: errors.FieldProblem) -> str:
        return "env"

    def save_row(self, row: Environment | None, form: Any, author: Author) -> Environment:
        values: dict[str, Any] = {name: value or "" for name, value in form.cleaned_data.items()}
        if row is None:
            return environments.declare(author=author, **values)
        version = form.check_version
        return environments.change(row.pk, author=author, version=version, **values)

    def delete_model(self, request: HttpRequest, obj: Environment) -> None:
        environments.remove(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: Environment) -> list[str]:
        text = gettext(
            "Its history stays. It appears again with the next allocation that names it."
        )
        return [text]


# --- allocation requests --------------------------------------------------------------------------


def _next_try(row: AllocationRequest) -> SafeString:
    return display.next_time(row.next_try_at if row.state == RequestState.PENDING else None)


def _request_page(request: HttpRequest, row: AllocationRequest) -> HttpResponse:
    demand = requests.demand_from_json(row.demand)
    blocks = Block.objects.filter(pk__in=row.block_ids, state__in=LIVE)
    pending = row.state == RequestState.PENDING
    return pages.page(
        request,
        "request.html",
        row,
        title=str(row),
        pending=pending,
        end_cooldown=block_list.end_cooldown_url(request, row.pool) if pending else "",
        count=max(demand.count, len(demand.holders)),
        exact=demand.cidr,
        blocks=blocks.select_related("pool__cluster"),
        call=f"requests/{row.pk}/",
    )


@admin.register(AllocationRequest)
class RequestAdmin(lists.ListAdmin[AllocationRequest]):
    row_name, row_names = _("request"), _("requests")
    list_display = (
        Column(
            "holder",
            _("holder"),
            lambda row: display.row_link(row, f"{row.holder_kind} {row.holder_id}"),
        ),
        columns.state("state", _("state"), ordering="state"),
        columns.related("pool", _("pool"), ordering="pool__name"),
        "org",
        "env",
        columns.timestamp("created_at", _("waiting since"), ordering="created_at"),
        Column("next_try_at", _("next attempt"), _next_try),
        "last_error",
    )
    list_filter = (
        filters.by_value(_("state"), "state", RequestState),
        cluster_filter("pool__cluster_id"),
        related.by_key(_("pool"), "pool", block_list.POOLS, "pool_id"),
        *tenant_filters(),
    )
    sortable_by = ("org", "env")
    exported = (
        "id", "pool.cluster.name", "pool.name", "holder_kind", "holder_id", "org", "env", "state",
        "attempts", "created_at", "next_try_at", "ended_at", "last_error",
    )  # fmt: skip
    search_help_text = _("Holder, environment or organization")
    ordering = ("-id",)
    list_select_related = ("pool__cluster",)
    actions = ("cancel",)
    list_before_template = "cadastre/requests_intro.html"
    empty_text = _("No pending requests.")
    row_pages = (Page("change", _request_page),)

    def has_allocate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.allocate")

    @admin.action(description=_("Cancel"), permissions=["allocate"])
    def cancel(
        self, request: HttpRequest, rows: QuerySet[AllocationRequest]
    ) -> HttpResponse | None:
        pending = list(rows.filter(state=RequestState.PENDING))
        if pending and not pages.is_confirmed(request):
            number = {"number": len(pending)}
            text = ngettext(
                "Cancel %(number)s request?", "Cancel %(number)s requests?", len(pending)
            )
            effect = gettext("%(request)s gets no block when one becomes free.")
            return pages.confirmation(
                request,
                AllocationRequest,
                title=text % number,
                effects=[effect % {"request": row} for row in pending],
                button=gettext("Cancel the request"),
                back=display.url_of(pending[0]) if len(pending) == 1 else request.get_full_path(),
            )
        for row in pending:
            with pages.errors_as_messages(request):
                requests.cancel(row.pk, author=pages.author(request))
        messages.success(
            request,
            ngettext(
                "%(number)s pending request was cancelled.",
                "%(number)s pending requests were cancelled.",
                len(pending),
            )
            % {"number": len(pending)},
        )
        return None
