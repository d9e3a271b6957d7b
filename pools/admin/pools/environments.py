"""Environments: list, page, forms to add and edit, deletion."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.pools import bulk, pools
from pools.core import errors
from pools.models import Environment
from pools.models.blocks import LIVE
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.register import environments

LIST = "admin:pools_environment_changelist"
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
        "description",
        "shown_cluster",
        "shown_state",
        "shown_since",
        "shown_reason",
        "shown_blocks",
    )
    list_display_links = None
    list_filter = (EnvironmentStateFilter, EnvironmentClusterFilter)
    exported = ("cluster.name", "org", "env", "degraded_since", "reason", "message", "description")
    search_fields = ("env", "org", "description")
    search_help_text = _("Environment or organization")
    ordering = (F("degraded_since").desc(nulls_last=True), "org", "env", "id")
    sortable_by = ("org",)
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/environments_intro.html"
    actions = (bulk.ENVIRONMENTS.action(),)

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

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.add_environment")

    def has_delete_permission(self, request: HttpRequest, obj: Environment | None = None) -> bool:
        return request.user.has_perm("pools.delete_environment")

    def get_urls(self) -> list[URLPattern]:
        edit = path(
            "<int:environment_id>/edit/", pages.in_admin(_edit), name="pools_environment_edit"
        )
        return [bulk.ENVIRONMENTS.url(), edit, *super().get_urls()]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        return _add(request)

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.delete_environment")
        return _delete(request, _environment(lists.parse_id(object_id)))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_environment")
        return _page(request, _environment(lists.parse_id(object_id)))

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


def _environment(environment_id: int) -> Environment:
    try:
        return environments.get_environment(environment_id)
    except errors.NotFound as error:
        raise Http404(gettext("This environment does not exist.")) from error


class EnvironmentForm(forms.Form):
    cluster = cluster_fields.cluster_field()
    org = fields.identifier_field(label=_("Organization"), required=False)
    env = fields.identifier_field(label=_("Environment"))
    description = fields.reason_field(label=_("Description"), required=False, help_text="")


class EnvironmentChangeForm(forms.Form):
    description = EnvironmentForm.base_fields["description"]


def _add(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.add_environment")
    form = EnvironmentForm(request.POST or None, initial={"cluster": request.GET.get("cluster")})
    if request.method == "POST" and form.is_valid():
        values: dict[str, Any] = {n: value or "" for n, value in form.cleaned_data.items()}
        try:
            environment = environments.declare(author=pages.author(request), **values)
        except errors.IpamError as error:
            pages.add_errors(form, error, lambda _problem: "env")
        else:
            messages.success(
                request,
                gettext("Environment %(environment)s was added.") % {"environment": environment},
            )
            return HttpResponseRedirect(display.url_of(environment))
    return pages.page(
        request,
        "edit_form.html",
        title=gettext("Add environment"),
        intro=gettext(
            "An environment appears with its first allocation. Add it here to describe it before."
        ),
        opts=Environment._meta,
        form=form,
        button=gettext("Add"),
        back=reverse(LIST),
    )


def _edit(request: HttpRequest, environment_id: int) -> HttpResponse:
    pages.require(request, "pools.change_environment")
    environment = _environment(environment_id)
    form = EnvironmentChangeForm(
        request.POST or None, initial={"description": environment.description}
    )
    if request.method == "POST" and form.is_valid():
        environments.change(
            environment.pk,
            description=form.cleaned_data["description"] or "",
            author=pages.author(request),
        )
        messages.success(
            request,
            gettext("Environment %(environment)s was changed.") % {"environment": environment},
        )
        return HttpResponseRedirect(display.url_of(environment))
    return pages.page(
        request,
        "edit_form.html",
        title=gettext("Edit %(environment)s") % {"environment": environment},
        opts=Environment._meta,
        original=environment,
        form=form,
        button=gettext("Save"),
        back=display.url_of(environment),
    )


def _delete(request: HttpRequest, environment: Environment) -> HttpResponse:
    if request.method == "POST":
        with pages.errors_as_messages(request):
            environments.remove(environment.pk, author=pages.author(request))
            messages.success(
                request,
                gettext("Environment %(environment)s was deleted.") % {"environment": environment},
            )
            return HttpResponseRedirect(reverse(LIST))
        return HttpResponseRedirect(display.url_of(environment))
    return pages.page(
        request,
        "delete.html",
        title=gettext("Delete environment %(environment)s?") % {"environment": environment},
        opts=Environment._meta,
        original=environment,
        effect=gettext(
            "Its history stays. It appears again with the next allocation that names it."
        ),
        back=display.url_of(environment),
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
        title=str(environment),
        opts=Environment._meta,
        original=environment,
        row=environment,
        waiting=waiting.select_related("pool__cluster"),
        blocks=held.select_related("pool__cluster").order_by("space_id", "cidr")[:MOST],
        most=MOST,
        call=f"environments/?{urlencode(parameters)}",
    )
