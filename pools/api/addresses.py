"""addresses/{ip}/, instances/{id}/network/ and dns/: holders of an address, network of an instance, names as zone files."""

from collections.abc import Iterator
from itertools import islice

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
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
from pools.platform.rest import fields, generics, query
from pools.platform.rest.serializers import Representation
from pools.register import dns
from pools.register.history import addresses as history_addresses

_CLUSTER = OpenApiParameter("cluster", str, description="Name or id.")
_TIME = {"type": "string", "format": "date-time"}
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

    @extend_schema(
        parameters=[
            _CLUSTER,
            OpenApiParameter("at", _TIME, description="Who held the address then. Default: now."),
        ]
    )
    def get(self, request: Request, address: str) -> Response:
        """The holders of an address, now or at a time, its history, and the objects of clusters that use it."""
        cluster = self.parameters.parse("cluster", lookups.current_or_former_cluster_id)
        timestamp = self.parameters.parse("at", history_addresses.parse_past_time)
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

    @extend_schema(parameters=[_CLUSTER])
    def get(self, request: Request, instance: str) -> Response:
        """The network configuration of an instance: its overlay address, gateway, MTU and DNS."""
        cluster = self.parameters.parse("cluster", lookups.cluster)
        self.parameters.raise_problems()
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


_parse_ttl = query.integer(0, (1 << 31) - 1)
_parse_serial = query.integer(1, (1 << 32) - 1)
_LINES = 500
_LIST = {"type": "array", "items": {"type": "string"}}
_ENDPOINTS = OpenApiResponse(OpenApiTypes.OBJECT, description="A List of DNSEndpoints.")
_ALL = [
    OpenApiParameter("ttl", int, description=f"Seconds; {DEFAULT_TTL} by default."),
    OpenApiParameter("cluster", description="Only names of this cluster: name or id."),
]


class _DNSView(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = Representation

    def selection(self) -> tuple[int, int | None]:
        """Return the TTL and the id of the cluster. Raises InvalidInput for all parameters."""
        ttl = self.parameters.parse("ttl", _parse_ttl)
        cluster = self.parameters.parse("cluster", lookups.cluster)
        self.parameters.raise_problems()
        return DEFAULT_TTL if ttl is None else ttl, cluster.pk if cluster else None


class ZoneFile(_DNSView):
    @extend_schema(
        parameters=[
            OpenApiParameter("zone", required=True, description="example.org, 10.in-addr.arpa"),
            OpenApiParameter("ns", _LIST, required=True, description="The primary server first."),
            OpenApiParameter("cidr", description="Of a classless reverse zone: 192.0.2.64/26."),
            OpenApiParameter("serial", int, description="Else seconds since 1970."),
            *_ALL,
        ],
        responses={(200, "text/dns"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The zone file of a zone (RFC 1035): its A and AAAA records, or the PTR records of a reverse zone."""
        parameters = self.parameters
        name = parameters.parse("zone", dns_names.parse_zone)
        servers = parameters.parse_each("ns", dns_names.parse_name)
        cidr = parameters.parse("cidr", dns_names.parse_classless)
        serial = parameters.parse("serial", _parse_serial) or int(database.now().timestamp())
        ttl, cluster = self.selection()
        if not name or not servers or not all(servers):
            raise errors.InvalidInput.for_field("ns" if name else "zone", "required", "is required")
        if cidr is None:
            dns_names.require_addresses(name)
        records = dns.records(cluster)
        lines = dns_names.zone_lines(records, name, servers, serial=serial, ttl=ttl, cidr=cidr)
        return _stream(lines, "text/dns; charset=utf-8")


class Endpoints(_DNSView):
    @extend_schema(
        parameters=[OpenApiParameter("namespace", description="`default` by default."), *_ALL],
        responses={200: _ENDPOINTS},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """DNSEndpoints of externaldns.k8s.io/v1alpha1, one for each name, for `kubectl apply -f -`."""
        namespace = self.parameters.parse("namespace", holders.parse_label) or "default"
        ttl, cluster = self.selection()
        lines = dns_names.endpoint_lines(dns.records(cluster), namespace=namespace, ttl=ttl)
        return _stream(lines, "application/json")


def _stream(lines: Iterator[str], content_type: str) -> StreamingHttpResponse:
    # Many lines at once: a chunk for each would be a packet.
    chunks = iter(lambda: "".join(islice(lines, _LINES)), "")
    return StreamingHttpResponse(chunks, content_type=content_type)
