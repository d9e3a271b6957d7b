"""phpIPAM's exports, templates and database tables, with the headers that its own exporters write.

They are .xls files; people save them as CSV or XLSX.
"""

import pytest

from pools.core import errors
from pools.models import Block, Container, Pool, RegisterRecord, ReservedRange
from tests import factories
from tests.claims.imports import corpus
from tests.register_imports import sources
from tests.register_imports.sources import read, table

# app/admin/import-export/export-subnets.php
SUBNETS = table(
    (
        "Section", "Subnet", "Description", "VLAN", "VLAN Domain", "VRF", "Master Subnet", "Requests", "Host check",
        "Discover", "Cost centre",
    ),
    [
        ("Customers", "Servers (folder)", "Servers", "NA", "", "", "/", 0, 0, 0, ""),
        ("Customers", "10.10.0.0/16", "Business customers", "NA", "", "", "Servers [folder]", 0, 0, 0, ""),
        ("Customers", "10.10.1.0/24", "Customer 1", 100, "default", "", "10.10.0.0/16", 0, 1, 0, "K-7"),
        ("Customers", "10.10.1.0/24", "Lab", "NA", "", "blue", "/", 0, 0, 0, ""),
        ("IPv6", "2001:db8:1::/64", "", "NA", "", "", "/", 0, 0, 0, ""),
    ],
)  # fmt: skip
# app/admin/import-export/export-ipaddr.php
ADDRESSES = table(
    (
        "Section", "IP Address", "Hostname", "Description", "VRF", "Subnet", "MAC", "Owner", "Device", "Note", "Tag",
        "Gateway",
    ),
    [
        ("Customers", "10.10.1.1", "", "", "", "10.10.1.0/24", "", "", "", "", "", "Yes"),
        ("Customers", "10.10.1.3", "server1.example", "Web", "", "10.10.1.0/24", "00:11:22:33:44:55", "IT",
         "sw-1", "rack 4", "", "No"),
        ("Customers", "10.10.1.4", "", "Printer", "", "10.10.1.0/24", "", "IT", "", "", "Offline", "No"),
        ("Customers", "10.10.1.5", "", "", "", "10.10.1.0/24", "", "", "", "", "Reserved", "No"),
        ("Customers", "10.10.1.6", "", "Lease", "", "10.10.1.0/24", "", "", "", "", "DHCP", "No"),
        ("Customers", "10.10.1.3", "lab1", "", "blue", "10.10.1.0/24", "", "", "", "", "", "No"),
        ("IPv6", "2001:db8:1::5", "v6.example", "", "", "2001:db8:1::/64", "", "", "", "", "", "No"),
    ],
)  # fmt: skip


def test_the_exports_of_subnets_and_addresses_are_imported_once() -> None:
    cluster = factories.cluster()
    draft = sources.draft(SUBNETS, ADDRESSES, cluster=cluster)
    assert draft.format == "phpipam"
    assert sources.codes(draft) == []
    notes = [note["message"] for note in draft.notes]
    assert any("folders, which hold no address space" in note for note in notes)
    assert any("Cost centre" in note for note in notes)
    sources.commit(draft)
    assert [str(row.cidr) for row in Container.objects.all()] == ["10.10.0.0/16"]
    assert sorted(Pool.objects.values_list("name", "description")) == [
        ("10.10.1.0-24", "Customer 1"),
        ("10.10.1.0-24.blue", "Lab"),
        ("2001-db8-1---64", ""),
    ]
    held = Block.objects.filter(state="held").order_by("cidr", "space__name")
    assert [(str(b.cidr), b.space.name, b.holder_id) for b in held] == [
        ("10.10.1.3/32", "", "server1.example"),
        ("10.10.1.3/32", "blue", "lab1"),
        ("10.10.1.4/32", "", "IT"),
        ("10.10.1.6/32", "", "Lease"),
        ("2001:db8:1::5/128", "", "v6.example"),
    ]
    record = RegisterRecord.objects.get(first="10.10.1.3", space__name="")
    assert record.description == "Web"
    assert record.details == {
        "dns_name": "server1.example", "site": "Customers", "mac": "00:11:22:33:44:55", "owner": "IT",
        "device": "sw-1", "note": "rack 4",
    }  # fmt: skip
    reserved = ReservedRange.objects.order_by("first")
    assert [(str(row.first), row.reason) for row in reserved] == [
        ("10.10.1.1", "gateway"),
        ("10.10.1.5", "reserved"),
    ]
    again = sources.commit(sources.draft(SUBNETS, ADDRESSES, cluster=cluster))
    assert sources.counts(again) == {"unchanged": 11}


# app/subnets/addresses/export-subnet.php
ONE_SUBNET = [
    ("Network",),
    ("10.10.1.0/24",),
    ("vlan: 100 - servers",),
    (),
    (
        "ip address", "tag", "description", "hostname", "fw object", "mac", "owner", "device", "port", "note",
        "location", "Last seen",
    ),
    ("10.10.1.3", "", "Web", "server1.example", "", "", "IT", "sw-1", "Gi1/0/7", "", "Rack 4", "2026-01-02 03:04:05"),
    ("10.10.1.5", "Reserved", "", "", "", "", "", "", "", "", "", ""),
]  # fmt: skip


def test_the_export_of_one_subnet_brings_the_prefix_above_its_table() -> None:
    rows = read(table(ONE_SUBNET[0], ONE_SUBNET[1:])).rows
    assert [(row.line, row.kind) for row in rows] == [(2, "prefix"), (6, "address"), (7, "address")]
    assert rows[0].texts == {
        "prefix": "10.10.1.0/24", "heading": "yes", "description": "Network", "vlan": "100",
    }  # fmt: skip
    assert rows[1].texts["device"] == "sw-1"
    assert rows[1].texts["interface"] == "Gi1/0/7"
    book = corpus.to_xlsx({"Subnet": ONE_SUBNET})
    # Blank rows of a workbook are not counted, but keep their number.
    assert [row.texts for row in read(book).rows] == [row.texts for row in rows]


def test_the_prefix_above_a_table_yields_to_the_row_of_the_subnet() -> None:
    draft = sources.draft(
        table(ONE_SUBNET[0], ONE_SUBNET[1:]), SUBNETS, ONE_V6)  # fmt: skip
    assert sources.codes(draft) == [(2, "unchanged", "duplicate_in_file")]
    committed = sources.commit(draft)
    assert Pool.objects.get(name="10.10.1.0-24").description == "Customer 1"
    assert committed.counts["unchanged"] == 1


ONE_V6 = table(
    ("ip address", "ip state", "description", "hostname"), [("2001:db8:1::9", "Used", "", "v6b")]
)


# app/tools/search/search-results-export.php
def test_the_export_of_a_search_has_a_prefix_above_the_addresses_of_each_subnet() -> None:
    content = table(
        ("ip address", "state", "description", "hostname", "device", "port", "location", "owner", "mac", "note"),
        [
            (),
            ("10.10.1.0/24 - Customer 1 (vlan: 100 - servers)",),
            ("10.10.1.3", "Used", "Web", "server1", "sw-1", "7", "", "", "", ""),
            (),
            ("10.10.2.0/24 - ",),
            ("10.10.2.3", "DHCP", "", "server2", "", "", "", "", "", ""),
        ],
    )  # fmt: skip
    draft = sources.draft(content)
    assert sources.codes(draft) == []
    rows = sources.rows_of(draft)
    assert [row.target for row in rows] == ["pool", "address"] * 2
    assert [row.holder_id for row in rows] == ["", "server1", "", "server2"]
    subnets = table(
        ("Section", "Subnet", "Mask", "Description", "Master subnet", "VLAN", "IP requests"),
        [
            ("Customers", "Folder", "", "Servers", "/", "", ""),
            ("Customers", "10.10.1.0", "24", "Customer 1", "Servers", "100", "yes"),
            ("IPv6", "2001:db8:1::", "64", "", "/", "", ""),
        ],
    )
    reading = read(subnets)
    assert [(row.texts["prefix"], row.texts["mask"]) for row in reading.rows] == [
        ("10.10.1.0", "24"),
        ("2001:db8:1::", "64"),
    ]
    assert "folders" in reading.notes[-1]["message"]


# app/admin/import-export/import-template.php
def test_the_templates_of_its_import_are_read() -> None:
    subnets = table(
        ("Section", "Subnet", "Mask", "Description", "VLAN", "Domain", "VRF"),
        [("Customers", "10.10.1.0", "255.255.255.0", "Customer 1", "100", "default", "default")],
    )
    addresses = table(
        (
            "Section", "IP address", "Hostname", "Description", "VRF", "Subnet", "MAC", "Owner", "Device", "Note",
            "Tag", "Is_Gateway",
        ),
        [("Customers", "10.10.1.3", "a.example", "", "default", "10.10.1.0/24", "", "", "", "", "Used", "0")],
    )  # fmt: skip
    draft = sources.draft(subnets, addresses)
    assert sources.codes(draft) == []
    assert sources.counts(draft) == {"new": 2}
    assert "status" not in sources.rows_of(draft)[1].details


# db/SCHEMA.sql
def test_tables_of_its_database_have_decimal_addresses_and_numbers_of_states() -> None:
    subnets = table(
        ("id", "subnet", "mask", "sectionId", "description", "vrfId", "masterSubnetId", "vlanId", "isFolder", "state"),
        [
            (1, "336395549904799703390415618052362076160", 64, 2, "Private subnet 1", "NULL", 0, 1, 0, 2),
            (2, "167772160", "8", 1, "Business customers", "NULL", 0, "NULL", 0, 2),
            (3, "168427776", "24", 1, "Customer 1", "NULL", 2, "NULL", 0, 2),
            (5, "0", "", 1, "My folder", "NULL", 0, "NULL", 1, 2),
        ],
    )  # fmt: skip
    addresses = table(
        ("id", "subnetId", "ip_addr", "is_gateway", "description", "hostname", "mac", "owner", "state", "switch"),
        [
            (1, 3, "168427779", 0, "Server1", "server1.cust1.local", "NULL", "NULL", 2, "NULL"),
            (3, 3, "168427781", 0, "Server3", "NULL", "NULL", "NULL", 3, "NULL"),
            (5, 3, "168428021", 1, "Gateway", "NULL", "NULL", "NULL", 2, "NULL"),
        ],
    )  # fmt: skip
    draft = sources.draft(subnets, addresses)
    assert sources.codes(draft) == []
    assert [(row.target, str(row.cidr)) for row in sources.rows_of(draft)] == [
        ("pool", "fd13:6d20:29dc:cf27::/64"),
        ("container", "10.0.0.0/8"),
        ("pool", "10.10.1.0/24"),
        ("address", "10.10.1.3/32"),
        ("reserved", "10.10.1.5/32"),
        ("reserved", "10.10.1.245/32"),
    ]


def test_an_xls_file_is_refused_with_what_to_do() -> None:
    with pytest.raises(errors.InvalidInput, match=r"save it as \.xlsx or CSV"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))


# app/admin/import-export/generate-xls.php
def test_the_export_of_all_sections_has_a_table_below_each_subnet() -> None:
    header = ("ip address", "ip state", "description", "hostname", "mac", "owner", "device", "port", "note")  # fmt: skip
    content = table(
        ("10.10.1.0/24 - Customer 1 (vlan: 100 - servers)",),
        [
            header,
            ("10.10.1.3", "", "Web", "server1", "0011.2233.4455", "", "", "", ""),
            (),
            ("10.10.2.0/24 - Empty (vlan: 101)",),
            header,
            ("No hosts",),
            (),
            ("10.10.3.0/24 - ",),
            header,
            ("10.10.3.7", "Offline", "", "server3", "", "", "", "", ""),
        ],
    )
    reading = read(content)
    prefixes = [row.texts for row in reading.rows if row.kind == "prefix"]
    assert prefixes == [
        {"prefix": "10.10.1.0/24", "heading": "yes", "vlan": "100", "description": "Customer 1"},
        {"prefix": "10.10.2.0/24", "heading": "yes", "vlan": "101", "description": "Empty"},
        {"prefix": "10.10.3.0/24", "heading": "yes"},
    ]
    assert [row.texts["address"] for row in reading.rows if row.kind == "address"] == [
        "10.10.1.3",
        "10.10.3.7",
    ]
    assert [note["message"] for note in reading.notes] == [
        "not read: 1 lines with a text and no address, such as *No hosts*"
    ]
