"""What people write into cells, what spreadsheets make of it, and the names that Forklift makes of theirs."""

import pytest

from claims.core.vm_import import cells, vm_interface

READ = {
    "one": ("10.0.0.21", ("10.0.0.21",)),
    "comma": ("10.0.0.21, 10.0.0.22", ("10.0.0.21", "10.0.0.22")),
    "semicolon": ("10.0.0.21;10.0.0.22", ("10.0.0.21", "10.0.0.22")),
    "bar": ("10.0.0.21 | 2001:DB8::1", ("10.0.0.21", "2001:db8::1")),
    "lines": ("10.0.0.21 /24, \n10.0.0.22 /24", ("10.0.0.21/24", "10.0.0.22/24")),
    "netmask": ("10.0.0.21/255.255.255.0", ("10.0.0.21/24",)),
    "no-break space": ("10.0.0.21\xa0/\xa024", ("10.0.0.21/24",)),
    "twice": ("10.0.0.21, 10.0.0.21", ("10.0.0.21",)),
    "mapped": ("::ffff:10.0.0.21", ("10.0.0.21",)),
    "trailing": ("10.0.0.21, ", ("10.0.0.21",)),
    "empty": ("", ()),
    "blank": (" ", ()),
}


@pytest.mark.parametrize("case", READ)
def test_addresses_of_a_cell_are_read(case: str) -> None:
    text, ips = READ[case]
    assert cells.parse_addresses(text) == cells.Addresses(ips)


ASIDE = {
    "169.254.3.4": "link_local_set_aside",
    "fe80::250:56ff:fe83:2547": "link_local_set_aside",
    "fe80::1%eth0": "link_local_set_aside",
    "fe80::1/64": "link_local_set_aside",
    "127.0.0.1": "loopback_set_aside",
    "::1": "loopback_set_aside",
    "224.0.0.1": "multicast_set_aside",
    "239.1.2.3": "multicast_set_aside",
    "ff02::1": "multicast_set_aside",
}


@pytest.mark.parametrize("text", ASIDE)
def test_useless_addresses_are_set_aside_with_a_reason(text: str) -> None:
    addresses = cells.parse_addresses(f"10.0.0.21, {text}")
    assert addresses.ips == ("10.0.0.21",)
    assert not addresses.unread
    assert [problem.code for problem in addresses.problems] == [ASIDE[text]]
    assert text.partition("%")[0] in addresses.problems[0].message


def test_nothing_is_set_aside_of_what_a_program_wrote() -> None:
    ips = ("10.0.0.1", "169.254.0.1")
    assert cells.parse_addresses(*ips, aside=False).ips == ips


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("010.0.0.1", "leading_zero"),
        ("10.0.0.256", "not_an_address"),
        ("10.0.0.1-10.0.0.9", "not_an_address"),
        ("10.0.0.1/33", "prefix_length"),
        ("10.0.0.1/024", "prefix_length"),
        ("10.0.0.1/0.0.0.255", "wildcard_mask"),
        ("10.0.0.1/255.0.255.0", "non_contiguous_mask"),
        ("\uff12.0.0.1", "non_ascii_digit"),
        ("10.0.0.\u200b1", "invisible_character"),
        ("unknown", "not_an_address"),
        ("10.2", "spreadsheet_mangled"),
        ("192168001021", "spreadsheet_mangled"),
        ("1.23E+11", "spreadsheet_mangled"),
        ("24.10.2026", "spreadsheet_mangled"),
        ("24-Oct", "spreadsheet_mangled"),
        ("Oct-24", "spreadsheet_mangled"),
        ('="10.0.0.1', "formula"),
        (cells.Number("10.2"), "spreadsheet_mangled"),
        (cells.Date("2026-10-24"), "spreadsheet_mangled"),
        (cells.Formula("10.0.0.1"), "formula"),
        (cells.Failure("#N/A"), "spreadsheet_error"),
        (", ".join(f"10.0.0.{n}" for n in range(1, 80)), "too_many"),
    ],
)
def test_what_is_no_address_is_kept_and_told(text: str, code: str) -> None:
    addresses = cells.parse_addresses(text)
    assert addresses.unread
    assert addresses.ips
    assert [problem.code for problem in addresses.problems] == [code]


@pytest.mark.parametrize(
    ("prefixes", "ips"),
    [
        (["24"], ("10.0.0.1/24", "10.0.0.2/24", "2001:db8::1")),
        (["255.255.255.0"], ("10.0.0.1/24", "10.0.0.2/24", "2001:db8::1")),
        (["64"], ("10.0.0.1", "10.0.0.2", "2001:db8::1/64")),
        (["24", "25", "64"], ("10.0.0.1/24", "10.0.0.2/25", "2001:db8::1/64")),
        (["24", "25"], ("10.0.0.1", "10.0.0.2", "2001:db8::1")),
    ],
)
def test_prefix_lengths_of_another_column(prefixes: list[str], ips: tuple[str, ...]) -> None:
    addresses = cells.parse_addresses("10.0.0.1, 10.0.0.2, 2001:db8::1", prefixes=prefixes)
    assert addresses.ips == ips


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("00:50:56:83:25:47", []),
        ("00-50-56-83-25-47", []),
        ("0050.5683.2547", []),
        (" 0:50:56:83:25:47 ", []),
        ("005056832547", []),
        ("00:00:00:00:00:00", ["zero_mac"]),
        ("01:00:5e:00:00:01", ["multicast_mac"]),
        ("5056832547", ["spreadsheet_mangled"]),
        ("1.23E+11", ["spreadsheet_mangled"]),
        (cells.Number("105056832547"), ["spreadsheet_mangled"]),
        ("=A1", ["formula"]),
        ("none", ["mac_syntax"]),
    ],
)
def test_mac_addresses(text: str, codes: list[str]) -> None:
    assert [problem.code for problem in cells.parse_mac(text)] == codes


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        (" Web 01 ", "Web 01", None),
        ("'=cmd", "=cmd", None),
        ("=cmd", "=cmd", None),
        ("'quoted'", "'quoted'", None),
        (cells.Number("101"), "101", None),
        (cells.Date("2026-10-24"), "2026-10-24", "spreadsheet_mangled"),
        (cells.Formula("=A1"), "=A1", "formula"),
        ("x" * 300, "x" * 253, "too_long"),
    ],
)
def test_names(text: str, name: str, code: str | None) -> None:
    result, wrong = cells.parse_text("vm", text)
    assert (result, wrong and wrong.code) == (name, code)


# The cases of Forklift's own tests, and those that differ from ours.
FORKLIFT_NAMES = {
    "web-01": "web-01",
    "Web 01": "web-01",
    "WEB_01+x*y/z\\w": "web-01-x-y-z-w",
    "web.prod.example": "web.prod.example",
    "..web..": "web",
    "a..b": "a.b",
    "a.-.b": "a.b",
    "a.%%.b": "a.b",
    "web%2f01": "web2f01",
    "a---b__c": "a-b-c",
    "-.-": "",
    "": "",
    "日本": "",
    "\u0130x": "ix",
    "x" * 70: "x" * 63,
    "x" * 62 + "-y": "x" * 62,
    f"{'a' * 40}.{'b' * 40}": f"{'a' * 40}.{'b' * 22}",
    f"{'a' * 62}.b": "a" * 62,
}


@pytest.mark.parametrize("name", FORKLIFT_NAMES)
def test_a_name_becomes_what_forklift_makes_of_it(name: str) -> None:
    assert vm_interface.sanitize(name) == FORKLIFT_NAMES[name]
