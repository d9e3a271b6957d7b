"""`manage.py dns zone-file ZONE --ns NAME` and `manage.py dns endpoints`: the names of addresses for DNS servers."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.api.dns import list_lines
from pools.core import addresses, dns_names, errors, holders
from pools.core.dns_names import DEFAULT_TTL, Zone
from pools.models import Cluster
from pools.register.dns import names


class Command(base.BaseCommand):
    help = "Print the DNS names of addresses: as a zone file, or as DNSEndpoints for ExternalDNS."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        zone = verbs.add_parser("zone-file", help="print the zone file of a zone (RFC 1035)")
        zone.add_argument("zone", help="example.org, 10.in-addr.arpa, 8.b.d.0.1.0.0.2.ip6.arpa, …")
        zone.add_argument(
            "--ns", action="append", required=True, help="name server; repeat it for more"
        )
        zone.add_argument("--cidr", help="of a classless reverse zone (RFC 2317): 192.0.2.64/26")
        zone.add_argument(
            "--serial", type=int, help="else the time of the export in seconds since 1970"
        )
        endpoints = verbs.add_parser("endpoints", help="print a List of DNSEndpoints in JSON")
        endpoints.add_argument("--namespace", default="default", help="of the objects")
        for verb in (zone, endpoints):
            verb.add_argument("--cluster", help="only names of this cluster")
            verb.add_argument("--ttl", type=int, default=DEFAULT_TTL, help="seconds")

    def handle(self, **options: Any) -> None:
        if not 0 <= options["ttl"] < 1 << 31:
            raise base.CommandError("--ttl is 0 to 2147483647 seconds.")
        records = names.records(cluster_id=_cluster_id(options["cluster"]))
        try:
            if options["verb"] == "zone-file":
                lines = dns_names.zone_lines(_zone(options), records)
            else:
                namespace = holders.parse_name(
                    options["namespace"], field="namespace", kind="label"
                )
                lines = list_lines(
                    dns_names.endpoint_manifests(records, namespace=namespace, ttl=options["ttl"])
                )
        except errors.InvalidInput as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        for line in lines:
            self.stdout.write(line, ending="")


def _zone(options: dict[str, Any]) -> Zone:
    serial = options["serial"]
    if serial is not None and not 0 < serial < 1 << 32:
        raise base.CommandError("--serial is 1 to 4294967295.")
    cidr = options["cidr"]
    return Zone(
        dns_names.parse_zone(options["zone"], classless=bool(cidr)),
        [dns_names.parse_nameserver(name) for name in options["ns"]],
        serial or names.serial(),
        options["ttl"],
        dns_names.check_classless(addresses.parse_cidr(cidr, field="cidr")) if cidr else None,
    )


def _cluster_id(name: str | None) -> int | None:
    if name is None:
        return None
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise base.CommandError(f"There is no cluster {name}.")
    return cluster.pk
