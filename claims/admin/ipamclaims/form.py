"""Forms of claims: request addresses, change a request, release the claim, release leaked addresses."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.core import macs
from claims.ipamclaims import ipamclaims
from claims.models import IPAMClaim, Network
from pools.core import errors, holders
from pools.platform.admin import display, lists, pages, related, row_forms
from pools.platform.admin import forms as fields

LIST = "admin:claims_ipamclaim_changelist"


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


def _require_write(request: HttpRequest, claim: IPAMClaim) -> None:
    if not may_change(request, claim):
        raise PermissionDenied


class RequestForm(row_forms.RowForm):
    """The form of a claim's request: MAC address, addresses, note."""

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
    note = forms.CharField(label=_("Note"), required=False, max_length=500, widget=fields.text())

    def parse_addresses(self, network: Network) -> tuple[str, ...]:
        """Return the requested addresses; their problems are shown beside the field."""
        texts = (self.cleaned_data.get("ips") or "").replace(",", " ").split()
        try:
            return ipamclaims.parse_ips(texts, network, field="ips")
        except errors.InvalidInput as error:
            pages.add_errors(self, error, lambda _problem: "ips")
            return ()


class ClaimForm(RequestForm):
    """The form of a new claim."""

    network = related.RelatedField(scoped.OFFERED_NETWORKS, Network.objects.none())
    namespace = fields.ParsedField(
        lambda text: holders.parse_label(text.strip()),
        widget=related.name_widget(scoped.OFFERED_NAMESPACES, placeholder="shop"),
    )
    vm = fields.name_field(label=_("VM"), help_text=_("Name of the VM. The VM need not exist yet."))
    field_order = ("network", "namespace", "vm", "mac", "ips", "note")

    def __init__(self, *args: Any, networks: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["network"].queryset = networks  # type: ignore[attr-defined]


def add(request: HttpRequest) -> HttpResponse:
    if not may_request(request):
        raise PermissionDenied
    networks = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
    query = request.GET or None
    form = ClaimForm(request.POST or None, networks=networks, initial=_initial(query))
    if request.method == "POST" and form.is_valid():
        cleaned_data = form.cleaned_data
        ips = form.parse_addresses(cleaned_data["network"])
        if not form.errors and (claim := _create_claim(request, form, ips)):
            return pages.done(
                request, gettext("The claim %(claim)s was created.") % {"claim": claim.name}, claim
            )
    return pages.form_page(
        request,
        IPAMClaim,
        form,
        title=gettext("Request addresses for a VM"),
        button=gettext("Request addresses"),
        intro=_unfit_text(networks, request.GET.get("network", "")),
    )


def _unfit_text(networks: QuerySet[Network], network_id: str) -> str:
    """Return why the network that the form begins with can hold no claims, or ""."""
    network = networks.filter(pk=lists.parse_id(network_id)).first()
    try:
        if network is not None:
            ipamclaims.require_fit(network)
    except errors.InvalidInput as error:
        return pages.sentence(error.message)
    return ""


def _initial(query: Any) -> dict[str, str]:
    return (
        {name: query[name] for name in ("network", "namespace", "vm", "mac") if name in query}
        if query
        else {}
    )


def _create_claim(request: HttpRequest, form: ClaimForm, ips: tuple[str, ...]) -> IPAMClaim | None:
    cleaned_data = form.cleaned_data
    with pages.errors_at_field(
        form, lambda problem: "vm" if problem.field == "name" else problem.field
    ):
        namespaces.require_request(
            request.user, cleaned_data["network"].cluster_id, cleaned_data["namespace"]
        )
        spec = ipamclaims.ClaimSpec(
            network=cleaned_data["network"],
            namespace=cleaned_data["namespace"],
            vm=cleaned_data["vm"],
            mac=cleaned_data["mac"],
            ips=ips,
            note=cleaned_data["note"],
        )
        return ipamclaims.create(
            spec, author=pages.author(request), scope=namespaces.request_scope(request.user)
        )
    return None


def _shown_values(claim: IPAMClaim) -> dict[str, str]:
    return {"mac": claim.mac or "", "ips": " ".join(claim.ips_requested), "note": claim.note}


def edit(request: HttpRequest, claim: IPAMClaim) -> HttpResponse:
    """Show and save the form of a claim; once it has addresses, only its note can be changed."""
    _require_write(request, claim)
    form = RequestForm(request.POST or None)
    form.show_row(claim, _shown_values, columns={"ips": "ips_requested"})
    url = reverse("admin:claims_network_free", query={"network": claim.network_id})
    form.fields["ips"].widget.attrs["data-free"] = url
    is_note_only = bool(claim.ips) or claim.follows_cluster
    if is_note_only:
        del form.fields["mac"], form.fields["ips"]
    if request.method == "POST" and form.is_valid():
        changes = ipamclaims.ClaimChange(note=form.cleaned_data["note"])
        if not is_note_only:
            changes = ipamclaims.ClaimChange(
                mac=form.cleaned_data["mac"] or "",
                ips=form.parse_addresses(claim.network),
                note=form.cleaned_data["note"],
            )
        if not form.errors:
            with pages.errors_at_field(form):
                ipamclaims.change(
                    claim.pk,
                    changes,
                    author=pages.author(request),
                    scope=namespaces.request_scope(request.user),
                    version=form.check_version,
                )
                return pages.done(request, gettext("The claim was changed."), claim)
    return pages.form_page(
        request, claim, form, title=gettext("Change %(claim)s") % {"claim": claim.name}
    )


def delete(request: HttpRequest, claim: IPAMClaim) -> HttpResponseBase:
    _require_write(request, claim)
    names = {"vm": claim.vm, "addresses": ", ".join(claim.ips) or gettext("no address")}
    return pages.deletion(
        request,
        claim,
        lambda: ipamclaims.delete(claim.pk, author=pages.author(request)),
        title=gettext("Release %(claim)s?") % {"claim": claim.name},
        deleted=gettext("The claim %(claim)s was released.") % {"claim": claim.name},
        button=gettext("Release"),
        effects=[
            gettext(
                "This claim of the VM %(vm)s is deleted. Addresses that are released: %(addresses)s."
            )
            % names
        ],
    )


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
