"""`manage.py dns zone-file ZONE --ns NAME`: the zone file of a zone, as `dns/zone-file/` of REST answers it."""

from typing import Any

from django.core.management import base

from pools.core import dns_names, errors
from pools.models import Cluster
from pools.platform import database
from pools.register import dns


class Command(base.BaseCommand):
    help = "Print the names of addresses as the zone file of a zone (RFC 1035)."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("verb", choices=["zone-file"])
        parser.add_argument("zone", help="example.org, 10.in-addr.arpa, 8.b.d.0.1.0.0.2.ip6.arpa")
        parser.add_argument("--ns", action="append", required=True, help="name server; repeatable")
        parser.add_argument("--cidr", help="of a classless reverse zone (RFC 2317)")
        parser.add_argument("--ttl", type=int, default=dns_names.DEFAULT_TTL, help="seconds")
        parser.add_argument("--cluster", help="only names of this cluster")

    def handle(self, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if options["cluster"] is not None and cluster is None:
            raise base.CommandError(f"There is no cluster {options['cluster']}.")
        try:
            zone = dns_names.parse_zone(options["zone"])
            servers = [dns_names.parse_name(name, "ns") for name in options["ns"]]
            cidr = dns_names.parse_classless(options["cidr"]) if options["cidr"] else None
            if cidr is None:
                dns_names.require_addresses(zone)
        except errors.InvalidInput as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        records = dns.records(cluster.pk if cluster else None)
        serial = int(database.now().timestamp())
        lines = dns_names.zone_lines(
            records, zone, servers, serial=serial, ttl=options["ttl"], cidr=cidr
        )
        for line in lines:
            self.stdout.write(line, ending="")
