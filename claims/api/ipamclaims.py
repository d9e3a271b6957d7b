"""Endpoints of claims: the address of each VM on a network, or why it has none; VM manifests."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.address_index import duplicates
from claims.api import entries, scoped
from claims.api.ipamclaims_serializers import (
    ClaimReleaseSerializer,
    IPAMClaimChangeSerializer,
    IPAMClaimSerializer,
    VMManifestSerializer,
)
from claims.ipamclaims import ipamclaims, states
from claims.ipamclaims.ipamclaims import ClaimSpec
from claims.models import IndexEntry, IPAMClaim, Network
from claims.models.networks import FirstAddress
from claims.workloads import vm_lookup
from pools.core import errors
from pools.platform import search
from pools.platform.rest import filters, generics, query, views
from pools.platform.rest.views import endpoints

_VIEW = ("claims.view_ipamclaim",)
_EXAMPLE = OpenApiExample(
    "the decentralized form of the enhancement proposal",
    {
        "cluster": "prod",
        "namespace": "blue",
        "network": "cluster_udn_prod",
        "vm": "vm1",
        "mac": "02:03:04:05:06:07",
        "ips_requested": ["10.0.0.5/24"],
    },
    request_only=True,
)


class IPAMClaimFilter(scoped.ScopedFilterSet):
    namespace = filters.Filter()
    network = filters.Filter(field_name="network__name", help_text="The logical name.")
    vm = filters.Filter()
    name = filters.Filter()
    mac = filters.Filter(entries.parse_any_mac, help_text="In any notation.")
    ip = filters.Filter(query.cidr, method="filter_ip", help_text="An address or a CIDR.")
    q = filters.Filter(
        select=search.matching, help_text="A part of the name, the VM or an address."
    )
    state = filters.choice(
        *states.STATES, select=lambda rows, state: states.filter_by_states(rows, [state])
    )

    def filter_ip(self, rows: QuerySet[IPAMClaim], _name: str, cidr: str) -> QuerySet[IPAMClaim]:
        lookup = "address__net_contained_or_equal" if "/" in cidr else "address"
        index_entries = IndexEntry.objects.filter(claim__isnull=False, **{lookup: cidr})
        return rows.filter(pk__in=index_entries.values("claim_id"))


class _ClaimView(scoped.ScopedView):
    queryset = IPAMClaim.objects.select_related("cluster", "network")
    serializer_class: Any = IPAMClaimSerializer
    lookup_url_kwarg = "claim_id"

    def get_queryset(self) -> QuerySet[Any]:
        return states.with_state(super().get_queryset())

    def load(self, rows: list[Any]) -> None:
        by_claim = duplicates.of_claims(rows, scoped.request_scope(self.request))
        codes = states.finding_codes(rows)
        managed = states.clusters_with_managed_claims({claim.cluster_id for claim in rows})
        for claim in rows:
            claim.duplicates = [each.as_json() for each in by_claim.get(claim.pk, ())]
            claim.in_cluster = bool(claim.uid)
            claim.next_step = states.next_step(
                claim, codes.get(claim.pk, ()), claims_managed=claim.cluster_id in managed
            )

    def get_claim(self) -> IPAMClaim:
        """The row without its state. NotFound, also for a hidden one."""
        rows = IPAMClaim.objects.select_related("cluster", "network")
        return scoped.get_row(self.request, rows, self.kwargs["claim_id"])

    def get_writable(self) -> IPAMClaim:
        """The row, if the user may change it. NotFound, or NotAllowed for a visible one."""
        claim = self.get_claim()
        namespaces.require_request(self.request.user, claim.cluster_id, claim.namespace)
        return claim

    def show(self, claim_id: int) -> dict[str, Any]:
        claim = self.get_queryset().filter(pk=claim_id).first()
        if claim is None:
            raise errors.NotFound(self.absent)
        return self.represent(claim)


class IPAMClaims(_ClaimView, generics.ListView):
    """IPAMClaims of the namespaces that are visible."""

    # namespaces.require_request checks who may create a claim.
    needs = {"GET": _VIEW, "POST": _VIEW}  # the response contains the written claim
    idempotent = ("POST",)
    filterset_class = IPAMClaimFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {
        "id": ("id",),
        "name": ("name", "id"),
        "vm": ("vm", "id"),
        "address": ("first_address", "id"),
    }

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        ordered: QuerySet[Any] = rows.annotate(first_address=FirstAddress("ips"))
        return ordered

    @extend_schema(responses={201: IPAMClaimSerializer}, examples=[_EXAMPLE])
    def post(self, request: Request) -> Response:
        """Create an IPAMClaim; a managed cluster gets it."""
        values = self.read(request)
        values.pop("cluster")  # that of the network
        network, ips = values.pop("network.name"), values.pop("ips_requested", ())
        spec = ClaimSpec(network=network, ips=ips, **values)
        namespaces.require_request(request.user, spec.network.cluster_id, spec.namespace)
        author, scope = self.author(), namespaces.request_scope(request.user)
        return self.once(
            request,
            lambda: self.show(ipamclaims.create(spec, author=author, scope=scope).pk),
            status=201,
        )


class IPAMClaimView(_ClaimView, generics.DetailView):
    """An IPAMClaim."""

    needs = {"GET": _VIEW, "PATCH": _VIEW, "DELETE": _VIEW}

    @extend_schema(request=IPAMClaimChangeSerializer)
    def patch(self, request: Request, claim_id: int) -> Response:
        """Change the request of a claim without addresses, or its note."""
        claim = self.get_writable()
        values = self.read(request, IPAMClaimChangeSerializer, partial=True, claim=claim)
        changes = ipamclaims.ClaimChange(
            mac=values.get("mac"), ips=values.get("ips_requested"), note=values.get("note")
        )
        author = self.author()
        ipamclaims.change(
            claim.pk, changes, author=author, scope=namespaces.request_scope(request.user)
        )
        return Response(self.show(claim_id))

    def delete(self, request: Request, claim_id: int) -> Response:
        """Withdraw a claim that no cluster has."""
        ipamclaims.delete(self.get_writable().pk, author=self.author())
        return Response(status=204)


class IPAMClaimManifest(_ClaimView):
    needs = {"GET": _VIEW}

    @extend_schema(responses=OpenApiTypes.OBJECT, parameters=[scoped.MANIFEST_FORMAT])
    def get(self, request: Request, claim_id: int) -> views.Answer:
        """An IPAMClaim as the Kubernetes object that it is or would be."""
        output_format = scoped.requested_format(request)
        return scoped.manifest_answer(ipamclaims.manifest(self.get_claim()), output_format)


class IPAMClaimRelease(_ClaimView):
    needs = {"POST": ("claims.delete_ipamclaim",)}
    idempotent = ("POST",)

    @extend_schema(request=ClaimReleaseSerializer)
    def post(self, request: Request, claim_id: int) -> Response:
        """Release the addresses of a leaked claim, with a reason."""
        claim = self.get_claim()
        author = self.author(self.read(request, ClaimReleaseSerializer)["reason"])

        def release() -> dict[str, Any]:
            ipamclaims.release(claim.pk, author=author)
            return self.show(claim_id)

        return self.once(request, release)


class VMManifest(generics.GenericView):
    """The manifest of a VM. The POST writes nothing, so it needs only the permission to view."""

    needs = {"POST": ("claims.view_network",)}
    posts_a_question = True
    serializer_class = VMManifestSerializer

    @extend_schema(responses=OpenApiTypes.OBJECT, parameters=[scoped.MANIFEST_FORMAT])
    def post(self, request: Request, network_id: int) -> views.Answer:
        """The VirtualMachine with the annotation by which it gets its addresses."""
        output_format = scoped.requested_format(request)
        network = scoped.get_row(request, Network, network_id)
        values = self.read(request)
        scope = scoped.request_scope(request)
        scope.require(network.cluster_id, values["namespace"])
        manifest = vm_lookup.vm_manifest(network, **{"mac": None, **values}, scope=scope)
        return scoped.manifest_answer(manifest, output_format)


urlpatterns = [
    *endpoints("", ("ipamclaims/", IPAMClaims, "ipamclaims")),
    *endpoints(
        "ipamclaims/<int:claim_id>/",
        ("", IPAMClaimView, "ipamclaim"),
        ("manifest/", IPAMClaimManifest, "ipamclaim-manifest"),
        ("release/", IPAMClaimRelease, "ipamclaim-release"),
    ),
    *endpoints("networks/<int:network_id>/", ("vm-manifest/", VMManifest, "vm-manifest")),
]
