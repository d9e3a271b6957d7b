"""Tables as people and programs write them: decoration, several values in a cell, mangled numbers, other languages."""

import io
import json
from typing import Any

import openpyxl
import pytest

from claims.imports import formats
from pools.core import errors
from pools.core.register_import import parsing
from pools.models import Block, PoolCIDR, ReservedRange
from tests import factories
from tests.claims.imports import corpus
from tests.register_imports import sources
from tests.register_imports.sources import codes, counts, read, rows_of, table


def test_the_tree_of_netbox_3_is_read() -> None:
    """netbox-community/netbox#9407: the exported prefixes have bullets and line breaks."""
    prefixes = table(
        ("Prefix", "Status", "VRF"),
        [("10.51.0.0/16", "Active", ""), ("●\n10.51.16.0/24", "Active", ""), ("● ●\n 10.51.17.0/24", "Active", "")],
    )  # fmt: skip
    draft = sources.draft(prefixes)
    assert [(str(row.cidr), row.target) for row in rows_of(draft)] == [
        ("10.51.0.0/16", "container"),
        ("10.51.16.0/24", "pool"),
        ("10.51.17.0/24", "pool"),
    ]


TWO = ["10.77.0.1", "10.77.0.2"]
CELLS = {
    "comma": ("10.77.0.1, 10.77.0.2", TWO),
    "line break": ("10.77.0.1\n10.77.0.2", TWO),
    "semicolon": ("10.77.0.1;10.77.0.2", TWO),
    "remarks": ("10.77.0.1 (mgmt) 10.77.0.2 (iLO)", TWO),
    "lengths": ("10.77.0.1/24 | 10.77.0.2/24", TWO),
    "a sign": ("10.77.0.1 & 10.77.0.2", TWO),
    "a word": ("10.77.0.1 und 10.77.0.2", TWO),
    "a slash": ("10.77.0.1 / 10.77.0.2", TWO),
    "a remark": ("10.77.0.5 (mgmt)", ["10.77.0.5"]),
    "Excel's quotes": ('="10.77.0.5"', ["10.77.0.5"]),
    "an apostrophe": ("'10.77.0.5", ["10.77.0.5"]),
}


@pytest.mark.parametrize(("cell", "addresses"), CELLS.values(), ids=CELLS)
def test_addresses_in_a_cell_are_rows(cell: str, addresses: list[str]) -> None:
    files = table(("prefix",), [("10.77.0.0/24",)]), table(("address", "holder"), [(cell, "web1")])
    rows = rows_of(sources.draft(*files))
    assert [str(row.first) for row in rows[1:]] == addresses
    assert {(row.status, row.holder_id) for row in rows[1:]} == {("new", "web1")}


PREFIXES = {
    "two": ("10.105.0.0/16, 10.106.0.0/16", "new", ["10.105.0.0/16", "10.106.0.0/16"]),
    "a mask": ("10.77.0.0 255.255.255.0", "new", ["10.77.0.0/24"]),
    "a wildcard": ("10.77.0.0 0.0.0.255", "invalid", ["None"]),
}


@pytest.mark.parametrize(("cell", "status", "cidrs"), PREFIXES.values(), ids=PREFIXES)
def test_prefixes_in_a_cell_are_rows(cell: str, status: str, cidrs: list[str]) -> None:
    rows = rows_of(sources.draft(table(("prefix",), [(cell,)])))
    assert [(str(row.cidr), row.status) for row in rows] == [(cidr, status) for cidr in cidrs]


OTHERS = {
    "AWS": (
        ("Name", "Subnet ID", "IPv4 CIDR", "IPv6 CIDR"),
        ("web", "subnet-1", "10.71.0.0/24", "2001:db8:71::/64"),
        [("10.71.0.0/24", "pool"), ("2001:db8:71::/64", "pool")],
    ),
    "Azure": (
        ("Virtual network", "Address space", "Subnet", "Address range"),
        ("hub", "10.72.0.0/16", "default", "10.72.1.0/24"),
        [("10.72.1.0/24", "pool")],
    ),
    "Nautobot": (
        ("prefix", "type", "status__name", "namespace__name", "tenant__name"),
        ("10.0.0.0/8", "Container", "Active", "Global", "Acme"),
        [("10.0.0.0/8", "container")],
    ),
    "both families of a host": (
        ("Host", "IPv4", "IPv6"),
        ("web", "10.0.0.1", "2001:db8::1"),
        [("10.0.0.1/32", "address"), ("2001:db8::1/128", "address")],
    ),
}


@pytest.mark.parametrize(("header", "cells", "found"), OTHERS.values(), ids=OTHERS)
def test_tables_of_clouds_and_other_registers(header: Any, cells: Any, found: Any) -> None:
    draft = sources.draft(table(header, [cells]))
    assert [(str(row.cidr), row.target) for row in rows_of(draft)] == found


def test_merged_cells_are_named_in_both_kinds_of_drafts() -> None:
    """Only the first of them has the value."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(("Addresses", ""))
    sheet.append(("VM", "MAC", "IP"))
    sheet.append(("web", "00:50:56:00:00:01", "10.0.0.5"))
    sheet.append(("", "00:50:56:00:00:02", "10.0.0.6"))
    sheet.merge_cells("A1:C1")
    sheet.merge_cells("A3:A4")
    stream = io.BytesIO()
    book.save(stream)
    draft = sources.draft(stream.getvalue())
    assert {note["code"]: note["message"][-4:] for note in draft.notes}["merged_cells"] == "3:A4"
    reading = formats.open_file(stream.getvalue())
    assert [note.code for note in reading.notes] == ["merged_cells"]


def test_a_number_is_no_address_unless_phpipam_wrote_it() -> None:
    """172.16.30.40 where the dot groups thousands."""
    networks, hosts = ("Subnet", "Description"), ("Address", "Holder")
    book = {"Plan": (networks, ("10.0.0.0/8", "")), "Hosts": (hosts, (172163040, "web2"))}
    draft = sources.draft(corpus.to_xlsx(book))
    assert codes(draft) == [(2, "invalid", "spreadsheet_mangled")]
    netbox = table(sources.IMPORT_ADDRESS, [("176357381", "active", "", "", "five.example")])
    assert codes(sources.draft(netbox))[0][1] == "invalid"


def texts(content: str, *names: str) -> list[tuple[str, ...]]:
    return [tuple(row.texts.get(name, "") for name in names) for row in read(content).rows]


def test_addresses_of_a_host_in_several_columns_are_rows() -> None:
    """The second one is in use, too."""
    text = "Host,IP Address,Host IP,IPv4\nweb,10.0.0.1,10.0.0.2,10.0.0.1/24\n"
    assert texts(text, "address", "dns_name") == [("10.0.0.1", "web"), ("10.0.0.2", "web")]


SECOND = {
    "Purpose": "IP,Description,Purpose\n10.0.0.1,web,mail\n10.0.0.2,same,Same\n",
    "Address space": "Address space,Purpose,Address range\n10.72.0.0/16,x,10.72.1.0/24\n",
    "EA-Name": "header-network,address,netmask,comment,EA-Name\nnetwork,10.0.0.0,24,a,b\n",
}


@pytest.mark.parametrize(("column", "content"), SECOND.items(), ids=SECOND)
def test_a_second_column_of_a_field_that_says_something_else_is_named(
    column: str, content: str
) -> None:
    (note,) = read(content).notes
    assert note["code"] == "left_out"
    assert f"not read: 1 cells of the column {column}," in note["message"]


def test_every_gateway_of_a_cell_is_reserved() -> None:
    rows = texts('Subnet,Gateway\n10.0.0.0/24,"10.0.0.1, 10.0.0.2 (HSRP)"\n', "address", "gateway")
    assert rows[:2] == [("10.0.0.1", "yes"), ("10.0.0.2", "yes")]


WIDE = {
    "10.3.4.0 - 10.3.4.255": "10.3.4.0/24",
    "10.3.7.*": "10.3.7.0/24",
    "10.4.x.x": "10.4.0.0/16",
    "10.3.5.0 255.255.255.0": "10.3.5.0/255.255.255.0",
}


@pytest.mark.parametrize(("cell", "prefix"), WIDE.items(), ids=WIDE)
def test_a_prefix_is_written_in_many_ways(cell: str, prefix: str) -> None:
    assert texts(f"Subnet,Note\n{cell},x\n", "prefix") == [(prefix,)]


@pytest.mark.parametrize("cell", ["10.3.4.10-10.3.4.20", "10.3.4.64-10.3.4.127"])
def test_a_range_for_hosts_is_no_prefix(cell: str) -> None:
    assert [row.kind for row in read(f"Subnet,Note\n{cell},x\n").rows] == ["range"]


def test_whole_numbers_that_a_spreadsheet_made_decimals() -> None:
    parsed = parsing.parse_row("prefix", {"prefix": "10.0.0.0", "mask": "24.0", "vlan": "100.0"})
    assert (str(parsed.cidr), parsed.details) == ("10.0.0.0/24", {"vlan": "100"})


DAMAGED = {
    "#N/A": ("holder", "spreadsheet_error"),
    "=": ("holder", "formula"),
    "=A2": ("address", "formula"),
    "2010-10-01": ("address", "spreadsheet_mangled"),
    "1.0001E+09": ("address", "spreadsheet_mangled"),
}


@pytest.mark.parametrize(("cell", "expected"), DAMAGED.items(), ids=DAMAGED)
def test_what_a_spreadsheet_left_instead_of_a_value_refuses_the_row(
    cell: str, expected: tuple[str, str]
) -> None:
    field, code = expected
    parsed = parsing.parse_row("address", {"address": "10.0.0.1", "holder": "web", field: cell})
    assert [(problem.field, problem.code) for problem in parsed.problems] == [(field, code)]


@pytest.mark.parametrize("cell", ["2026-10-24", "24. Okt", "10.2", "172163072"])
def test_a_date_or_a_number_is_no_prefix(cell: str) -> None:
    (problem,) = parsing.parse_row("prefix", {"prefix": cell, "mask": "24"}).problems
    assert (problem.field, problem.code) == ("prefix", "spreadsheet_mangled")


def test_a_text_of_which_only_the_beginning_is_read_says_so() -> None:
    address = table(("address", "holder", "note"), [("10.0.0.1", "web", "x" * 600)])
    prefix = table(("prefix",), [("10.0.0.0/24",)])
    row = rows_of(sources.draft(prefix, address))[1]
    assert (row.status, [why["code"] for why in row.reasons]) == ("new", ["cut"])


def test_the_addresses_of_nautobot_have_their_length_in_a_column_of_its_own() -> None:
    text = "host,mask_length,status__name,parent__namespace__name,dns_name\n10.2.1.5,24,Active,Blue,web\n"
    assert texts(text, "address", "dns_name", "vrf") == [("10.2.1.5", "web", "Blue")]


PAGE: dict[str, Any] = {
    "count": 3,
    "results": [
        {"id": 1, "prefix": "10.0.0.0/24", "status": {"value": "active"}, "vrf": None},
        {"id": 2, "address": "10.0.0.5/24", "dns_name": "web", "tenant": {"name": "Acme"}},
        {"id": 3, "start_address": "10.0.0.10/24", "end_address": "10.0.0.20/24"},
    ],
}


@pytest.mark.parametrize("data", [PAGE, [PAGE], PAGE["results"]], ids=["page", "pages", "objects"])
def test_what_netboxs_rest_api_answers_is_a_file_too(data: object) -> None:
    draft = sources.draft(json.dumps(data).encode())
    assert (counts(draft), draft.format) == ({"new": 3}, "netbox-api")
    assert [(row.target, row.holder_id, row.org) for row in rows_of(draft)] == [
        *(("pool", "", ""), ("address", "web", "Acme"), ("reserved", "", ""))
    ]


def test_other_objects_of_a_json_file_are_counted_or_refused() -> None:
    odd: list[Any] = [{"id": 1, "prefix": "10.0.0.0/24"}, {"prefix": [], "custom_fields": 5}, 7]
    assert read(json.dumps(odd), name="f.csv").notes[0]["message"] == (
        "f.csv: not read: 2 objects that are no prefixes, ranges or addresses"
    )
    with pytest.raises(errors.InvalidInput) as refused:
        read(json.dumps([{"name": "web"}]))
    assert refused.value.code == "unsupported_document"


def test_an_archive_of_tables_is_read_like_the_tables() -> None:
    members = {"prefixes.csv": b"prefix,description\n10.0.0.0/24,x\n"}
    members |= {"addresses.csv": b"address,holder\n10.0.0.5,web\n", "readme.txt": b"no register"}
    reading = read(corpus.to_zip(members), name="export.zip")
    assert [(row.kind, row.file) for row in reading.rows] == [
        *(("prefix", "export.zip: prefixes.csv"), ("address", "export.zip: addresses.csv"))
    ]
    assert [note["message"] for note in reading.notes] == [
        "export.zip: the table readme.txt has no column of prefixes or addresses, and is not read"
    ]


def test_a_french_table() -> None:
    header = "Adresse IP;Nom d\u2019hôte;Commentaire;Sous-réseau;Utilisateur"
    text = f"{header}\r\n10.1.0.6;poste-1;étage 2;10.1.0.0/24;Dupont\r\n"
    draft = sources.draft(text.encode("cp1252"))
    assert counts(draft) == {"new": 2}
    prefix, address = rows_of(draft)
    assert (str(prefix.cidr), address.holder_id) == ("10.1.0.0/24", "Dupont")
    assert address.description == "étage 2"
    networks = "Réseau;Masque;Libellé;Client\n10.7.0.0;255.255.255.0;Siège;ACME\n".encode()
    (network,) = rows_of(sources.draft(networks))
    assert (str(network.cidr), network.description, network.org) == ("10.7.0.0/24", "Siège", "ACME")


def test_a_header_that_nobody_knows_is_not_taken_for_a_row() -> None:
    """Its columns would be taken by their position: the tenant for a description."""
    unknown = b"IP-osoite,Isanta,Asiakas\n10.1.0.6,host-1,Acme\n"
    with pytest.raises(errors.InvalidInput, match="no header row found"):
        sources.draft(unknown)
    titled = b"Our addresses\n\n10.1.0.0/24,Office\n"
    draft = sources.draft(titled)
    assert counts(draft) == {"new": 1, "invalid": 1}  # nothing is left out without a word


def test_a_gateway_beside_prefixes_and_addresses_is_reserved() -> None:
    files = (
        b"Network,Gateway,VLAN,Owner\n10.1.0.0 /24,10.1.0.1,10,Bob\n10.2.0.0/24,10.2.0.254/24,,\n10.3.0.0/24,0.0.0.0,,\n",
        b"IP,Hostname,Default Gateway\n10.1.0.5,a,10.1.0.1\n10.1.0.6,b,10.1.0.1\n10.1.0.1,rtr,10.1.0.1\n",
    )
    cluster = factories.cluster()
    draft = sources.draft(*files, cluster=cluster)
    assert not {"invalid", "conflict"} & counts(draft).keys()
    sources.commit(draft)
    reserved = ReservedRange.objects.order_by("first").values_list("first", "reason")
    assert [(str(first), reason) for first, reason in reserved] == [
        ("10.1.0.1", "gateway"),
        ("10.2.0.254", "gateway"),
    ]
    assert Block.objects.get(cidr="10.1.0.1/32").holder_id == "rtr"
    assert PoolCIDR.objects.get(cidr="10.1.0.0/24").owner == "Bob"
    assert set(counts(sources.draft(*files, cluster=cluster))) == {"unchanged"}


def test_blanks_and_invisible_characters_of_web_pages() -> None:
    text = "prefix,description,tenant\n10.1.0.0/24,a\u200bb\u00adc\u00a0d,Acme\u00a0GmbH\u200e\n"
    (row,) = rows_of(sources.draft(text))
    assert (row.status, row.description, row.org) == ("new", "abc d", "Acme GmbH")
