"""Claims of VMs: list, form and page, the release of leaked addresses, and all findings by their codes."""

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.address_index import duplicates
from claims.admin import scoped, vm_display
from claims.core import macs
from claims.core.ipamclaims import dialects, ipamclaim
from claims.ipamclaims import findings, ipamclaims, states
from claims.models import IPAMClaim, Network
from claims.models.networks import FirstAddress
from pools.core import errors, holders
from pools.models import Cluster, Finding
from pools.platform import documents
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

# --- forms ---


def may_request(request: HttpRequest) -> bool:
    """Return True if the user may request addresses in any namespace."""
    user = request.user
    return user.has_perm("claims.add_entry") or user.has_perm("claims.request_address")


def may_release(request: HttpRequest) -> bool:
    return request.user.has_perm("claims.delete_ipamclaim")


def may_change(request: HttpRequest, claim: IPAMClaim) -> bool:
    try:
        namespaces.require_request(request.user, claim.cluster_id, claim.namespace)
    except errors.NotAllowed:
        return False
    return True


class ClaimForm(row_forms.ObjectForm):
    """The form of a claim; a change has its MAC, addresses and note, and once it has addresses its note alone."""

    network = related.RelatedField(scoped.OFFERED_NETWORKS, Network.objects.none())
    namespace = fields.ParsedField(
        lambda text: holders.parse_label(text.strip()),
        widget=related.name_widget(scoped.OFFERED_NAMESPACES, placeholder="shop"),
    )
    vm = fields.name_field(label=_("VM"), help_text=_("Name of the VM. The VM need not exist yet."))
    mac = fields.ParsedField(
        lambda text: macs.parse_mac(text, lenient=True),
        label=_("MAC"),
        required=False,
        widget=fields.addresses_text(placeholder="02:03:04:05:06:07"),
        help_text=_("The MAC address of the VM's interface. Leave it empty to accept any."),
    )
    ips = forms.CharField(
        label=_("Addresses"),
        required=False,
        widget=scoped.addresses_widget(placeholder="10.0.0.5 fd00::5"),
        help_text=_(
            "At most one of each family. Without any, the next free addresses are allocated."
        ),
    )
    note = fields.reason_field(label=_("Note"), required=False, help_text="")

    class Meta:
        model = IPAMClaim
        fields = ("network", "namespace", "vm", "mac", "ips", "note")

    _columns = {"ips": "ips_requested"}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.row is None:
            self.fields["network"].queryset = requestable_networks(self.request)  # type: ignore[attr-defined]
        elif "ips" in self.fields:
            url = reverse("admin:claims_network_free", query={"network": self.row.network_id})
            self.fields["ips"].widget.attrs["data-free"] = url

    def shown_values(self, row: IPAMClaim) -> dict[str, Any]:
        values = {"mac": row.mac or "", "ips": " ".join(row.ips_requested), "note": row.note}
        return {name: value for name, value in values.items() if name in self.fields}

    def clean(self) -> dict[str, Any]:
        """Parse the requested addresses; their problems are shown beside the field."""
        values = super().clean() or self.cleaned_data
        network = self.row.network if self.row else values.get("network")
        if network is not None and "ips" in values:
            texts = values["ips"].replace(",", " ").split()
            with pages.errors_at_field(self, "ips"):
                values["ips"] = ipamclaims.parse_ips(texts, network, field="ips")
        return values


def requestable_networks(request: HttpRequest) -> QuerySet[Network]:
    return scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")


def unfit_text(request: HttpRequest) -> str:
    """Return why the network that the form begins with can hold no claims, or ""."""
    network_id = lists.parse_id(request.GET.get("network", ""))
    network = requestable_networks(request).filter(pk=network_id).first()
    try:
        if network is not None:
            ipamclaims.require_fit(network)
    except errors.InvalidInput as error:
        return pages.sentence(error.message)
    return ""


def release(request: HttpRequest, claim: IPAMClaim) -> HttpResponse:
    """Release the addresses of a leaked claim in the register, with a reason."""
    pages.require(request, "claims.delete_ipamclaim")
    form = fields.ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.errors_as_messages(request):
            author = pages.author(request, form.cleaned_data["reason"])
            ipamclaims.release(claim.pk, author=author)
            messages.success(
                request,
                (gettext("The addresses of %(claim)s were released.") % {"claim": claim.name}),
            )
        return HttpResponseRedirect(display.url_of(claim))
    return pages.confirmation(
        request,
        claim,
        title=gettext("Release %(ips)s?") % {"ips": ", ".join(claim.ips)},
        button=gettext("Release"),
        effects=[
            gettext(
                "The VM %(vm)s was deleted. OVN-Kubernetes keeps the addresses as long as the"
                " object exists in the cluster: remove its finalizer there, too."
            )
            % {"vm": claim.vm}
        ],
        form=form,
        values=(),
    )


# --- pages ---


_STATE_STYLES = {
    states.BOUND: ("ok", "●"),
    states.PENDING: ("pending", "◔"),
    states.FAILED: ("degraded", "▲"),
    states.CONFLICT: ("degraded", "≠"),
    states.LEAKED: ("degraded", "◇"),
}
# Findings that name entries and claims of other namespaces.
_CODES_OF_OTHER_OBJECTS = {findings.DIFFERS_FROM_ENTRY, findings.DUPLICATE}


def state_badge(word: str, title: str = "") -> SafeString:
    """Return a badge for a claim's state; `title` is its tooltip."""
    return display.badge(*_STATE_STYLES[word], word, title)


def claim_page(request: HttpRequest, claim: Any) -> HttpResponse:
    scope = scoped.request_scope(request)
    claim_findings = states.findings(claim)
    answered = claim.cluster_id in states.clusters_with_managed_claims({claim.cluster_id})
    codes = {finding.code for finding in claim_findings}
    return pages.page(
        request,
        "claim.html",
        claim,
        title=claim.name,
        claim=claim,
        bar=vm_display.claim_bar(request, claim),
        everything=scope.everything,
        badge=state_badge(claim.state, states.state_description(claim)),
        state_text=states.state_description(claim),
        condition=dialects.allocation_condition(claim.conditions),
        raw=json.dumps(claim.conditions, indent=2, ensure_ascii=False) if claim.conditions else "",
        next_step=states.next_step(claim, codes, claims_managed=answered),
        findings=[
            finding
            for finding in claim_findings
            if scope.everything or finding.code not in _CODES_OF_OTHER_OBJECTS
        ],
        command=findings.remove_finalizer(vars(claim)) if claim.finalizers else "",
        duplicates=_duplicates(claim, scope),
        manifest=documents.dump_yaml(ipamclaims.manifest(claim)),
        vm_link=vm_display.vm_link(claim.namespace, claim.vm),
        vm=vm_display.manifest_text(
            claim.network,
            vm=claim.vm,
            namespace=claim.namespace,
            mac=claim.mac,
            scope=scope,
            missing_vm_text=gettext("No VM set for this claim."),
        ),
        may_write=may_change(request, claim),
        may_release=may_release(request)
        and bool(claim.ips)
        and bool(codes & {findings.LEAKED, findings.STUCK}),
        call=f"ipamclaims/{claim.pk}/",
    )


def _duplicates(claim: IPAMClaim, scope: Any) -> SafeString | str:
    claim_duplicates = duplicates.of_claims([claim], scope).get(claim.pk, [])
    return vm_display.duplicate_badge(claim_duplicates, claim.network) if claim_duplicates else ""


MOST_PER_CODE = 200  # findings on the page
_TITLES = {
    findings.LEAKED: _("Leaked: the VM was deleted, its claim was not"),
    findings.STUCK: _("Deletion pending for a long time"),
    findings.UNKNOWN_NETWORK: _("Unknown network"),
    findings.REFUSED: _("No address assigned"),
    findings.DUPLICATE: _("Duplicate address or MAC address"),
    findings.OUTSIDE: _("Outside the network's subnets"),
    findings.DIFFERS_FROM_ENTRY: _("Differs from the MAC entry"),
    findings.DIFFERS_FROM_WORKLOAD: _("Differs from the running VM"),
    findings.NAME: _("Name that no VM refers to"),
    findings.COLLISION: _("Name collisions"),
    findings.UNWRITABLE: _("Requests that the object cannot represent"),
}


def _claim_findings(request: HttpRequest) -> Any:
    """Return the findings if the user sees all namespaces: a finding may name several."""
    if not scoped.request_scope(request).everything:
        return Finding.objects.none()
    # The unique index begins with the cluster.
    clusters = list(Cluster.objects.values_list("pk", flat=True))
    rows = Finding.objects.filter(cluster__in=clusters, kind=ipamclaim.KIND)
    rows = rows.select_related("cluster")
    return rows.order_by("cluster__name", "subject")


def count_problems(request: HttpRequest) -> int:
    return int(_claim_findings(request).count())


def problems_page(request: HttpRequest) -> HttpResponse:
    pages.require(request, "claims.view_ipamclaim", "claims.view_every_namespace")
    groups = []
    for code, title in _TITLES.items():
        rows = list(_claim_findings(request).filter(code=code)[: MOST_PER_CODE + 1])
        if rows:
            groups.append((code, title, rows[:MOST_PER_CODE], len(rows) > MOST_PER_CODE))
    claim_ids = {
        finding.details.get("id") for _code, _title, rows, _more in groups for finding in rows
    }
    return pages.page(
        request,
        "claim_problems.html",
        IPAMClaim,
        title=gettext("Claims: findings"),
        groups=groups,
        existing_claims=set(
            IPAMClaim.objects.filter(pk__in=claim_ids - {None}).values_list("pk", flat=True)
        ),
        may_release=may_release(request),
        call="ipamclaims/?state=leaked",
    )


# --- the list ---


def _name(claim: IPAMClaim) -> SafeString:
    namespace = format_html('<span class="cad-kind">{}</span>', claim.namespace)
    return format_html("{} {}", namespace, vm_display.claim_link(claim, claim.name))


def _vm(claim: Any) -> SafeString:
    link = vm_display.vm_link(claim.namespace, claim.vm, claim.vm)
    pods = ", ".join(claim.pods) or gettext("no pod")
    return display.two_lines(link, pods)


def _network(claim: IPAMClaim) -> SafeString:
    return display.two_lines(
        display.row_link(claim.network, claim.network.name), claim.cluster.name
    )


def _state(claim: Any) -> SafeString:
    return state_badge(claim.state, states.state_description(claim))


@admin.register(IPAMClaim)
class IPAMClaimAdmin(scoped.Scoped[IPAMClaim], objects.ObjectAdmin[IPAMClaim]):
    form = ClaimForm
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
    list_pages = (Page("problems", problems_page),)
    row_pages = (
        Page("change", claim_page),
        Page("release", release),
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
            "may_request": may_request(request),
            "problems": count_problems(request),
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_request(request)

    def has_change_permission(self, request: HttpRequest, obj: IPAMClaim | None = None) -> bool:
        return obj is not None and may_change(request, obj)

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
        return {"button": gettext("Request addresses"), "intro": unfit_text(request)}

    def field_of_problem(self, problem: errors.FieldProblem) -> str:
        return "vm" if problem.field == "name" else problem.field

    def save_row(self, row: IPAMClaim | None, form: Any, author: Author) -> IPAMClaim:
        values, user = form.cleaned_data, form.request.user
        values["note"] = values["note"] or ""
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
