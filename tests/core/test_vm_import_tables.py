"""Tables of VMs: their columns and their cells."""

import random
from collections.abc import Sequence

import pytest

from claims.core.vm_import import cells, columns, tables, vm_interface
from claims.core.vm_import.vm_interface import Skipped, VMInterface
from pools.core import errors

MAC, MAC_2 = "00:50:56:83:25:47", "00:50:56:83:25:48"


def _read(header: str, *rows: Sequence[str]) -> tuple[list[VMInterface], dict[str, int]]:
    layout = columns.recognise(header.split(","))
    assert layout is not None
    skipped = Skipped()
    return list(tables.read(layout, enumerate(rows, start=2), skipped)), skipped


def _one(header: str, row: Sequence[str]) -> VMInterface:
    result, _ = _read(header, row)
    assert len(result) == 1
    return result[0]


def _codes(vm_interface: VMInterface) -> list[str]:
    return [problem.code for problem in vm_interface.problems]


KINDS = {
    "VM,NIC label,Network,Mac Address,IPv4 Address,IPv6 Address": columns.VNETWORK,
    "vm,nic LABEL,network,MAC ADDRESS,ipv4 address": columns.VNETWORK,
    "vNetworkVMName,vNetworkName,vNetworkMacAddress,vNetworkIP4Address": columns.VNETWORK,
    "VM,Powerstate,Primary IP Address,Network #1": columns.VINFO,
    "vInfoVMName,vInfoPrimaryIPAddress,vInfoNetwork1": columns.VINFO,
    "VM,NetworkName,MacAddress": columns.LIST,
    "VM,Power,NIC,Network,Connected,MacAddress,IP Address,Datastore": columns.POWERCLI,
    "VM,MAC address,IP addresses,Network,Namespace,Note": columns.TEMPLATE,
    "Note,IP addresses,VM,MAC address": columns.TEMPLATE,
    "MAC,IP": columns.LIST,
    "Mac;IP": None,
    "VM-Name;Netzwerk;MAC-Adresse;IP-Adresse;Notiz".replace(";", ","): columns.POWERCLI,
    "Nom,Adresse MAC,Adresse IP": columns.LIST,
    "仮想マシン名,ネットワーク,MACアドレス,IPアドレス": columns.POWERCLI,
    "名前,ネットワーク": None,
    "Host,CPU,Memory": None,
    "": None,
}


@pytest.mark.parametrize("header", KINDS)
def test_a_table_is_told_by_the_names_of_its_columns(header: str) -> None:
    layout = columns.recognise(header.split(","))
    assert (layout.kind if layout else None) == KINDS[header]


@pytest.mark.parametrize("seed", range(5))
def test_order_and_custom_columns_do_not_matter(seed: int) -> None:
    cells = {
        "VM": "web-01",
        "Network": "vlan100",
        "Mac Address": MAC,
        "IPv4 Address": "10.0.0.21",
        "IPv6 Address": "2001:db8::21",
        "NIC label": "Network adapter 1",
        "IP Address": "1.2.3.4",
        "Namespace": "a custom attribute",
        "Backup status": "ok",
    }
    names = list(cells)
    random.Random(seed).shuffle(names)  # noqa: S311
    vm_interface = _one(",".join(names), [cells[name] for name in names])
    assert vm_interface == VMInterface(2, "web-01", MAC, ("10.0.0.21", "2001:db8::21"), "vlan100")


@pytest.mark.parametrize("header", ["VM,MAC,IP,mac", "VM,Mac Address,NIC label,IPv4 Address,VM"])
def test_a_needed_column_that_is_there_twice_is_refused(header: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        columns.recognise(header.split(","))
    assert refused.value.code == "duplicate_header"


def test_a_custom_column_may_be_there_twice() -> None:
    assert columns.recognise(["VM", "MAC", "IP", "Owner", "Owner"]) is not None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["tpl", "True", "False", MAC, "", "nic"], "template"),
        (["srm", "False", "TRUE", MAC, "", "nic"], "srm_placeholder"),
        (["vCLS-4203c5a1", "False", "False", MAC, "", "nic"], "vcls"),
        (["", "", "", "", "", ""], "blank"),
        ([], "blank"),
        (
            ["VM", "Template", "SRM Placeholder", "Mac Address", "IPv4 Address", "NIC label"],
            "header",
        ),
    ],
)
def test_rows_that_are_no_vms_are_counted(row: list[str], reason: str) -> None:
    header = "VM,Template,SRM Placeholder,Mac Address,IPv4 Address,NIC label"
    assert _read(header, row) == ([], {reason: 1})


@pytest.mark.parametrize(
    ("row", "codes", "refused"),
    [
        (["a", MAC, "10.0.0.1", "n"], [], False),
        (["a", MAC, "", "n"], ["no_address"], False),
        (["a", MAC], ["no_address"], False),
        (["a", "", "10.0.0.1", "n"], ["mac_missing"], True),
        (["a", "x", "10.0.0.1", "n"], ["mac_syntax"], True),
        (["a", MAC, "10.1", "n"], ["spreadsheet_mangled"], True),
        (["a", MAC, "10.0.0.1", "n", "x"], ["too_many_cells"], True),
        (["a", MAC, "10.0.0.1", "n", ""], [], False),
        (["a", MAC, "169.254.1.1", "n"], ["link_local_set_aside", "no_address"], False),
    ],
)
def test_what_is_wrong_with_a_row_is_told(row: list[str], codes: list[str], refused: bool) -> None:
    vm_interface = _one("VM,MacAddress,IPAddress,NetworkName", row)
    assert (_codes(vm_interface), vm_interface.refused) == (codes, refused)


class TestPowerCLI:
    def test_rows_of_one_interface_need_not_be_neighbours(self) -> None:
        header = "VM,NetworkName,MacAddress,IPAddress,PrefixLength,Origin"
        result, _ = _read(
            header,
            ["a", "n", MAC, "10.0.0.1", "24", "manual"],
            ["a", "n", MAC_2, "10.0.0.2", "24", "manual"],
            ["a", "n", MAC, "2001:db8::1", "64", "manual"],
            ["a", "other", MAC, "10.9.0.1", "24", "manual"],
            ["a", "n", MAC_2, "10.0.0.2", "24", "manual"],
        )
        assert [(item.row, item.mac, item.ips, item.port_group) for item in result] == [
            (2, MAC, ("10.0.0.1/24", "2001:db8::1/64"), "n"),
            (3, MAC_2, ("10.0.0.2/24",), "n"),
            (5, MAC, ("10.9.0.1/24",), "other"),
        ]

    @pytest.mark.parametrize(
        ("network", "macs", "ips", "shares"),
        [
            ("n1, n2", f"{MAC}, {MAC_2}", "10.0.0.1, 10.0.0.2", ("10.0.0.1", "10.0.0.2")),
            ("n1 | n2", f"{MAC} | {MAC_2}", "10.0.0.1 | 10.0.0.2", ("10.0.0.1", "10.0.0.2")),
            ("n1\nn2", f"{MAC}\n{MAC_2}", "fe80::1,10.0.0.1,10.0.0.2", ("10.0.0.1", "10.0.0.2")),
        ],
    )
    def test_joined_cells(self, network: str, macs: str, ips: str, shares: tuple[str]) -> None:
        result, _ = _read("VM,NetworkName,MacAddress,IPs,TotalNICs", ["a", network, macs, ips, "2"])
        assert [(item.mac, item.ips, item.port_group) for item in result] == [
            (MAC, (shares[0],), "n1"),
            (MAC_2, (shares[1],), "n2"),
        ]

    def test_groups_of_several_addresses(self) -> None:
        row = ["a", "n", f"{MAC}|{MAC_2}", "10.0.0.1,2001:db8::1|10.0.0.2", "2"]
        result, _ = _read("VM,NetworkName,MacAddress,IPs,TotalNICs", row)
        assert [item.ips for item in result] == [("10.0.0.1", "2001:db8::1"), ("10.0.0.2",)]

    def test_nobody_guesses_whose_address_it_is(self) -> None:
        row = ["a", "n", f"{MAC},{MAC_2}", "10.0.0.1, 10.0.0.2, 10.0.0.3", "2"]
        result, _ = _read("VM,NetworkName,MacAddress,IPs,TotalNICs", row)
        assert [item.refused for item in result] == [True, True]
        assert "ambiguous_addresses" in _codes(result[0])
        assert "10.0.0.3" in result[0].problems[0].message

    def test_netmasks_of_get_view(self) -> None:
        header = "VM,IPAddress,Gateway,SubnetMask,DNS,MacAddress,VlanId"
        row = ["a", "10.0.0.1|10.1.0.1", "10.0.0.254", "255.255.255.0|255.255.0.0", "", MAC, "1"]
        assert _one(header, row).ips == ("10.0.0.1/24", "10.1.0.1/16")

    def test_the_name_of_the_adapter_is_not_that_of_the_vm(self) -> None:
        header = "Parent,Name,Type,NetworkName,MacAddress,ConnectionState"
        row = ["web-01", "Network adapter 1", "Vmxnet3", "n", MAC, "Connected, GuestControl"]
        assert _one(header, row).vm == "web-01"


# --- What people write into cells, what spreadsheets make of it, and the names that Forklift makes
# of theirs
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
