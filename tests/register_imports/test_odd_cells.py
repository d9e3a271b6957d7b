"""Cells as people and programs write them: decoration, several values in one cell, numbers that a spreadsheet has made."""

from __future__ import annotations

import io
from typing import Any

import openpyxl
import pytest

from claims.imports.files import formats
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import codes, counts, rows_of, table

pytestmark = pytest.mark.django_db


def test_the_tree_of_netbox_3_is_read() -> None:
    """netbox-community/netbox#9407: the exported prefixes have bullets and line breaks."""
    prefixes = table(
        ("Prefix", "Status", "VRF"),
        [("10.51.0.0/16", "Active", ""), ("●\n10.51.16.0/24", "Active", ""), ("● ●\n 10.51.17.0/24", "Active", "")],
    )  # fmt: skip
    draft = sources.draft(prefixes, cluster=factories.cluster())
    assert [(str(row.cidr), row.target) for row in rows_of(draft)] == [
        ("10.51.0.0/16", "container"),
        ("10.51.16.0/24", "pool"),
        ("10.51.17.0/24", "pool"),
    ]


SEVERAL = {
    "comma": "10.77.0.1, 10.77.0.2",
    "line break": "10.77.0.1\n10.77.0.2",
    "semicolon": "10.77.0.1;10.77.0.2",
    "remarks": "10.77.0.1 (mgmt) 10.77.0.2 (iLO)",
    "lengths": "10.77.0.1/24 | 10.77.0.2/24",
}


@pytest.mark.parametrize("cell", SEVERAL.values(), ids=SEVERAL)
def test_several_addresses_in_a_cell_are_rows(cell: str) -> None:
    files = table(("prefix",), [("10.77.0.0/24",)]), table(("address", "holder"), [(cell, "web1")])
    draft = sources.draft(*files, cluster=factories.cluster())
    assert [(str(row.first), row.holder_id) for row in rows_of(draft)[1:]] == [
        ("10.77.0.1", "web1"),
        ("10.77.0.2", "web1"),
    ]
    assert counts(draft) == {"new": 3}


def test_several_prefixes_in_a_cell_are_rows() -> None:
    draft = sources.draft(
        table(("prefix", "description"), [("10.105.0.0/16, 10.106.0.0/16", "VPC")]),
        cluster=factories.cluster(),
    )
    assert [str(row.cidr) for row in rows_of(draft)] == ["10.105.0.0/16", "10.106.0.0/16"]


@pytest.mark.parametrize(("mask", "status"), [("255.255.255.0", "new"), ("0.0.0.255", "invalid")])
def test_a_mask_behind_an_address_is_no_address(mask: str, status: str) -> None:
    draft = sources.draft(table(("prefix",), [(f"10.77.0.0 {mask}",)]), cluster=factories.cluster())
    assert [row.status for row in rows_of(draft)] == [status]


QUOTED = {
    "a remark": "10.77.0.5 (mgmt)",
    "Excel's quotes": '="10.77.0.5"',
    "an apostrophe": "'10.77.0.5",
}


@pytest.mark.parametrize("cell", QUOTED.values(), ids=QUOTED)
def test_what_stands_around_one_address(cell: str) -> None:
    files = table(("prefix",), [("10.77.0.0/24",)]), table(("address", "holder"), [(cell, "web1")])
    draft = sources.draft(*files, cluster=factories.cluster())
    assert (counts(draft), str(rows_of(draft)[1].first)) == ({"new": 2}, "10.77.0.5")


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
    draft = sources.draft(table(header, [cells]), cluster=factories.cluster())
    assert [(str(row.cidr), row.target) for row in rows_of(draft)] == found


def test_merged_cells_are_named_in_both_kinds_of_drafts() -> None:
    """Only the first of them has the value."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ("Addresses", ""),
        ("VM", "MAC", "IP"),
        ("web", "00:50:56:00:00:01", "10.0.0.5"),
        ("", "00:50:56:00:00:02", "10.0.0.6"),
    ):
        sheet.append(row)
    sheet.merge_cells("A1:C1")
    sheet.merge_cells("A3:A4")
    stream = io.BytesIO()
    book.save(stream)
    draft = sources.draft(stream.getvalue(), cluster=factories.cluster())
    assert {note["code"]: note["message"][-4:] for note in draft.notes}["merged_cells"] == "3:A4"
    reading = formats.open_file("vms.xlsx", stream.getvalue())
    assert [note.code for note in reading.notes] == ["merged_cells"]


def test_a_number_is_no_address_unless_phpipam_wrote_it() -> None:
    """172.16.30.40 where the dot groups thousands."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("Subnet", "Description"), ("10.0.0.0/8", "")):
        sheet.append(row)
    addresses = book.create_sheet("Hosts")
    for row in (("Address", "Holder"), (172163040, "web2")):
        addresses.append(row)
    stream = io.BytesIO()
    book.save(stream)
    draft = sources.draft(stream.getvalue(), cluster=factories.cluster())
    assert codes(draft) == [(2, "invalid", "not_an_address")]
    netbox = table(sources.IMPORT_ADDRESS, [("176357381", "active", "", "", "five.example")])
    assert codes(sources.draft(netbox, cluster=factories.cluster()))[0][1] == "invalid"
