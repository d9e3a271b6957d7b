"""Columns by name, rows to interfaces: RVTools, PowerCLI's shapes, the template, lists."""

import random
from collections.abc import Sequence

import pytest

from claims.core.vm_import import columns, tables
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
