"""Registers to import, in the shape of NetBox's demo data: containers of two levels, sites, VRFs, reserved addresses."""

import csv
import io
from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from typing import Any

from pools.models import Cluster, RegisterImport, RegisterRow
from pools.platform import events
from pools.register.imports import drafts, exports, files
from tests import factories

BY = events.Author("tester", "api")

IMPORT_PREFIX = ("prefix", "status", "vrf", "tenant", "role", "description")
TABLE_PREFIX = ("Prefix", "Status", "Children", "VRF", "Utilization", "Tenant", "Scope", "VLAN", "Role", "Description")  # fmt: skip
IMPORT_ADDRESS = ("address", "status", "vrf", "tenant", "dns_name", "description")
TABLE_ADDRESS = ("IP Address", "VRF", "Status", "Role", "Tenant", "Assigned", "DNS Name", "Description")  # fmt: skip


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue().encode()


def demo_prefixes() -> list[tuple[str, str, str, str, str, str]]:
    """Return 1 + 2 containers, 46 leaf prefixes, and 4 leaf prefixes inside one container in each of 5 VRFs."""
    rows = [
        ("10.112.0.0/15", "container", "", "", "", "North America"),
        ("10.112.128.0/17", "container", "", "", "", "Branches"),
    ]
    for site in range(12):
        tenant = f"Branch {site}"
        rows.append((f"10.112.{128 + 4 * site}.0/28", "active", "", tenant, "Management", ""))
        rows += [
            (f"10.112.{129 + 4 * site + number}.0/24", "active", "", tenant, role, "")
            for number, role in enumerate(("Access - Data", "Access - Voice", "Access - Wireless"))
        ]
    rows.append(("192.168.0.0/22", "active", "", "Dunder", "Operations", "Warehouse"))
    for vrf in ("Alpha", "Bravo", "Charlie", "Delta", "Echo"):
        rows.append(("192.168.0.0/20", "container", vrf, "", "", ""))
        rows += [(f"192.168.{4 * n}.0/22", "active", vrf, "", "", "") for n in range(3)]
    return rows


def demo_addresses() -> list[tuple[str, str, str, str, str, str]]:
    """Return 30 addresses without a name for the global table and each VRF; the first of each is reserved."""
    return [
        (f"192.168.0.{n}/22", "reserved" if n == 1 else "active", vrf, "", "", "")
        for vrf in ("", "Alpha", "Bravo", "Charlie", "Delta", "Echo")
        for n in range(1, 31)
    ]


def draft(
    *contents: bytes | str, cluster: Cluster | None = None, **options: object
) -> RegisterImport:
    """Of a new cluster, if none is named."""
    uploads = [
        (f"file{number}.csv", content.encode() if isinstance(content, str) else content)
        for number, content in enumerate(contents, start=1)
    ]
    new = RegisterImport(cluster=cluster or factories.cluster(), **options)
    return drafts.IMPORTS.create(uploads, new, author=BY)


def commit(drafted: RegisterImport, *, skip_bad: bool = False) -> RegisterImport:
    return drafts.IMPORTS.commit(drafted.pk, skip_bad=skip_bad, author=BY)


def undo(committed: RegisterImport) -> RegisterImport:
    return drafts.IMPORTS.undo(committed.pk, author=BY)


def exported(kind: str, cluster: Cluster | None = None) -> list[dict[str, str]]:
    """Return the rows of a file for NetBox's import form."""
    content = exports.write(kind, cluster.pk if cluster else None).decode()
    return list(csv.DictReader(io.StringIO(content)))


def read(*contents: bytes | str, name: str = "", **values: Any) -> files.Reading:
    """Return what is read of files, without a database."""
    reading = files.Reading(**values)
    for content in contents:
        files.read_file(name, content.encode() if isinstance(content, str) else content, reading)
    return reading


def counts(register_import: RegisterImport) -> dict[str, int]:
    return {name: count for name, count in register_import.counts.items() if count}


def rows_of(register_import: RegisterImport) -> list[RegisterRow]:
    return list(register_import.rows.order_by("number"))


def codes(register_import: RegisterImport) -> list[tuple[int, str, str]]:
    """Return (line, status, code) for each reason of the rows."""
    return [
        (row.line, row.status, reason["code"])
        for row in rows_of(register_import)
        for reason in row.reasons
    ]


def many_addresses(count: int) -> tuple[bytes, bytes]:
    """Return a file of /24 prefixes, and one with `count` addresses in them, 250 in each."""
    nets = list(ip_network("10.0.0.0/8").subnets(new_prefix=24))[: -(-count // 250)]
    prefixes = [(str(net), "active", "", "", "", f"net {n}") for n, net in enumerate(nets)]
    hosts = ((n, nets[n // 250][n % 250 + 1]) for n in range(count))
    addresses = (
        (f"{host}/24", "active", "", f"Tenant {n % 7}", f"host{n}.example", "") for n, host in hosts
    )
    return table(IMPORT_PREFIX, prefixes), table(IMPORT_ADDRESS, addresses)
