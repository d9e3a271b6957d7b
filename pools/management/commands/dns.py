"""`manage.py dns zone-file ZONE --ns NAME`: the zone file of a zone, as `dns/zone-file/` of REST answers it."""

from __future__ import annotations

from typing import Any

from django.core.management import base

from pools.api.addresses import parse_serial, parse_ttl
from pools.core import dns_names, errors
from pools.models import Cluster
from pools.platform import database
from pools.register import dns


class Command(base.BaseCommand):
    help = "Print the names of addresses as the zone file of a zone (RFC 1035)."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("verb", choices=["zone-file"])
        parser.add_argument(
            "zone", help="example.org, 10.in-addr.arpa, 8.b.d.0.1.0.0.2.ip6.arpa, …"
        )
        parser.add_argument("--ns", action="append", required=True, help="name server; repeatable")
        parser.add_argument("--cidr", help="of a classless reverse zone (RFC 2317)")
        parser.add_argument("--serial", help="else the seconds since 1970")
        parser.add_argument("--ttl", default=str(dns_names.DEFAULT_TTL), help="seconds")
        parser.add_argument("--cluster", help="only names of this cluster")

    def handle(self, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if options["cluster"] is not None and cluster is None:
            raise base.CommandError(f"There is no cluster {options['cluster']}.")
        now, cidr = str(int(database.now().timestamp())), options["cidr"]
        try:
            zone = dns_names.Zone(
                dns_names.parse_zone(options["zone"], "zone"),
                [dns_names.parse_name(name, "ns") for name in options["ns"]],
                parse_serial(options["serial"] or now, "serial"),
                parse_ttl(options["ttl"], "ttl"),
                dns_names.parse_classless(cidr, "cidr") if cidr else None,
            )
            for line in zone.lines(dns.records(cluster.pk if cluster else None)):
                self.stdout.write(line, ending="")
        except errors.InvalidInput as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
