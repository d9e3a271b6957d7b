"""What tools write around the addresses of a guest: each value is read, left out with a word, or refused with one reason."""

import json
from typing import Any

import pytest

from claims.models import Network, VMRow
from tests.claims import worlds
from tests.claims.imports import corpus, drafts, pages
from tests.claims.imports.drafts import mac, of_file as draft, row
from tests.edges import api as apis


def results(of: Any) -> list[tuple[str, list[str], list[str]]]:
    """The status, the addresses and the codes of each row."""
    said = {"prefix_added"}
    return [
        (line.status, line.ips, sorted({reason["code"] for reason in line.reasons} - said))
        for line in of.rows.order_by("number")
    ]


def rvtools(*nics: dict[str, object]) -> str:
    return corpus.to_csv(corpus.rows(*nics))


GUESTS = {
    "service": ("10.0.0.25, 10.96.0.1", "new", ["10.0.0.25/24"], ["unknown_set_aside"]),
    "containers": ("10.0.0.25, 172.17.0.1", "new", ["10.0.0.25/24"], ["unknown_set_aside"]),
    "pods": ("10.0.0.25, fd00:10:244::1", "new", ["10.0.0.25/24"], ["unknown_set_aside"]),
    "another network": ("10.0.0.25, 10.9.0.5", "invalid", [], ["outside_subnet"]),
    "none of it": ("10.96.0.1, 10.97.0.1", "invalid", [], ["outside_subnet"]),
    "virtual": ("10.0.0.25/24, 10.0.0.30/32", "invalid", [], ["virtual_address"]),
}


@pytest.mark.parametrize(("cell", "status", "ips", "codes"), GUESTS.values(), ids=GUESTS)
def test_addresses_of_the_guest(
    network: Network, cell: str, status: str, ips: Any, codes: Any
) -> None:
    worlds.network("cluster_udn_other", subnets=("10.9.0.0/24",))
    nic = corpus.nic(1, **{"IPv4 Address": cell, "IPv6 Address": ""})
    assert results(draft(network, rvtools(nic))) == [(status, ips, codes)]


CELLS = {
    "braces": ("{10.0.0.22, fe80::1}", "new", ["link_local_set_aside"]),
    "an apostrophe": ("'10.0.0.22", "new", []),
    "Excel's quotes": ('="10.0.0.22"', "new", []),
    "a remark": ("10.0.0.22 (DHCP)", "new", []),
    "a bullet": ("•\u00a010.0.0.22", "new", []),
    "a type": ("System.String[]", "invalid", ["list_type"]),
    "a generic type": ("System.Collections.Generic.List`1[System.String]", "invalid", ["list_type"]),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "status", "codes"), CELLS.values(), ids=CELLS)
def test_what_stands_around_an_address(
    network: Network, cell: str, status: str, codes: list[str]
) -> None:
    quoted = cell.replace('"', '""')
    text = f'VMName,SwitchName,MacAddress,IPAddresses\nweb,vSwitch,00155D010203,"{quoted}"\n'
    (result,) = results(draft(network, text))
    assert result == (status, ["10.0.0.22/24"] if status == "new" else [], codes)
    reasons = VMRow.objects.latest("pk").reasons
    assert len({reason["message"] for reason in reasons}) == len(reasons)


def test_names_as_vsphere_writes_them(network: Network) -> None:
    """Forklift decodes names before it changes them (pkg/controller/provider/model/vsphere)."""
    nic = {"VM": "app%2fdb", "Network": "VLAN 10%2f16", "IPv4 Address": "10.0.0.25"}
    of = draft(network, rvtools(corpus.nic(1, **nic), corpus.nic(2, VM="50%252f web")))
    rows = of.rows.order_by("number")
    assert [line.vm for line in rows] == ["app-db", "502f-web"]
    assert rows[0].port_group == "VLAN 10/16"


def test_columns_that_are_not_read_are_named(network: Network) -> None:
    text = "VM,MAC,IP Address,New IP Address,Gateway\nweb,00:50:56:00:00:01,10.0.0.5,10.0.0.6,x\n"
    of = draft(network, text)
    assert [note["code"] for note in of.notes] == ["ignored_columns"]
    assert of.notes[0]["message"].endswith(": New IP Address, Gateway")
    assert not draft(network, rvtools(corpus.nic(1))).notes


def nic(number: int, *guests: tuple[str, str], **vm: Any) -> dict[str, Any]:
    networks = [
        {"mac": mac(number), "ip": ip, "origin": origin, "prefix": 24 if "." in ip else 64}
        for ip, origin in guests
    ]
    return {"name": f"vm-{number}", "nics": [{"mac": mac(number)}], "guestNetworks": networks} | vm


def test_the_lasting_address_of_a_family() -> None:
    dual = worlds.network("cluster_udn_dual", subnets=("10.3.0.0/24", "2001:db8:3::/64"))
    vms = [
        nic(1, ("10.3.0.5", "manual"), ("2001:db8:3::5", "linklayer"), ("2001:db8:3::abcd", "random")),
        nic(2, ("10.3.0.6", "dhcp"), ("10.3.0.7", "manual"), ("2001:db8:3::6", "random")),
        nic(3, ("10.3.0.8", "manual"), ("10.3.0.9", "manual"), ("2001:db8:3::8", "")),
    ]  # fmt: skip
    aside = ["origin_set_aside"]
    assert results(draft(dual, json.dumps(vms))) == [
        ("new", ["10.3.0.5/24", "2001:db8:3::5/64"], aside),
        ("new", ["10.3.0.7/24", "2001:db8:3::6/64"], aside),
        ("invalid", ["10.3.0.8/24", "10.3.0.9/24", "2001:db8:3::8/64"], ["too_many_addresses"]),
    ]


def test_the_address_of_the_vm_is_told(network: Network) -> None:
    vm = nic(1, ipAddress="10.0.0.21")
    vinfo = [corpus.VINFO, ["web-00002", "on", "", "", "", "10.0.0.22"]]
    rows = corpus.rows(corpus.nic(2, **{"IPv4 Address": "", "IPv6 Address": ""}))
    book = corpus.to_xlsx({"vInfo": vinfo, "vNetwork": rows})
    of = draft(network, json.dumps([vm]))
    assert "10.0.0.21 for its VM" in of.rows.get().reasons[0]["message"]
    (line,) = draft(network, book).rows.all()
    assert (line.status, len(line.reasons)) == ("invalid", 1)
    assert "10.0.0.22 for its VM" in line.reasons[0]["message"]


def test_floating_addresses_are_named(network: Network) -> None:
    kind, at = "OS-EXT-IPS:type", "OS-EXT-IPS-MAC:mac_addr"
    addresses = [
        {"addr": "10.0.0.5", at: mac(1), kind: "fixed"},
        {"addr": "192.0.2.5", at: mac(1), kind: "floating"},
    ]
    of = draft(network, json.dumps([{"name": "web", "addresses": {"net": addresses}}]))
    assert of.notes[0]["message"].endswith("of the VMs are left out: web (192.0.2.5)")


@pytest.mark.parametrize("target", ["ippool", "ipamclaims"])
def test_a_claim_without_a_mac_is_usable_or_refused(network: Network, target: str) -> None:
    manifest = corpus.ipamclaim("web.blue", network=network.name) | {"status": {"ips": ["10.0.0.7/24"]}}  # fmt: skip
    ((status, _ips, codes),) = results(draft(network, json.dumps(manifest), target=target))
    assert ("mac_missing" in codes) == (status == "invalid")


def test_rows_without_a_namespace_are_counted_and_get_one(network: Network) -> None:
    rows = [row("a", mac(1), "10.0.0.5"), row("b", mac(2), "10.0.0.6", namespace="shop")]
    of, api = drafts.draft(network, *rows, namespace=""), apis.Api()
    assert api("GET", f"imports/{of.pk}/").json()["without_namespace"] == 1
    client, url = pages.browser(), f"/admin/pools/import/{of.pk}/change/"
    assert "1 row has no namespace" in pages.page(client, of)
    sent = {"network:": network.pk, "namespace:": "blue"}
    assert client.post(url, {"action": "map", **sent}).status_code == 302
    assert api("GET", f"imports/{of.pk}/").json()["without_namespace"] == 0
    lines = of.rows.order_by("number")
    assert [(line.namespace, line.status) for line in lines] == [("blue", "new"), ("shop", "new")]


def test_rows_of_a_person_are_not_set_aside(network: Network) -> None:
    of = drafts.draft(network, row("web", mac(1), "10.0.0.5", "10.96.0.1"))
    assert [status for status, _ips, _codes in results(of)] == ["invalid"]
