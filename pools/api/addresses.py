"""addresses/{ip}/, instances/{id}/network/ and dns/: holders of an address, network of an instance, names as zone files."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.clusters.clusters import ObservedCIDRSerializer
from pools.api.history import TenureSerializer
from pools.core import addresses, block_fields, dns_names, errors, holders
from pools.core.dns_names import DEFAULT_TTL
from pools.models import Block, BlockState, Category, ObservedCIDR
from pools.platform import database
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation
from pools.register import dns
from pools.register.history import addresses as history_addresses

_MOST_OBSERVED = 1000


class AddressSerializer(Representation):
    """Who holds an address, or held it at a time, in each address space; and all who ever held it.

    `observed_cidrs` are up to 1,000 CIDRs that objects of clusters use now and that contain the address,
    the narrowest first; null with `at`, and for users who must not see them.
    """

    address = fields.AddressField()
    at = fields.TimeField(allow_null=True)
    matches = fields.ListField(child=TenureSerializer())
    history = fields.ListField(child=TenureSerializer())
    observed_cidrs = fields.ListField(child=ObservedCIDRSerializer(), allow_null=True)


class InstanceNetworkSerializer(Representation):
    """The network configuration that the runtime of the instance applies."""

    overlay_ipv6 = serializers.SerializerMethodField()
    gateway_ipv6 = fields.AddressField(source="space.cluster.instance_gateway")
    mtu = fields.IntegerField(source="space.cluster.instance_mtu")
    dns = fields.ListField(child=fields.AddressField(), source="space.cluster.instance_dns")

    def get_overlay_ipv6(self, block: Block) -> str:
        return block_fields.host_address(str(block.cidr)) or str(block.cidr)


class Address(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = AddressSerializer

    @filters.parameters(
        cluster=filters.Filter(lookups.current_or_former_cluster_id, help_text="Name or id."),
        at=filters.Filter(
            history_addresses.parse_past_time,
            schema={"format": "date-time"},
            help_text="Who held the address then. Default: now.",
        ),
    )
    def get(self, request: Request, address: str) -> Response:
        """The holders of an address, now or at a time, its history, and the objects of clusters that use it."""
        values = self.query_values(is_complete=False)
        cluster, timestamp = values["cluster"], values["at"]
        with self.parameters.report.collect():
            parsed = addresses.parse_address(address, field="address")
        self.parameters.raise_problems()
        matches, tenures = history_addresses.find_holders(parsed, cluster_id=cluster, at=timestamp)
        may_see_observed = request.user.has_perm("pools.view_observedcidr")
        return self.respond(
            {
                "address": parsed,
                "at": timestamp,
                "matches": matches,
                "history": tenures,
                # The past of observed CIDRs is not stored: null, because unknown is not absent.
                "observed_cidrs": (
                    _observed_cidrs(parsed, cluster)
                    if timestamp is None and may_see_observed
                    else None
                ),
            }
        )


def _observed_cidrs(address: addresses.Address, cluster_id: int | None) -> QuerySet[ObservedCIDR]:
    rows = ObservedCIDR.objects.filter(cidr__net_contains_or_equals=str(address))
    if cluster_id is not None:
        rows = rows.filter(space__cluster=cluster_id)
    return rows.select_related("space__cluster").order_by("-cidr", "id")[:_MOST_OBSERVED]


class InstanceNetwork(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.filter(
        holder_kind="instance", category=Category.INSTANCE, state=BlockState.HELD, family=6
    )
    serializer_class = InstanceNetworkSerializer

    @filters.parameters(cluster=filters.Filter(lookups.cluster, help_text="Name or id."))
    def get(self, request: Request, instance: str) -> Response:
        """The network configuration of an instance: its overlay address, gateway, MTU and DNS."""
        cluster = self.query_values()["cluster"]
        blocks = self.get_queryset().filter(holder_id=instance)
        if cluster is not None:
            blocks = blocks.filter(space__cluster=cluster)
        instance_blocks = list(blocks.select_related("space__cluster").order_by("id")[:2])
        if not instance_blocks:
            raise errors.NotFound(f"The instance {instance} holds no overlay address.")
        if len(instance_blocks) > 1:
            message = "several clusters have such an instance: name one"
            raise errors.InvalidInput.for_field("cluster", "required", message)
        return self.respond(instance_blocks[0])


_LINES = 500
_LIST = {"type": "array", "items": {"type": "string"}}
_ENDPOINTS = OpenApiResponse(OpenApiTypes.OBJECT, description="A List of DNSEndpoints.")
_ALL = {
    "ttl": filters.number(0, (1 << 31) - 1, help_text=f"Seconds; {DEFAULT_TTL} by default."),
    "cluster": filters.Filter(lookups.cluster, help_text="Only names of this cluster: name or id."),
}


class _DNSView(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = Representation

    def records_and_ttl(self, values: dict[str, Any]) -> tuple[Iterator[dns_names.Record], int]:
        """The records that the parameters choose, and the TTL of all of them."""
        cluster, ttl = values["cluster"], values["ttl"]
        return dns.records(cluster and cluster.pk), DEFAULT_TTL if ttl is None else ttl


class ZoneFile(_DNSView):
    @extend_schema(responses={(200, "text/dns"): OpenApiTypes.STR})
    @filters.parameters(
        zone=filters.Filter(
            dns_names.parse_zone, required=True, help_text="example.org, 10.in-addr.arpa"
        ),
        ns=filters.Filter(
            dns_names.parse_name,
            repeated=True,
            required=True,
            schema=_LIST,
            help_text="The primary server first.",
        ),
        cidr=filters.Filter(
            dns_names.parse_classless, help_text="Of a classless reverse zone: 192.0.2.64/26."
        ),
        serial=filters.number(1, (1 << 32) - 1, help_text="Else seconds since 1970."),
        **_ALL,
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The zone file of a zone (RFC 1035): its A and AAAA records, or the PTR records of a reverse zone."""
        values = self.query_values()
        name, servers, cidr = values["zone"], values["ns"], values["cidr"]
        serial = values["serial"] or int(database.now().timestamp())
        if not name or not servers or not all(servers):
            raise errors.InvalidInput.for_field("ns" if name else "zone", "required", "is required")
        if cidr is None:
            dns_names.require_addresses(name)
        records, ttl = self.records_and_ttl(values)
        lines = dns_names.zone_lines(records, name, servers, serial=serial, ttl=ttl, cidr=cidr)
        return _stream(lines, "text/dns; charset=utf-8")


class Endpoints(_DNSView):
    @extend_schema(responses={200: _ENDPOINTS})
    @filters.parameters(
        namespace=filters.Filter(holders.parse_label, help_text="`default` by default."), **_ALL
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """DNSEndpoints of externaldns.k8s.io/v1alpha1, one for each name, for `kubectl apply -f -`."""
        values = self.query_values()
        records, ttl = self.records_and_ttl(values)
        namespace = values["namespace"] or "default"
        lines = dns_names.endpoint_lines(records, namespace=namespace, ttl=ttl)
        return _stream(lines, "application/json")


def _stream(lines: Iterator[str], content_type: str) -> StreamingHttpResponse:
    # Many lines at once: a chunk for each would be a packet.
    chunks = iter(lambda: "".join(islice(lines, _LINES)), "")
    return StreamingHttpResponse(chunks, content_type=content_type)
