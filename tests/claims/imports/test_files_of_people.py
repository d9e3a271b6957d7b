"""What the file says decides: power state, template, origins; and nothing of it is dropped without a word."""

import json
from typing import Any

import pytest

from claims.imports import formats
from tests.claims.imports import corpus

MAC = corpus.mac(1)


def codes(row: formats.VMInterface) -> list[str]:
    return [problem.code for problem in row.problems]


NIC = {"mac": MAC, "ipAddress": [{"address": "10.0.0.1"}]}
NOVA = {"addr": "10.0.0.1", "OS-EXT-IPS-MAC:mac_addr": MAC, "OS-EXT-IPS:type": "fixed"}
POWERED_OFF = {
    "RVTools": corpus.to_csv(corpus.rows(corpus.nic(1, Powerstate="poweredOff"))),
    "Hyper-V": f'"VMName","MacAddress","IPAddresses","State"\n"a","{MAC}","{{10.0.0.1}}","Off"\n',
    **{
        f"a list: {column}": f"VM;MAC;IP;{column}\na;{MAC};10.0.0.1;{word}\n"
        for column, word in (("Power", "Ausgeschaltet"), ("Estado", "Apagado"), ("Status", "Down"), ("Zustand", "Aus"))
    },
    "vSphere": json.dumps([{"name": "a", "powerState": "suspended", "nics": [NIC]}]),
    "oVirt": json.dumps([{"name": "a", "status": "down", "nics": [NIC]}]),
    "OpenStack": json.dumps([{"name": "a", "status": "SHUTOFF", "addresses": {"net": [NOVA]}}]),
}  # fmt: skip


@pytest.mark.parametrize("content", POWERED_OFF.values(), ids=POWERED_OFF)
def test_a_vm_that_is_powered_off_keeps_its_addresses_and_says_so(content: str) -> None:
    (row,) = corpus.read(content)[1]
    assert (len(row.ips), row.refused) == (1, False)
    assert "powered_off" in codes(row)


def test_one_that_runs_says_nothing_and_one_without_an_address_says_why() -> None:
    _, rows = corpus.read(
        f"VM,Power,MAC,IP\na,poweredOn,{MAC},10.0.0.1\nb,poweredOff,{corpus.mac(2)},\n"
    )
    assert [codes(row) for row in rows] == [[], ["no_address", "powered_off"]]
    assert "nothing reports its addresses" in rows[1].problems[1].message


@pytest.mark.parametrize(("column", "word"), [("Vorlage", "Ja"), ("IsTemplate", "TRUE"), ("Modèle", "oui")])  # fmt: skip
def test_a_template_is_no_vm_in_any_language(column: str, word: str) -> None:
    reading, rows = corpus.read(f"VM,MAC,IP,{column}\na,{MAC},10.0.0.1,{word}\n")
    assert (rows, reading.skipped.names) == ([], {"template": ["a"]})


def test_each_of_powerclis_rows_keeps_the_origin_of_its_address() -> None:
    addresses = [("10.0.0.1", "24", "dhcp"), ("10.0.0.2", "24", "manual"),
                 ("2001:db8::1", "64", "linklayer"), ("2001:db8::2", "64", "random")]  # fmt: skip
    lines = [f"a,{MAC},{ip},{length},{origin}" for ip, length, origin in addresses]
    (row,) = corpus.read("\n".join(["VM,MacAddress,IPAddress,PrefixLength,Origin", *lines]))[1]
    assert row.ips == ("10.0.0.2/24", "2001:db8::1/64")
    assert row.note == "origin manual (10.0.0.2), linklayer (2001:db8::1)"
    assert codes(row) == ["origin_set_aside"] * 2
    assert row.problems[0].message.startswith("10.0.0.1 was left out: its origin is dhcp")


def test_origins_may_be_joined_like_their_addresses() -> None:
    text = f'VM,MAC,IP,Origin,Note\na,{MAC},"10.0.0.1, 10.0.0.2","dhcp, manual",Ada\n'
    (row,) = corpus.read(text)[1]
    assert (row.ips, row.note) == (("10.0.0.2",), "Ada, origin manual")


TWO = ("10.0.0.1", "10.0.0.2")
CELLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["10.0.0.1 & 10.0.0.2", "10.0.0.1 und 10.0.0.2", "10.0.0.1 / 10.0.0.2"], TWO),
    **dict.fromkeys(["10.0.0.1+10.0.0.2", "● 10.0.0.1 ● 10.0.0.2"], TWO),
    "10.0.0.1\u00a010.0.0.2\u200b": TWO,
    **dict.fromkeys(["10.0.0.1 255.255.255.0", "10.0.0.1 / 255.255.255.0"], ("10.0.0.1/24",)),
    **dict.fromkeys(["[10.0.0.1]", "<10.0.0.1>", "['10.0.0.1']", "10.0.0.1*"], ("10.0.0.1",)),
    **dict.fromkeys(["-", "–", "n/a", "DHCP", "None"], ()),  # noqa: RUF001
}


@pytest.mark.parametrize("cell", CELLS)
def test_words_and_signs_beside_addresses(cell: str) -> None:
    (row,) = corpus.read(f'VM,MAC,IP\na,{MAC},"{cell}"\n')[1]
    assert (row.ips, codes(row)) == (CELLS[cell], [] if CELLS[cell] else ["no_address"])
    assert not row.refused


@pytest.mark.parametrize(
    ("cells", "ips", "expected"),
    [
        (f"{MAC},10.0.0.1,24.0", ["10.0.0.1/24"], []),  # a decimal of a spreadsheet
        ("000000000000,10.0.0.1,", ["10.0.0.1"], ["zero_mac"]),  # no damage of a spreadsheet
        *((f"{word},10.0.0.1,", ["10.0.0.1"], ["mac_missing"]) for word in ("-", "n/a", "?")),
    ],
)
def test_cells_beside_addresses(cells: str, ips: list[str], expected: list[str]) -> None:
    (row,) = corpus.read(f"VM,MAC,IP,Prefix\na,{cells}\n")[1]
    assert ([*row.ips], codes(row)) == (ips, expected)


def test_bullets_and_invisible_characters_belong_to_no_name() -> None:
    _, rows = corpus.read(f"VM,MAC,IP\n└─ web\u200b,{MAC},10.0.0.1\n")
    assert (rows[0].vm, rows[0].ips) == ("web", ("10.0.0.1",))


@pytest.mark.parametrize(
    "cell", ["ip_address='10.0.0.1', subnet_id='abc'", "[{'subnet_id': 'abc', 'ip_address': '10.0.0.1'}]"]
)  # fmt: skip
def test_ports_of_openstack(cell: str) -> None:
    text = f'"Name","MAC Address","Fixed IP Addresses"\n"a","{MAC}","{cell}"\n'
    assert corpus.read(text)[1][0].ips == ("10.0.0.1",)


def test_a_long_note_is_a_remark_and_refuses_nothing() -> None:
    (row,) = corpus.read(f"VM,MAC,IP,Note\na,{MAC},10.0.0.1,{'x' * 300}\n")[1]
    assert (codes(row), row.refused, len(row.note)) == (["too_long"], False, 253)


def test_a_vm_that_only_vinfo_has_is_a_row_that_has_its_address() -> None:
    vinfo: list[Any] = [corpus.VINFO]
    vinfo += [["web-00001", "on", "", "", "", "10.0.0.1"], ["alone", "on", "", "", "", "10.0.0.9"]]
    vinfo += [["a template", "off", "True", "", "", "10.0.0.8"]]
    book = corpus.to_xlsx({"vInfo": vinfo, "vNetwork": corpus.rows(corpus.nic(1))})
    _, rows = corpus.read(book)
    assert [(row.vm, row.sheet) for row in rows] == [("web-00001", "vNetwork"), ("alone", "vInfo")]
    assert (rows[1].ips, codes(rows[1]), rows[1].refused) == (("10.0.0.9",), ["mac_missing"], True)


def test_tables_that_are_not_read_are_named() -> None:
    servers = [("VM", "MAC", "IP"), ("a", MAC, "10.0.0.1")]
    contacts = [("Name", "Phone"), ("Ada", "12")]
    sheets = {"Servers": servers, "Addresses": [line[1:] for line in servers], "Contacts": contacts}
    reading, rows = corpus.read(corpus.to_xlsx(sheets))
    assert [row.vm for row in rows] == ["a"]
    assert [(note.code, note.message) for note in reading.notes] == [
        ("ignored_tables", "tables that are not read: Addresses, Contacts")
    ]
