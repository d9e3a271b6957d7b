"""Plain spreadsheets of prefixes and of addresses with holders, as people keep them."""

import time
from datetime import datetime

import pytest

from pools.models import Block, Pool, RegisterImport, ReservedRange
from pools.register.imports import drafts
from tests import factories
from tests.claims.imports import corpus
from tests.register_imports import sources
from tests.register_imports.sources import BY

Rows = list[tuple[str, dict[str, str]]]


def read(text: str | bytes) -> tuple[Rows, list[str]]:
    reading = sources.read(text)
    rows = [(row.kind, row.texts) for row in reading.rows]
    return rows, [note["message"] for note in reading.notes]


PAIR: Rows = [
    ("address", {"address": "10.0.0.5", "holder": "Ann", "dns_name": "web1"}),
    ("address", {"address": "10.0.0.6", "holder": "Bob"}),
]


@pytest.mark.parametrize(
    "content",
    [
        b"IP,Hostname,Owner\n10.0.0.5,web1,Ann\n10.0.0.6,,Bob\n",
        b"ip address;host name;assigned to\r\n10.0.0.5;web1;Ann\r\n\r\n10.0.0.6;;Bob\r\n",
        b"IPv4 Address\tServer\tUser\n10.0.0.5\tweb1\tAnn\n10.0.0.6\t\tBob\n",
        "\ufeffIP-Adresse;Rechnername;Benutzer\n10.0.0.5;web1;Ann\n10.0.0.6;;Bob\n".encode(),
        "IP_Address\tName\tHolder\n10.0.0.5\tweb1\tAnn\n10.0.0.6\t\tBob\n".encode("utf-16"),
        b"# our hosts\nHosts in Berlin,,\n\nIP,DNS,Used by\n# rack 1\n10.0.0.5,web1,Ann\n10.0.0.6,,Bob\n",
    ],
)
def test_addresses_with_holders(content: bytes) -> None:
    assert read(content)[0] == PAIR


def test_columns_in_german() -> None:
    text = "Präfix;Beschreibung;Kunde;Standort;Bemerkung\n10.0.0.0/24;Büro;Müller;Köln;alt\n"
    texts = {"prefix": "10.0.0.0/24", "description": "Büro", "tenant": "Müller"}
    texts |= {"site": "Köln", "note": "alt"}
    assert read(text)[0] == [("prefix", texts)]
    rows, notes = read(text.encode("cp1252"))
    assert rows == [("prefix", texts)]
    assert "read as Windows-1252" in notes[0]
    masked = {"prefix": "10.0.0.0", "mask": "255.255.255.0", "description": "DMZ"}
    text = "Netz;Netzmaske;Verwendung\n10.0.0.0;255.255.255.0;DMZ\n"
    assert read(text)[0] == [("prefix", masked)]


def test_a_list_without_a_header_mixes_prefixes_addresses_and_ranges() -> None:
    text = (
        "Our networks\n# old ones follow\n10.0.0.0/24,office\n10.0.0.7,printer\n10.0.0.20-10.0.0.29,dhcp\n"
        "10.0.0.30-39\n2001:db8::/64\n2001:db8::10-2001:db8::1f,v6\n"
    )
    rows, notes = read(text)
    assert rows == [
        ("address", {"address": "Our networks"}),  # refused: it is none
        ("prefix", {"prefix": "10.0.0.0/24", "description": "office"}),
        ("address", {"address": "10.0.0.7", "description": "printer"}),
        ("range", {"first": "10.0.0.20", "last": "10.0.0.29", "description": "dhcp"}),
        ("range", {"first": "10.0.0.30", "last": "10.0.0.39"}),
        ("prefix", {"prefix": "2001:db8::/64"}),
        ("range", {"first": "2001:db8::10", "last": "2001:db8::1f", "description": "v6"}),
    ]
    assert notes == ["not read: 1 comment lines"]


def test_a_column_of_addresses_may_have_prefixes_and_a_second_table_may_follow() -> None:
    text = (
        "IP,Netmask,Description\n10.0.0.0/24,,office\n10.1.0.0,255.255.0.0,site\n10.0.0.7,255.255.255.0,pc\n"
        "10.0.0.9/24,,mac\n\nSubnet,VLAN,Customer\n10.2.0.0/24,7,Acme\n"
    )
    assert [(kind, texts[kind]) for kind, texts in read(text)[0]] == [
        ("prefix", "10.0.0.0/24"),
        ("prefix", "10.1.0.0"),
        ("address", "10.0.0.7"),
        ("address", "10.0.0.9/24"),
        ("prefix", "10.2.0.0/24"),
    ]
    assert read(text)[0][4][1] == {"prefix": "10.2.0.0/24", "vlan": "7", "tenant": "Acme"}


@pytest.mark.parametrize(
    "cell", ["1" * 30_000, "a" * 30_000 + "-", "10.0.0.0/" + "1" * 5_000, "/" * 30_000]
)
def test_a_long_cell_is_read_at_once(cell: str) -> None:
    started = time.monotonic()
    rows, _ = read(f"IP,Owner\n{cell},Ann\n")
    assert rows == [("address", {"address": cell, "holder": "Ann"})]
    assert time.monotonic() - started < 1


def test_start_and_end_are_those_of_a_range_only_without_a_prefix() -> None:
    text = "Subnet,Start,End\n10.0.0.0/24,2024-01-01,2026-12-31\n"
    rows, notes = read(text)
    assert rows == [("prefix", {"prefix": "10.0.0.0/24"})]
    assert notes == ["columns that are not read: Start, End"]
    assert read("Von;Bis;Zweck\n10.0.0.20;10.0.0.29;Drucker\n")[0] == [
        ("range", {"first": "10.0.0.20", "last": "10.0.0.29", "description": "Drucker"})
    ]


def test_the_first_of_several_columns_of_a_field_that_has_a_text_counts() -> None:
    text = (
        "address,status,device,virtual_machine,dns_name,vrf\n"
        "10.0.0.5/24,active,,vm1,a.example,\n10.0.0.6/24,active,sw1,,,\n10.0.0.0/24,active,,,,\n"
    )
    rows, _ = read(text)
    assert [texts.get("holder") for _, texts in rows] == ["vm1", "sw1", None]
    assert {kind for kind, _ in rows} == {"address"}  # NetBox's form says what its rows are


SINCE = datetime(2026, 1, 2)  # noqa: DTZ001
WORKBOOK = corpus.to_xlsx(
    {
        "Networks": [
            ["Networks of 2026"],
            [],
            ["Name", "Network", "Mask", "VLAN", "Since", "Customer"],
            ["Office LAN", "10.0.0.0", 24, 12, SINCE, "Acme"],
            ["dmz", "10.0.1.0", 24, 13.0, None, None],
        ],
        "Hosts": [
            ["IP", "Hostname", "Owner", "Ordered"],
            ["10.0.0.5", "web1", "Ann", SINCE],
            ["10.0.0.6", "web2", None, None],
            ["10.0.0.100-10.0.0.120", None, "DHCP", None],
        ],
        "Contacts": [["Name", "Phone"]],
    }
)


def test_a_workbook_with_numbers_and_dates_is_imported_once() -> None:
    cluster = factories.cluster()
    draft = sources.draft(WORKBOOK, cluster=cluster)
    assert sources.codes(draft) == []
    assert any("the table Contacts has no column" in note["message"] for note in draft.notes)
    sources.commit(draft)
    assert sorted(Pool.objects.values_list("name", "description")) == [
        ("10.0.0.0-24", "Office LAN"),
        ("dmz", ""),
    ]
    held = Block.objects.filter(state="held").order_by("cidr")
    assert [(str(b.cidr), b.holder_id) for b in held] == [
        ("10.0.0.5/32", "Ann"),
        ("10.0.0.6/32", "web2"),
    ]
    assert ReservedRange.objects.get().span == "10.0.0.100-10.0.0.120"
    again = sources.draft(WORKBOOK, cluster=cluster)
    assert sources.counts(again) == {"unchanged": 5}


def test_each_odd_row_has_a_reason() -> None:
    text = (
        "Subnet,Description\n10.0.0.0/24,office\n10.0.0.0/24,again\n10.1.0.5/24,host bits\n10.2.0.0,no mask\n"
        ",nothing\nTBD,text\n10.3.0.0/33,length\n010.4.0.0/24,zeros\n10.5.0.q,letters\n"
        "10.0.0.20-10.0.0.10,backwards\n10.9.0.1-10.9.0.5,nowhere\n"
    )
    addresses = "IP,Owner\n10.0.0.5,Ann\n10.0.0.5,Bob\n10.0.0.255,Eve\n,Joe\n10.0.0.9/24/7,Max\n"
    draft = sources.draft(text, addresses.encode())
    rows = sources.rows_of(draft)
    assert [row.line for row in rows] == [*range(2, 13), *range(2, 7), 6, 6, 11, 6]
    assert sources.codes(draft) == [
        (3, "conflict", "duplicate_in_file"),
        (4, "invalid", "host_bits_set"),
        (5, "invalid", "prefix_required"),
        (6, "invalid", "blank"),
        (7, "invalid", "not_an_address"),
        (8, "invalid", "prefix_length"),
        (9, "invalid", "leading_zero"),
        (10, "invalid", "not_an_address"),
        (11, "invalid", "range_reversed"),
        (12, "invalid", "outside_every_prefix"),
        (3, "conflict", "duplicate_in_file"),
        (4, "invalid", "broadcast_address"),
        (5, "invalid", "blank"),
        (6, "invalid", "prefix_length"),
        (6, "new", "left_out"),  # 10.0.0.7, and the next 10.0.0.9
        (6, "new", "left_out"),
        (11, "new", "left_out"),
        (6, "new", "left_out"),  # 10.0.0.24
    ]


def test_the_prefix_beside_an_address_is_a_row_of_its_own() -> None:
    """The cells of a prefix are often merged, so that only its first address has it."""
    text = (
        "Subnet;IP;Host\n10.1.0.0/24;10.1.0.5;a\n;10.1.0.6;b\n10.2.0.0/24;10.2.0.5;c\n"
        "10.1.0.0/24;10.1.0.7;d\nlab;10.1.0.8;e\n"
    )
    rows, _ = read(text)
    assert [(kind, texts.get("prefix")) for kind, texts in rows if kind == "prefix"] == [
        ("prefix", "10.1.0.0/24"),
        ("prefix", "10.2.0.0/24"),
    ]
    draft = sources.draft(text)
    assert sources.counts(draft) == {"new": 7}
    listed = b"Prefix,Description\n10.1.0.0/24,office\n"
    both = sources.draft(text, listed)
    assert sources.counts(both) == {"new": 7, "unchanged": 1}


def test_a_quoted_line_break_refuses_no_row() -> None:
    text = 'prefix,description\n10.1.0.0/24,"line one\nline two"\n"10.2.0.0/24\n",x\n'
    draft = sources.draft(text)
    assert [(row.status, row.description) for row in sources.rows_of(draft)] == [
        ("new", "line one line two"),
        ("new", "x"),
    ]


def test_cells_behind_the_header_are_told() -> None:
    rows, notes = read("prefix,description\n10.0.0.0/24,Berlin, first floor\n10.0.1.0/24,Rome,\n")
    assert [texts["description"] for _, texts in rows] == ["Berlin", "Rome"]
    assert notes == [
        "not read: 1 ends of rows with more cells than the header: a text with the separator in it needs quotes"
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "column", ["vrf", "site", "tenant", "dns name", "device", "owner", "role", "mac", "description"]
)
def test_a_text_that_is_too_long_refuses_its_row_only(column: str) -> None:
    text = f"address,{column}\n10.0.0.5,{'x' * 600}\n10.0.0.6,a\n"
    draft = sources.draft(b"prefix\n10.0.0.0/24\n", text)
    assert (2, "invalid", "too_long") in sources.codes(draft)
    assert sources.rows_of(draft)[2].status != "invalid" or column == "vrf"


def test_files_and_sheets_with_long_names_are_read() -> None:
    cidrs = {"a" * 31: "10.0.0.0/24", "b" * 31: "10.0.1.0/24"}
    content = corpus.to_xlsx({name: [["prefix"], [cidr]] for name, cidr in cidrs.items()})
    new = RegisterImport(cluster=factories.cluster())
    created = drafts.IMPORTS.create([("f" * 240 + ".xlsx", content)], new, author=BY)
    assert sources.counts(created) == {"new": 2}


def test_lists_of_hosts_with_blanks() -> None:
    """As /etc/hosts and notes have them: an address, a blank, a name."""
    rows, _notes = read("10.0.0.0/24 Servers\n10.0.0.5 web1\n10.0.0.6\tdb 1\nfd00::7  web2\n")
    names = [texts.get("holder") or texts.get("description") for _kind, texts in rows]
    assert names == ["Servers", "web1", "db 1", "web2"]
    assert [(kind, texts.get(kind)) for kind, texts in rows] == [
        ("prefix", "10.0.0.0/24"),
        ("address", "10.0.0.5"),
        ("address", "10.0.0.6"),
        ("address", "fd00::7"),
    ]


@pytest.mark.parametrize("begin", ["", "---\n", "\n"])
def test_objects_as_yaml(begin: str) -> None:
    text = "- prefix: 10.0.0.0/24\n  status: active\n- address: 10.0.0.9/24\n  dns_name: web\n"
    rows, notes = read(begin + text)
    assert [kind for kind, _texts in rows] == ["prefix", "address"]
    assert (rows[0][1]["prefix"], rows[1][1]["dns_name"], notes) == ("10.0.0.0/24", "web", [])
