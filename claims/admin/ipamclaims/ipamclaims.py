"""List and pages of claims: their addresses, and why a VM did not get one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped, tables
from claims.admin.ipamclaims import form as claim_form, page
from claims.ipamclaims import ipamclaims, states
from claims.models import IPAMClaim
from claims.models.networks import FirstAddress
from pools.core import errors
from pools.platform.admin import columns, display, filters, lists, objects, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.events import Author


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
class IPAMClaimAdmin(scoped.Scoped[IPAMClaim], objects.ObjectAdmin[IPAMClaim]):
    form = claim_form.ClaimForm
    add_title = _("Request addresses for a VM")
    deletion_texts = {
        "title": _("Release %(name)s?"),
        "deleted": _("The claim %(name)s was released."),
        "button": _("Release"),
    }
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
    found_columns = ("name", "vm", "requested", "assigned", "state", "network")
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
    list_pages = (Page("problems", page.problems_page),)
    row_pages = (
        Page("change", page.view),
        Page("release", claim_form.release),
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
            "may_request": claim_form.may_request(request),
            "problems": page.count_problems(request),
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return claim_form.may_request(request)

    def has_change_permission(self, request: HttpRequest, obj: IPAMClaim | None = None) -> bool:
        return obj is not None and claim_form.may_change(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: IPAMClaim | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def _needs(self, verb: str) -> tuple[str, ...]:
        """Return no permission: who may request addresses in the namespace of a claim may change and release it."""
        return ()

    def get_readonly_fields(
        self, request: HttpRequest, obj: IPAMClaim | None = None
    ) -> tuple[str, ...]:
        if obj is None:
            return ()
        decided = ("mac", "ips") if obj.ips or obj.follows_cluster else ()
        return ("network", "namespace", "vm", *decided)

    def form_context(self, request: HttpRequest, row: IPAMClaim | None) -> dict[str, Any]:
        if row is not None:
            return {}
        return {"button": gettext("Request addresses"), "intro": claim_form.unfit_text(request)}

    def field_of_problem(self, problem: errors.FieldProblem) -> str:
        return "vm" if problem.field == "name" else problem.field

    def save_row(self, row: IPAMClaim | None, form: Any, author: Author) -> IPAMClaim:
        values, user = form.cleaned_data, form.request.user
        scope = namespaces.request_scope(user)
        if row is None:
            namespaces.require_request(user, values["network"].cluster_id, values["namespace"])
            return ipamclaims.create(ipamclaims.ClaimSpec(**values), author=author, scope=scope)
        if "mac" in values:
            values["mac"] = values["mac"] or ""
        change = ipamclaims.ClaimChange(**values)
        version = form.check_version
        return ipamclaims.change(row.pk, change, author=author, scope=scope, version=version)

    def delete_model(self, request: HttpRequest, obj: IPAMClaim) -> None:
        ipamclaims.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: IPAMClaim) -> list[str]:
        names = {"vm": row.vm, "addresses": ", ".join(row.ips) or gettext("no address")}
        text = gettext(
            "This claim of the VM %(vm)s is deleted. Addresses that are released: %(addresses)s."
        )
        return [text % names]
