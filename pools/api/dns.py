"""dns/: the names of addresses as a zone file, and as DNSEndpoints for ExternalDNS."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.core import addresses, dns_names, holders
from pools.core.dns_names import DEFAULT_TTL, Zone
from pools.models import Block
from pools.platform.rest import generics, query
from pools.platform.rest.serializers import Representation
from pools.register.dns import names

_CLUSTER = OpenApiParameter("cluster", str, description="Only names of this cluster: name or id.")
_TTL = OpenApiParameter("ttl", int, description=f"Seconds; {DEFAULT_TTL} by default.")
_parse_ttl = query.integer(0, (1 << 31) - 1)
_parse_serial = query.integer(1, (1 << 32) - 1)


def _parse_classless(value: str, name: str) -> IPv4Network:
    return dns_names.check_classless(addresses.parse_cidr(value, field=name), name)


class _DNSView(generics.GenericView):
    needs = {"GET": ("pools.view_block",)}
    queryset = Block.objects.all()
    serializer_class = Representation

    def records(self) -> Iterator[dns_names.Record]:
        """Return the records of the cluster that the request names, or of all."""
        cluster = self.parameters.parse("cluster", lookups.cluster)
        self.parameters.raise_problems()
        return names.records(cluster_id=cluster.pk if cluster else None)

    def ttl(self) -> int:
        ttl = self.parameters.parse("ttl", _parse_ttl)
        return DEFAULT_TTL if ttl is None else ttl


class ZoneFile(_DNSView):
    @extend_schema(
        parameters=[
            OpenApiParameter(
                "zone",
                str,
                required=True,
                description="Such as example.org, 10.in-addr.arpa or 8.b.d.0.1.0.0.2.ip6.arpa.",
            ),
            OpenApiParameter(
                "ns",
                {"type": "array", "items": {"type": "string"}},
                required=True,
                description="Name servers, the primary one first: `ns=a.example.org&ns=b.example.org`.",
            ),
            OpenApiParameter(
                "cidr",
                str,
                description="Of a classless reverse zone (RFC 2317), such as 192.0.2.64/26.",
            ),
            OpenApiParameter(
                "serial", int, description="Else the time of the export in seconds since 1970."
            ),
            _TTL,
            _CLUSTER,
        ],
        responses={(200, "text/dns"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The zone file of a zone (RFC 1035): its A and AAAA records, or the PTR records of a reverse zone."""
        cidr = self.parameters.parse("cidr", _parse_classless)
        zone_name = self.parameters.parse(
            "zone",
            functools.partial(dns_names.parse_zone, classless="cidr" in request.query_params),
        )
        nameservers = self.parameters.parse_each("ns", dns_names.parse_nameserver)
        serial = self.parameters.parse("serial", _parse_serial)
        ttl = self.ttl()
        for name, value in (("zone", zone_name), ("ns", nameservers)):
            if value is None and not self.parameters.report.problems:
                self.parameters.report.add(name, "required", "is required")
        records = self.records()
        zone = Zone(zone_name or "", nameservers or [], serial or names.serial(), ttl, cidr)
        return StreamingHttpResponse(
            _chunks(dns_names.zone_lines(zone, records)), content_type="text/dns; charset=utf-8"
        )


class Endpoints(_DNSView):
    @extend_schema(
        parameters=[
            OpenApiParameter("namespace", str, description="Of the objects; `default` by default."),
            _TTL,
            _CLUSTER,
        ],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="A List of DNSEndpoints.")
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """DNSEndpoints of externaldns.k8s.io/v1alpha1, one for each name, for `kubectl apply -f -`."""
        namespace = self.parameters.parse("namespace", holders.parse_label) or "default"
        ttl = self.ttl()
        manifests = dns_names.endpoint_manifests(self.records(), namespace=namespace, ttl=ttl)
        return StreamingHttpResponse(
            _chunks(list_lines(manifests)), content_type="application/json"
        )


def list_lines(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Kubernetes List in JSON."""
    before = '{"apiVersion": "v1", "kind": "List", "items": [\n'
    for manifest in manifests:
        yield before + json.dumps(manifest)
        before = ",\n"
    yield before + "]}\n" if before.startswith("{") else "\n]}\n"


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield the text of many lines at once: a chunk for each would be a packet."""
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) >= 500:
            yield "".join(chunk).encode()
            chunk.clear()
    yield "".join(chunk).encode()
