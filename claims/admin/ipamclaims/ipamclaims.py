"""List and pages of claims: their addresses, and why a VM did not get one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped, tables
from claims.admin.ipamclaims import form, page
from claims.ipamclaims import states
from claims.models import IPAMClaim
from claims.models.networks import FirstAddress
from pools.platform.admin import columns, display, filters, lists
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page


def _name(claim: IPAMClaim) -> SafeString:
    namespace = format_html('<span class="cad-kind">{}</span>', claim.namespace)
    return format_html("{} {}", namespace, tables.claim_link(claim, claim.name))


def _vm(claim: Any) -> SafeString:
    link = tables.vm_link(claim.namespace, claim.vm, claim.vm)
    pods = ", ".join(claim.pods) or gettext("no pod")
    return display.two_lines(link, pods)


def _network(claim: IPAMClaim) -> SafeString:
    return display.two_lines(
        display.row_link(claim.network, claim.network.name), claim.cluster.name
    )


def _state(claim: Any) -> SafeString:
    return page.state_badge(claim.state, states.state_description(claim))


@admin.register(IPAMClaim)
class IPAMClaimAdmin(scoped.Scoped[IPAMClaim]):
    row_name, row_names = _("claim"), _("claims")
    list_display = (
        Column("name", _("claim"), _name, ordering="name"),
        Column("vm", _("VM, running in"), _vm, ordering="vm"),
        Column("network", _("network"), _network, ordering="network__name"),
        Column(
            "requested",
            _("requested"),
            lambda claim: scoped.addresses([claim.mac, *claim.ips_requested]),
        ),
        Column(
            "assigned",
            _("assigned"),
            lambda claim: scoped.addresses(claim.ips),
            ordering=FirstAddress("ips"),
        ),
        Column("state", _("state"), _state),
        columns.timestamp("created_at", _("age"), ordering="id"),
        Column(
            "next_step",
            _("what to do next"),
            lambda claim: claim.shown_next_step or display.DASH,
        ),
    )
    list_filter = (
        filters.by_value(
            _("state"),
            "state",
            lambda _request: [(state, state) for state in states.STATES],
            select=states.filter_by_states,
        ),
        scoped.cluster_filter(),
        scoped.network_filter(),
        scoped.namespace_filter(IPAMClaim),
    )
    exported = (
        "cluster.name", "namespace", "name", "network.name", "vm", "mac", "ips_requested", "ips",
        "owner_pod", "state", "created_at", "note",
    )  # fmt: skip
    search_help_text = _("Name, VM, MAC or address")
    ordering = ("-pk",)
    list_select_related = ("cluster", "network")
    list_before_template = "cadastre/claims_intro.html"
    list_pages = (Page("add", form.add), Page("problems", page.problems_page))
    row_pages = (
        Page("change", page.view),
        Page("edit", form.edit),
        Page("release", form.release),
        Page("delete", form.delete),
        lists.history(lambda claim: {"q": claim.name}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[IPAMClaim]:
        return states.with_state(super().get_queryset(request))

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        codes = states.finding_codes(rows)
        answered = states.clusters_with_managed_claims({claim.cluster_id for claim in rows})
        for claim in rows:
            claim.shown_next_step = states.next_step(
                claim, codes.get(claim.pk, ()), claims_managed=claim.cluster_id in answered
            )

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "nothing_yet": not scoped.rows(request, IPAMClaim).exists(),
            "may_request": form.may_request(request),
            "problems": page.count_problems(request),
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return form.may_request(request)
