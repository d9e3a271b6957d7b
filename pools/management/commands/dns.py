"""`manage.py dns zone-file ZONE --ns NAME` and `manage.py dns endpoints`: the names of addresses for DNS servers."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.api.dns import parse_serial, parse_ttl
from pools.core import dns_names, errors, holders
from pools.core.dns_names import DEFAULT_TTL, Zone
from pools.models import Cluster
from pools.register import dns


class Command(base.BaseCommand):
    help = "Print the DNS names of addresses: as a zone file, or as DNSEndpoints for ExternalDNS."

    def add_arguments(self, parser: base.CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        zone = verbs.add_parser("zone-file", help="print the zone file of a zone (RFC 1035)")
        zone.add_argument("zone", help="example.org, 10.in-addr.arpa, 8.b.d.0.1.0.0.2.ip6.arpa, …")
        zone.add_argument("--ns", action="append", required=True, help="name server; repeatable")
        zone.add_argument("--cidr", default="", help="of a classless reverse zone (RFC 2317)")
        zone.add_argument("--serial", help="else the time of the export in seconds since 1970")
        endpoints = verbs.add_parser("endpoints", help="print a List of DNSEndpoints in JSON")
        endpoints.add_argument("--namespace", default="default", help="of the objects")
        for verb in (zone, endpoints):
            verb.add_argument("--cluster", help="only names of this cluster")
            verb.add_argument("--ttl", default=str(DEFAULT_TTL), help="seconds")

    def handle(self, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if options["cluster"] is not None and cluster is None:
            raise base.CommandError(f"There is no cluster {options['cluster']}.")
        records = dns.records(cluster_id=cluster.pk if cluster else None)
        try:
            ttl = parse_ttl(options["ttl"], "ttl")
            if options["verb"] == "zone-file":
                given = options["serial"]
                serial = dns.serial() if given is None else parse_serial(given, "serial")
                zone = Zone.parse(
                    options["zone"], options["ns"], serial=serial, ttl=ttl, cidr=options["cidr"]
                )
                lines = dns_names.zone_lines(zone, records)
            else:
                namespace = holders.parse_label(options["namespace"], field="namespace")
                lines = dns_names.endpoint_lines(records, namespace=namespace, ttl=ttl)
        except errors.InvalidInput as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        for chunk in dns.chunks(lines):
            self.stdout.write(chunk, ending="")
