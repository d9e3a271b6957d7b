"""Environments: list, page, forms to add and edit, deletion."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters.field import (
    cluster_field,
    cluster_filter,
    env_field,
    org_field,
    tenant_filters,
)
from pools.admin.pools import pools
from pools.models import Environment
from pools.models.blocks import LIVE
from pools.platform.admin import columns, display, filters, lists, pages, row_forms
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import environments

MOST = 50  # blocks on the page of an environment


class EnvironmentForm(forms.Form):
    cluster = cluster_field()
    org = org_field()
    env = env_field()
    description = fields.description_field()


class EnvironmentChangeForm(row_forms.RowForm):
    description = EnvironmentForm.base_fields["description"]


def _add(request: HttpRequest) -> HttpResponse:
    form = EnvironmentForm(request.POST or None, initial={"cluster": request.GET.get("cluster")})
    if request.method == "POST" and form.is_valid():
        values: dict[str, Any] = {n: value or "" for n, value in form.cleaned_data.items()}
        with pages.errors_at_field(form, "env"):
            environment = environments.declare(author=pages.author(request), **values)
            return pages.done(
                request,
                gettext("Environment %(environment)s was added.") % {"environment": environment},
                environment,
            )
    return pages.form_page(
        request,
        Environment,
        form,
        title=gettext("Add environment"),
        intro=gettext(
            "An environment appears with its first allocation. Add it here to describe it before."
        ),
    )


def _edit(request: HttpRequest, environment: Environment) -> HttpResponse:
    form = EnvironmentChangeForm(request.POST or None)
    form.show_row(environment, lambda row: {"description": row.description})
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form):
            environments.change(
                environment.pk,
                description=form.cleaned_data["description"] or "",
                author=pages.author(request),
                version=form.check_version,
            )
            return pages.done(
                request,
                gettext("Environment %(environment)s was changed.") % {"environment": environment},
                environment,
            )
    return pages.form_page(
        request,
        environment,
        form,
        title=gettext("Edit %(environment)s") % {"environment": environment},
    )


def _delete(request: HttpRequest, environment: Environment) -> HttpResponseBase:
    return pages.deletion(
        request,
        environment,
        lambda: environments.remove(environment.pk, author=pages.author(request)),
        title=gettext("Delete environment %(environment)s?") % {"environment": environment},
        effects=[
            gettext("Its history stays. It appears again with the next allocation that names it.")
        ],
        deleted=gettext("Environment %(environment)s was deleted.") % {"environment": environment},
    )


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
class EnvironmentAdmin(lists.ListAdmin[Environment]):
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
    list_pages = (Page("add", _add, "pools.add_environment"), pools.ENVIRONMENT_CHANGES.page())
    row_pages = (
        Page("change", _page),
        Page("edit", _edit, "pools.change_environment"),
        Page("delete", _delete, "pools.delete_environment"),
        lists.history(lambda row: {"q": row.env, "cluster": row.cluster_id}, "pools.view_event"),
    )
