"""dns/: the names of addresses as a zone file, and as DNSEndpoints for ExternalDNS."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.core import dns_names, holders
from pools.core.dns_names import DEFAULT_TTL, Record, Zone
from pools.models import Block
from pools.platform.rest import generics, query
from pools.platform.rest.serializers import Representation
from pools.register import dns

parse_ttl = query.integer(0, (1 << 31) - 1)
parse_serial = query.integer(1, (1 << 32) - 1)
_COMMON = [
    OpenApiParameter("ttl", int, description=f"Seconds; {DEFAULT_TTL} by default."),
    OpenApiParameter("cluster", str, description="Only names of this cluster: name or id."),
]
_ZONE_FILE = [
    OpenApiParameter(
        "zone", required=True, description="Such as example.org or 8.b.d.0.1.0.0.2.ip6.arpa."
    ),
    OpenApiParameter(
        "ns",
        {"type": "array", "items": {"type": "string"}},
        required=True,
        description="Name servers, the primary one first: `ns=a.example.org&ns=b.example.org`.",
    ),
    OpenApiParameter("cidr", description="Of a classless reverse zone (RFC 2317): 192.0.2.64/26."),
    OpenApiParameter("serial", int, description="Else seconds since 1970."),
]


class _DNSView(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = Representation

    def ttl(self) -> int:
        ttl = self.parameters.parse("ttl", parse_ttl)
        return DEFAULT_TTL if ttl is None else ttl

    def records(self) -> Iterator[Record]:
        """Return the records of the cluster that the request names, or of all. Raises InvalidInput."""
        cluster = self.parameters.parse("cluster", lookups.cluster)
        self.parameters.raise_problems()
        return dns.records(cluster_id=cluster.pk if cluster else None)


class ZoneFile(_DNSView):
    @extend_schema(
        parameters=[*_ZONE_FILE, *_COMMON], responses={(200, "text/dns"): OpenApiTypes.STR}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The zone file of a zone (RFC 1035): its A and AAAA records, or the PTR records of a reverse zone."""
        parameters = self.parameters
        name, cidr = parameters.text("zone") or "", parameters.text("cidr") or ""
        nameservers = parameters.parse_each("ns", lambda text, _: text) or []
        serial = parameters.parse("serial", parse_serial) or dns.serial()
        ttl, records = self.ttl(), self.records()
        zone = Zone.parse(name, nameservers, serial=serial, ttl=ttl, cidr=cidr)
        lines = dns.chunks(dns_names.zone_lines(zone, records))
        return StreamingHttpResponse(lines, content_type="text/dns; charset=utf-8")


class Endpoints(_DNSView):
    @extend_schema(
        parameters=[
            OpenApiParameter("namespace", description="Of the objects; `default` by default."),
            *_COMMON,
        ],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="A List of DNSEndpoints.")
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """DNSEndpoints of externaldns.k8s.io/v1alpha1, one for each name, for `kubectl apply -f -`."""
        namespace = self.parameters.parse("namespace", holders.parse_label) or "default"
        ttl, records = self.ttl(), self.records()
        lines = dns_names.endpoint_lines(records, namespace=namespace, ttl=ttl)
        return StreamingHttpResponse(dns.chunks(lines), content_type="application/json")
