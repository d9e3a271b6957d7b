"""Endpoints of IPPools: the addresses of MAC addresses on a network, with ETag and If-Match.

A VM owner sees that an IPPool exists, but not the fields about all namespaces.
"""

from typing import Any

from django.db.models import Count
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.api import entries, scoped
from claims.api.entries import ConditionSerializer, DuplicateCountsSerializer
from claims.entries import entries as entry_services, ippools
from claims.models import Entry, IPAMClaim, IPPool, Network
from pools.core import errors
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer


class AssociatedNADSerializer(Representation):
    """A NetworkAttachmentDefinition of the network of an IPPool."""

    namespace = fields.TextField()
    name = fields.TextField()


class IPPoolProblemSerializer(Representation):
    """A part of the object in the cluster that is not valid."""

    mac = fields.TextField()
    code = fields.TextField()
    message = fields.TextField()


class IPPoolSerializer(Serializer):
    """An IPPool; a network has at most one."""

    id = fields.IntegerField(read_only=True)
    cluster = scoped.ClusterField()
    name = fields.NameField()
    network = fields.IntegerField(source="network_id", read_only=True)
    network_name = fields.IdentifierField(
        source="network.name", help_text="The logical name of the network."
    )
    note = fields.DescriptionField(required=False)
    entries = fields.IntegerField(source="entry_count", read_only=True)
    conditions = fields.ListField(
        child=ConditionSerializer(), source="shown_conditions", read_only=True
    )
    associated_nads = fields.ListField(child=AssociatedNADSerializer(), read_only=True)
    duplicates = DuplicateCountsSerializer(read_only=True, allow_null=True)
    problems = fields.ListField(
        child=IPPoolProblemSerializer(), source="shown_problems", read_only=True
    )
    follows_cluster = fields.FlagField(read_only=True)
    gone_at = fields.TimeField(read_only=True, allow_null=True)
    created_at = fields.TimeField(read_only=True)
    version = fields.IntegerField(source="shown_version", read_only=True, allow_null=True)


class IPPoolChangeSerializer(IPPoolSerializer):
    """A change of an IPPool; the fields that never change may be repeated."""

    example = {"note": "For the migration"}

    def run_validation(self, data: Any = empty) -> Any:
        if not isinstance(data, dict) or not data:
            return super().run_validation(data)
        ippool: IPPool = self.context["row"]
        fixed = {"cluster": ippool.cluster.name, "network_name": ippool.network.name}
        for name, current in fixed.items():
            if data.get(name) not in (None, current):
                raise errors.ImmutableInUse(f"The {name} of an IPPool cannot be changed.")
        changes = {name: value for name, value in data.items() if value != fixed.get(name, empty)}
        return self.validate(self.to_internal_value(changes))


class MACAddressesSerializer(Representation):
    """The addresses of a MAC address, and whether its entry or its claim has them."""

    mac = fields.TextField(schema=entries.MAC_SCHEMA)
    ips = fields.ParsedField(schema=entries.IPS_SCHEMA)
    source = fields.ChoiceField(("ippool", "ipamclaim"))
    vm = fields.TextField(source="owner.vm")
    namespace = fields.TextField(source="owner.namespace")


class IPPoolFilter(scoped.ScopedFilterSet):
    name = filters.Filter(help_text="The exact name.")
    network_name = filters.Filter(field_name="network__name", help_text="The logical name.")


class IPPools(scoped.ScopedView, generics.ModelViewSet):
    """IPPools of the networks that are visible."""

    queryset = IPPool.objects.select_related("cluster", "network")
    serializer_class = IPPoolSerializer
    change_serializer_class = IPPoolChangeSerializer
    filterset_class = IPPoolFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {"id": ("id",), "name": ("name", "id")}
    versioned = True
    lookup_url_kwarg = "ippool_id"
    row_text = "An IPPool."

    def load(self, rows: list[Any]) -> None:
        """Read what is shown beside the columns; the fields about all namespaces only for who sees all."""
        scope = scoped.request_scope(self.request)
        nads = ippools.associated_nads(rows, scope)
        visible_entries = namespaces.visible(Entry.objects.filter(ippool__in=rows), scope)
        counts = dict(visible_entries.order_by().values_list("ippool").annotate(Count("pk")))
        for ippool in rows:
            ippool.entry_count = counts.get(ippool.pk, 0)
            ippool.associated_nads = nads[ippool.pk]
            ippool.shown_conditions, ippool.shown_problems = [], []
            ippool.duplicates = ippool.shown_version = None
            if scope.everything:
                ippool.shown_conditions = ippool.conditions
                ippool.shown_problems = ippool.problems
                ippool.duplicates = {"mac": ippool.duplicate_macs, "ip": ippool.duplicate_ips}
                ippool.shown_version = ippool.version

    @schema.example(
        {"cluster": "prod", "name": "prod-network", "network_name": "cluster_udn_prod"},
        "of a network",
    )
    def perform_create(self, values: dict[str, Any]) -> Any:
        """Create an IPPool; a network has one."""
        cluster, network = values["cluster"], values["network.name"]
        note, author = values.get("note", ""), self.author()
        return ippools.create(cluster, values["name"], network, note=note, author=author)

    def perform_update(self, ippool: IPPool, values: dict[str, Any]) -> Any:
        """Change the name or the note of an IPPool."""
        ippools.change(
            ippool.pk,
            name=values.get("name"),
            note=values.get("note"),
            author=self.author(),
            version=self.required_version(ippool),
        )
        return self.get_object()

    def perform_destroy(self, ippool: IPPool) -> None:
        """Delete an IPPool with its entries."""
        ippools.delete(ippool.pk, author=self.author(), version=self.required_version(ippool))

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @scoped.MANIFEST_FORMAT
    @action(
        detail=True, url_name="ippool-manifest",
        needs={"GET": ("claims.view_ippool", "claims.view_entry")},
    )  # fmt: skip
    def manifest(self, request: Request, ippool_id: int) -> generics.Answer:
        """An IPPool as a Kubernetes object."""
        output_format = self.query_values()["format"]
        everything = scoped.request_scope(request).everything
        rows = scoped.rows(request, Entry)
        manifest = ippools.manifest(self.get_object(), rows=rows, status=everything)
        return scoped.manifest_answer(manifest, output_format)


class AddressesForMAC(generics.GenericView):
    """getIPsForMAC of the enhancement proposal: by the entry or the claim of a MAC address."""

    needs = {"GET": ("claims.view_network", "claims.view_entry")}
    serializer_class = MACAddressesSerializer

    @filters.parameters(
        mac=filters.Filter(entries.parse_any_mac, required=True, help_text="A MAC address.")
    )
    def get(self, request: Request, network_id: int) -> Response:
        """The addresses of a MAC address on a network."""
        mac, report = self.query_values(is_complete=False)["mac"], self.parameters.report
        if mac is None and not report.problems:
            report.add("mac", "required", "name a MAC address")
        self.parameters.raise_problems()
        network = scoped.get_row(request, Network, network_id)
        return self.respond(_addresses_for_mac(request, network, mac or ""))


def _addresses_for_mac(request: Request, network: Network, mac: str) -> dict[str, Any]:
    entry = entry_services.find_by_mac(scoped.rows(request, Entry), network.pk, mac)
    if entry is not None:
        return {"mac": mac, "ips": entry.ips, "source": "ippool", "owner": entry}
    claims = scoped.rows(request, IPAMClaim).filter(network=network, mac=mac, gone_at=None)
    for claim in claims.order_by("pk"):
        if ips := claim.ips or claim.ips_requested:
            return {"mac": mac, "ips": ips, "source": "ipamclaim", "owner": claim}
    not_found = errors.NotFound(f"The network {network.name} has no addresses for {mac}.")
    not_found.code = "mac_not_found"
    raise not_found
