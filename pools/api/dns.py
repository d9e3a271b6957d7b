"""dns/: the names of addresses as a zone file, and as DNSEndpoints for ExternalDNS."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.core import dns_names, errors, holders
from pools.core.dns_names import DEFAULT_TTL
from pools.models import Block
from pools.platform import database
from pools.platform.rest import generics, query
from pools.platform.rest.serializers import Representation
from pools.register import dns

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
