"""Endpoints of claims: the address of each VM on a network, or why it has none; VM manifests."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.address_index import duplicates
from claims.api import entries, scoped
from claims.core import macs
from claims.ipamclaims import ipamclaims, states
from claims.ipamclaims.ipamclaims import ClaimSpec
from claims.models import IndexEntry, IPAMClaim, Network
from claims.models.networks import FirstAddress
from claims.workloads import vm_lookup
from pools.core import errors, holders, object_reader
from pools.models import Cluster
from pools.platform import search
from pools.platform.rest import fields, filters, generics, query, schema
from pools.platform.rest.serializers import Representation, Serializer

_MAC_SCHEMA = {"type": "string", "example": "02:03:04:05:06:07"}
_IPS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "maxItems": 2,
    "items": {"type": "string", "example": "10.0.0.5/24"},
}


def _parse_name(value: object, path: str) -> str:
    try:
        return holders.parse_name(value, path)
    except errors.InvalidInput as error:
        if error.code != "k8s_name":
            raise
        # The name of the enhancement proposal, <vm>.<logical network name>, is often no valid object name.
        message = f"{error.message}; leave the name out to get the name that ipam-extensions uses, with dots"
        raise errors.InvalidInput.for_field(path, error.code, message, value) from error


class ClaimStatusSerializer(Representation):
    """The status of the object in the cluster."""

    ips = fields.ListField(child=fields.TextField())
    owner_pod = fields.TextField()
    conditions = fields.ListField(child=entries.ConditionSerializer())


class IPAMClaimSerializer(Serializer):
    """The addresses of an interface of a VM on a network, requested and allocated."""

    id = fields.IntegerField(read_only=True)
    cluster = scoped.ClusterField()
    namespace = fields.NamespaceField()
    name = fields.TextField(_parse_name, required=False)
    network = fields.TextField(
        lambda value, _path: value, source="network.name",
        help_text="The logical name of the network.",
    )  # fmt: skip
    interface = fields.TextField(partial(holders.parse_description, max_length=253), required=False)
    mac = fields.TextField(macs.parse_mac, schema=_MAC_SCHEMA, required=False, allow_null=True)
    ips_requested = fields.ParsedField(schema=_IPS_SCHEMA, required=False)
    vm = fields.NameField(required=False)
    vm_uid = fields.TextField(read_only=True)
    status = ClaimStatusSerializer(source="*", read_only=True)
    pods = fields.ListField(
        child=fields.TextField(),
        read_only=True,
        help_text="The pods that run the VM now; status.owner_pod may be older.",
    )
    state = fields.ChoiceField(states.STATES, read_only=True)
    next_step = fields.TextField(read_only=True)
    finalizers = fields.ListField(child=fields.TextField(), read_only=True)
    deleted_at = fields.TimeField(read_only=True, allow_null=True)
    follows_cluster = fields.FlagField(read_only=True)
    in_cluster = fields.FlagField(read_only=True)
    given_back_at = fields.TimeField(source="gone_at", read_only=True, allow_null=True)
    note = fields.DescriptionField(required=False)
    duplicates = fields.ListField(child=entries.DuplicateSerializer(), read_only=True)
    created_at = fields.TimeField(read_only=True)

    # Read in the order of the fields: the cluster of the network, then the network of the addresses.
    _cluster: Cluster | None = None
    _network: Network | None = None

    def validate_cluster(self, cluster: Cluster) -> Cluster:
        self._cluster = cluster
        return cluster

    def validate_network(self, name: object) -> Network:
        if not isinstance(name, str):
            raise errors.InvalidInput.for_field("", "wrong_type", "must be a text", name)
        rows = scoped.rows(self.context["request"], Network).select_related("cluster")
        if self._cluster is not None and "\0" not in name:
            self._network = rows.filter(cluster=self._cluster, name=name).first()
        if self._network is None:
            message = "the cluster has no such network"
            raise errors.InvalidInput.for_field("", "unknown_network", message, name)
        return self._network

    def validate_ips_requested(self, ips: object) -> tuple[str, ...]:
        if ips is None or self._network is None:
            return ()
        return ipamclaims.parse_ips(ips, self._network, field="")

    def report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        super().report_names(data, report)
        if not self.partial and data.get("vm") is None and data.get("name") is None:
            report.add("vm", "required", "name the VM")


class IPAMClaimChangeSerializer(IPAMClaimSerializer):
    """A change of a claim; null clears a request, and the fields that never change may be repeated."""

    example = {"note": "For the migration"}

    ips_requested = fields.ParsedField(schema=_IPS_SCHEMA, required=False, allow_null=True)

    def run_validation(self, data: Any = empty) -> Any:
        if not isinstance(data, dict) or not data:
            return super().run_validation(data)
        claim: IPAMClaim = self.context["row"]
        fixed = {
            "cluster": claim.cluster.name,
            "namespace": claim.namespace,
            "name": claim.name,
            "network": claim.network.name,
            "vm": claim.vm,
            "interface": claim.interface,
        }
        for name, current in fixed.items():
            if name in data and data[name] != current:
                raise errors.ImmutableInUse(f"The {name} of a claim cannot be changed.")
        self._network = claim.network
        changes = {name: value for name, value in data.items() if name not in fixed}
        return self.validate(self.to_internal_value(changes))

    def validate_mac(self, mac: str | None) -> str:
        return mac or ""


class ClaimReleaseSerializer(Serializer):
    """Why the addresses of a claim are released."""

    reason = fields.ReasonField()


class VMManifestSerializer(Serializer):
    """The VM of a manifest."""

    vm = fields.NameField()
    namespace = fields.NamespaceField()
    mac = fields.TextField(macs.parse_mac, schema=_MAC_SCHEMA, required=False)


_VIEW = ("claims.view_ipamclaim",)


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


class IPAMClaims(scoped.ScopedView, generics.ModelViewSet):
    """IPAMClaims of the namespaces that are visible."""

    # namespaces.require_request checks who may create, change or withdraw a claim; answers contain the claim.
    needs = {"GET": _VIEW, "POST": _VIEW, "PATCH": _VIEW, "DELETE": _VIEW}
    queryset = IPAMClaim.objects.select_related("cluster", "network")
    serializer_class = IPAMClaimSerializer
    change_serializer_class = IPAMClaimChangeSerializer
    filterset_class = IPAMClaimFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {
        "id": ("id",),
        "name": ("name", "id"),
        "vm": ("vm", "id"),
        "address": ("first_address", "id"),
    }
    lookup_url_kwarg = "claim_id"
    row_text = "An IPAMClaim."

    def get_queryset(self) -> QuerySet[Any]:
        rows = states.with_state(super().get_queryset())
        return rows if self.detail else rows.annotate(first_address=FirstAddress("ips"))

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

    def get_object(self) -> IPAMClaim:
        """The row, which the user may change unless the request only reads, or releases it. NotFound, NotAllowed."""
        claim: IPAMClaim = super().get_object()
        if self.action in {"partial_update", "destroy"}:
            namespaces.require_request(self.request.user, claim.cluster_id, claim.namespace)
        return claim

    def check_values(self, values: dict[str, Any], row: IPAMClaim | None = None) -> None:
        if row is None:
            cluster_id = values["network.name"].cluster_id
            namespaces.require_request(self.request.user, cluster_id, values["namespace"])

    @schema.example(
        {
            "cluster": "prod",
            "namespace": "blue",
            "network": "cluster_udn_prod",
            "vm": "vm1",
            "mac": "02:03:04:05:06:07",
            "ips_requested": ["10.0.0.5/24"],
        },
        "the decentralized form of the enhancement proposal",
    )
    def perform_create(self, values: dict[str, Any]) -> Any:
        """Create an IPAMClaim; a managed cluster gets it."""
        values.pop("cluster")  # that of the network
        network, ips = values.pop("network.name"), values.pop("ips_requested", ())
        spec = ClaimSpec(network=network, ips=ips, **values)
        scope = namespaces.request_scope(self.request.user)
        claim = ipamclaims.create(spec, author=self.author(), scope=scope)
        return self.get_queryset().get(pk=claim.pk)

    def perform_update(self, claim: IPAMClaim, values: dict[str, Any]) -> Any:
        """Change the request of a claim without addresses, or its note."""
        changes = ipamclaims.ClaimChange(
            mac=values.get("mac"), ips=values.get("ips_requested"), note=values.get("note")
        )
        scope = namespaces.request_scope(self.request.user)
        ipamclaims.change(claim.pk, changes, author=self.author(), scope=scope)
        return self.get_object()

    def perform_destroy(self, claim: IPAMClaim) -> None:
        """Withdraw a claim that no cluster has."""
        ipamclaims.delete(claim.pk, author=self.author())

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @scoped.MANIFEST_FORMAT
    @action(detail=True, url_name="ipamclaim-manifest")
    def manifest(self, request: Request, claim_id: int) -> generics.Answer:
        """An IPAMClaim as the Kubernetes object that it is or would be."""
        output_format = self.query_values()["format"]
        return scoped.manifest_answer(ipamclaims.manifest(self.get_object()), output_format)

    @extend_schema(request=ClaimReleaseSerializer)
    @generics.post_action("claims.delete_ipamclaim", idempotent=True, url_name="ipamclaim-release")
    def release(self, request: Request, claim_id: int) -> Response:
        """Release the addresses of a leaked claim, with a reason."""
        claim = self.get_object()
        author = self.author(self.read(request, ClaimReleaseSerializer)["reason"])

        def work() -> dict[str, Any]:
            ipamclaims.release(claim.pk, author=author)
            return self.represent(self.get_object())

        return self.once(request, work)


class VMManifest(generics.GenericView):
    """The manifest of a VM. The POST writes nothing, so it needs only the permission to view."""

    needs = {"POST": ("claims.view_network",)}
    posts_a_question = True
    serializer_class = VMManifestSerializer

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @scoped.MANIFEST_FORMAT
    def post(self, request: Request, network_id: int) -> generics.Answer:
        """The VirtualMachine with the annotation by which it gets its addresses."""
        output_format = self.query_values()["format"]
        network = scoped.get_row(request, Network, network_id)
        values = self.read(request)
        scope = scoped.request_scope(request)
        scope.require(network.cluster_id, values["namespace"])
        manifest = vm_lookup.vm_manifest(network, **{"mac": None, **values}, scope=scope)
        return scoped.manifest_answer(manifest, output_format)
