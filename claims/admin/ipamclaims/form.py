"""Forms of claims: request addresses, change a request, release the claim, release leaked addresses."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.core import macs
from claims.ipamclaims import ipamclaims
from claims.models import IPAMClaim, Network
from pools.core import errors, holders
from pools.platform.admin import display, forms as fields, lists, pages, related, row_forms

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
    note = forms.CharField(label=_("Note"), required=False, max_length=500, widget=fields.text())

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
