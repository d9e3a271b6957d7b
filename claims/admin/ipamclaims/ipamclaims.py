"""List and pages of claims: their addresses, and why a VM did not get one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped, tables
from claims.admin.ipamclaims import form, page
from claims.admin.ipamclaims import problems as ipamclaim_problems
from claims.ipamclaims import search, states
from claims.models import IPAMClaim
from pools.platform.admin import display, lists, pages


class ClaimList(lists.BoundedList):
    """Adds the next step to the claims of a page, with two queries for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        claims: list[Any] = list(self.result_list)
        codes = states.finding_codes(claims)
        answered = states.clusters_with_managed_claims({claim.cluster_id for claim in claims})
        for claim in claims:
            claim.shown_next_step = states.next_step(
                claim, codes.get(claim.pk, ()), claims_managed=claim.cluster_id in answered
            )
            claim.shown_links = scoped.request_scope(request).everything
        self.result_list = claims


class ClaimStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(state, state) for state in states.STATES]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(state=self.value()) if self.value() else rows


@admin.register(IPAMClaim)
class IPAMClaimAdmin(scoped.Scoped[IPAMClaim]):
    list_display = (
        "shown_name",
        "shown_vm",
        "shown_network",
        "shown_requested",
        "shown_assigned",
        "shown_state",
        "shown_age",
        "shown_next_step",
    )
    list_display_links = None
    list_filter = (ClaimStateFilter, scoped.ScopedClusterFilter, scoped.NetworkFilter)
    exported = (
        "cluster.name",
        "namespace",
        "name",
        "network.name",
        "vm",
        "mac",
        "ips_requested",
        "ips",
        "owner_pod",
        "state",
        "created_at",
        "note",
    )
    search_fields = ("name",)
    search_help_text = _("Name, VM, MAC or address")
    ordering = ("-pk",)
    sortable_by = ("shown_name", "shown_vm", "shown_age")
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/claims_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[IPAMClaim]:
        rows = super().get_queryset(request).select_related("cluster", "network")
        return states.with_state(rows)

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return ClaimList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[IPAMClaim], search_term: str
    ) -> tuple[QuerySet[IPAMClaim], bool]:
        search_text = search_term.strip()
        return (search.matching_claims(queryset, search_text) if search_text else queryset), False

    @admin.display(description=_("claim"), ordering="name")
    def shown_name(self, claim: IPAMClaim) -> SafeString:
        namespace = format_html('<span class="cad-kind">{}</span>', claim.namespace)
        return format_html("{} {}", namespace, tables.claim_link(claim, claim.name))

    @admin.display(description=_("VM, running in"), ordering="vm")
    def shown_vm(self, claim: Any) -> SafeString:
        link = tables.vm_link(claim.namespace, claim.vm, claim.vm)
        pod = format_html(
            '<span class="cad-dim">{}</span>', ", ".join(claim.pods) or gettext("no pod")
        )
        return format_html('<span class="cad-stack"><span>{}</span>{}</span>', link, pod)

    @admin.display(description=_("network"))
    def shown_network(self, claim: Any) -> SafeString:
        cluster = format_html('<span class="cad-dim">{}</span>', claim.cluster.name)
        link = display.row_link(claim.network, claim.network.name)
        return format_html('<span class="cad-stack"><span>{}</span>{}</span>', link, cluster)

    @admin.display(description=_("requested"))
    def shown_requested(self, claim: IPAMClaim) -> SafeString:
        return address_stack([claim.mac, *claim.ips_requested])

    @admin.display(description=_("assigned"))
    def shown_assigned(self, claim: IPAMClaim) -> SafeString:
        return address_stack(claim.ips)

    @admin.display(description=_("state"))
    def shown_state(self, claim: Any) -> SafeString:
        return page.state_badge(claim.state, states.state_description(claim))

    @admin.display(description=_("age"), ordering="created_at")
    def shown_age(self, claim: IPAMClaim) -> SafeString:
        return display.timestamp(claim.created_at)

    @admin.display(description=_("what to do next"))
    def shown_next_step(self, claim: Any) -> SafeString | str:
        return claim.shown_next_step or display.DASH

    # --- pages ------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        more = {
            "nothing_yet": not scoped.rows(request, IPAMClaim).exists(),
            "may_request": form.may_request(request),
            "problems": ipamclaim_problems.count(request),
            **(extra_context or {}),
        }
        return super().changelist_view(request, more)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return form.may_request(request)

    def get_urls(self) -> list[URLPattern]:
        def with_claim(view: Any) -> Any:
            def claim_view(request: HttpRequest, claim_id: int) -> HttpResponse:
                pages.require(request, "claims.view_ipamclaim")
                answer: HttpResponse = view(request, self.row_or_404(request, claim_id))
                return answer

            return pages.in_admin(claim_view)

        problems = pages.in_admin(ipamclaim_problems.view)
        return [
            path("problems/", problems, name="claims_ipamclaim_problems"),
            path("<int:claim_id>/edit/", with_claim(form.edit), name="claims_ipamclaim_edit"),
            path(
                "<int:claim_id>/release/", with_claim(form.release), name="claims_ipamclaim_release"
            ),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        return form.add(request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_ipamclaim")
        return page.view(request, self.row_or_404(request, object_id))

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_ipamclaim")
        return form.delete(request, self.row_or_404(request, object_id))

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_ipamclaim")
        claim = self.row_or_404(request, object_id)
        url = reverse("admin:pools_event_changelist", query={"q": claim.name})
        return HttpResponseRedirect(url)


def address_stack(values: Sequence[str | None]) -> SafeString:
    """Return addresses and MACs, one below the other; None and "" are left out."""
    present_values = [value for value in values if value]
    if not present_values:
        return display.DASH
    listed = format_html_join(
        "", "<span>{}</span>", ((display.address(value),) for value in present_values)
    )
    return format_html('<span class="cad-stack cad-nowrap">{}</span>', listed)
