"""Files as their owners write them: what a cell, a column or a page says is read, or named, and keeps its addresses."""

import json
from typing import Any

import pytest

from pools.core.register_import import parsing
from pools.models import Block, Container, Pool, RegisterRecord, ReservedRange
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import sources
from tests.register_imports.sources import BY, counts, read, rows_of

pytestmark = pytest.mark.django_db(transaction=True)


def texts(*contents: str) -> list[tuple[str, dict[str, str]]]:
    return [(row.kind, row.texts) for row in read(*contents).rows]


def parsed(content: str) -> Any:
    """The last row of a file."""
    row = read(content).rows[-1]
    return parsing.parse_row(row.kind, row.texts)


HEADERS = {
    "Spanish prefixes": ("Prefijo,Estado,Sitio,Inquilino\n10.3.0.0/24,Activo,Madrid,Acme\n", "pool", "Madrid"),
    "Spanish without accents": ("Red;Mascara;Sede\n10.3.0.0;255.255.255.0;Madrid\n", "pool", "Madrid"),
    "Spanish addresses": ("Dirección IP;Nombre;Ubicación;Estado\n10.3.0.4;;Madrid;Reservado\n", "reserved", "Madrid"),
    "French container": ("Préfixe,Statut,VRF,Lieu\n10.4.0.0/16,Conteneur,Global,Lyon\n", "container", "Lyon"),
    "Spanish container": ("Prefijo,Estado,VRF,Sede\n10.4.0.0/16,Contenedor,Global,Lyon\n", "container", "Lyon"),
    "French addresses": ("Adresse IP;Nom d'hôte;Statut;Lieu\n10.4.0.7;;Réservé;Lyon\n", "reserved", "Lyon"),
    "letters of double width": ("\uff33ubnet;\uff33ite\n10.3.0.0/24;Tokyo\n", "pool", "Tokyo"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "target", "site"), HEADERS.values(), ids=HEADERS)
def test_headers_and_choices_in_other_languages(content: str, target: str, site: str) -> None:
    row = parsed(content)
    assert (row.target or "pool", row.site, row.problems) == (target, site, [])


@pytest.mark.parametrize("word", ["Libre", "Disponible", "verfügbar", "frei"])
def test_an_address_that_is_free_is_held_for_nobody(word: str) -> None:
    assert [problem.code for problem in parsed(f"IP;Status\n10.3.0.4;{word}\n").problems] == ["not_in_use"]  # fmt: skip


@pytest.mark.parametrize("sign", ["—", "–", "-", "n/a", "NULL", "NoObject"])  # noqa: RUF001
def test_a_sign_for_nothing_is_no_name(sign: str) -> None:
    signs = ";".join([sign] * 3)
    row = parsed(f"IP;Status;Tenant;Site;Hostname;VRF\n10.3.0.4;Active;{signs};Global\n")
    assert (row.holder_id, row.org, row.site, row.details) == ("10.3.0.4", "", "", {})


def test_a_name_beside_a_description_is_not_lost() -> None:
    row = parsed("Subnet,Name,Description\n10.3.0.0/24,Büro LAN,second floor\n")
    assert row.description == "Büro LAN: second floor"
    row = parsed("Subnet,Name,Remark\n10.3.0.0/24,Büro LAN,since 2019\n")
    assert (row.description, row.details["note"]) == ("Büro LAN", "since 2019")


@pytest.mark.parametrize("column", ["Subnet,User\n10.3.0.0/24", "Start IP,End IP,User\n10.3.0.1,10.3.0.4"])  # fmt: skip
def test_who_uses_a_prefix_or_a_range_is_its_owner(column: str) -> None:
    assert parsed(f"{column},ops\n").details == {"owner": "ops"}


@pytest.mark.parametrize("mask", ["255.255.0.0", "16", "0.0.0.127"])
def test_a_mask_that_contradicts_its_prefix_refuses_the_row(mask: str) -> None:
    assert [problem.code for problem in parsed(f"Subnet,Mask\n10.3.0.0/24,{mask}\n").problems] == ["other_mask"]  # fmt: skip
    assert not parsed("Subnet,Mask\n10.3.0.0/24,255.255.255.0\n").problems


def test_a_formula_is_one_reason() -> None:
    assert len(parsing.parse_row("prefix", {"prefix": "="}).problems) == 1


def test_a_table_of_ranges_has_the_prefixes_beside_them() -> None:
    """Also one without a range, and one that is written as the address of an interface."""
    table = "Network,Start IP,End IP,Description\n10.3.0.0/24,10.3.0.10,10.3.0.20,dhcp\n10.4.0.0/24,,,none\n"
    assert [(kind, row["prefix"]) for kind, row in texts(table)] == [
        ("prefix", "10.3.0.0/24"),
        ("range", "10.3.0.0/24"),
        ("prefix", "10.4.0.0/24"),
    ]
    assert texts("Subnet,IP\n10.3.0.5/24,10.3.0.5\n")[0] == ("prefix", {"prefix": "10.3.0.5/24", "heading": "yes"})  # fmt: skip


def test_the_router_of_a_network_of_infoblox_is_reserved() -> None:
    file = (
        "header-network,address*,netmask*,routers\nnetwork,10.8.1.0,255.255.255.0,10.8.1.1\n"
        "header-fixedaddress,ip_address*,mac_address,routers\nfixedaddress,10.8.1.5,00:11:22:33:44:55,10.8.1.1\n"
    )
    assert [row.get("address") for _, row in texts(file)] == [None, "10.8.1.1", "10.8.1.5"]
    row = parsing.parse_row("address", texts(file)[1][1])
    assert (row.target, row.description) == ("reserved", "gateway")


def test_a_pool_of_nautobot_hands_out_all_its_addresses() -> None:
    row = parsed("namespace__name,prefix,status__name,type\nGlobal,10.9.0.0/30,Active,pool\n")
    assert row.details["is_pool"] == "yes"


def test_pages_that_are_not_in_a_file_are_named() -> None:
    prefix = {"id": 1, "prefix": "10.3.0.0/24", "status": {"value": "active"}}
    following = "https://netbox/api/ipam/prefixes/?offset=1"
    first = {"count": 2, "next": following, "previous": None, "results": [prefix]}
    second = {**first, "next": None, "previous": "https://netbox/api/ipam/prefixes/"}
    assert [note["code"] for note in read(json.dumps(first)).notes] == ["more_pages"]
    assert not read(json.dumps([first, second])).notes


IN_USE = {
    "a range with a remark": ("10.3.0.2-10.3.0.4 (DHCP)", {2, 3, 4}),
    "a range in a sentence": ("DHCP: 10.3.0.2 - 10.3.0.4", {2, 3, 4}),
    "the end as a number": ("DHCP 10.3.0.2-4", {2, 3, 4}),
    "with lengths": ("10.3.0.2/29-10.3.0.4/29", {2, 3, 4}),
    "in German": ("10.3.0.2 bis 10.3.0.4", {2, 3, 4}),
    "in Spanish": ("de 10.3.0.2 al 10.3.0.4", {2, 3, 4}),
    "a full stop": ("10.3.0.2.", {2}),
    "digits of double width": ("\uff11\uff10\uff0e3\uff0e0\uff0e2", {2}),
    "a length that nobody can read": ("10.3.0.2/33", {2}),
}


@pytest.mark.parametrize(("cell", "hosts"), IN_USE.values(), ids=IN_USE)
def test_what_a_cell_names_is_handed_out_to_nobody(cell: str, hosts: set[int]) -> None:
    draft = sources.draft(b"prefix\n10.3.0.0/29\n", f"IP;Host\n{cell};x\n")  # fmt: skip
    sources.commit(draft, skip_bad=True)
    free = {f"10.3.0.{host}/32" for host in {1, 2, 3, 4, 5, 6} - hosts}
    assert {*factories.drain(Pool.objects.get())} == free


@pytest.mark.parametrize("cell", ["10.3.1/24", "10.3.1.0\\24", "10.3.1.0/24 - VLAN 5"])
def test_a_prefix_that_cannot_be_read_keeps_its_container(cell: str) -> None:
    draft = sources.draft(f"Subnet\n10.3.0.0/16\n{cell}\n")
    assert [row.target for row in rows_of(draft)] == ["container", ""]


AGAIN = {
    "NetBox": ["Prefix,Status,VRF\n10.51.0.0/16,Container,Global\n● 10.51.16.0/24,Active,Global\n", "IP Address,VRF,Status,Role\n10.51.16.5/24,Global,Active,\n10.51.16.6/24,—,Deprecated,VIP\n"],
    "Infoblox": ["header-network,address*,netmask*,routers\nnetwork,10.8.1.0,255.255.255.0,10.8.1.1\nheader-dhcprange,start_address*,end_address*\ndhcprange,10.8.1.100,10.8.1.110\nheader-hostrecord,fqdn*,addresses\nhostrecord,a.example,\"10.8.1.5,10.8.1.101\"\n"],
    "ranges": ["Network,Start IP,End IP\n10.25.0.0/24,10.25.0.10,10.25.0.20\n10.26.0.0/24,,\n"],
    "refused rows": ["Subnet,IP,Host\n10.28.0.0/24,10.28.0.9,a\n,DHCP: 10.28.0.30-10.28.0.40,b\n,10.28.0.35,c\n"],
    "French": ["Préfixe;Nom;Passerelle;Utilisateur\n10.4.0.0/24;Bureau Été;10.4.0.1;Zoé\n"],
}  # fmt: skip


@pytest.mark.parametrize("contents", AGAIN.values(), ids=AGAIN)
def test_the_same_file_again_changes_nothing_and_the_undo_leaves_nothing(
    contents: list[str],
) -> None:
    cluster, uploads = factories.cluster(), [content.encode() for content in contents]
    draft = sources.draft(*uploads, cluster=cluster)
    sources.commit(draft, skip_bad=True)
    assert not {"new", "changed"} & counts(sources.draft(*uploads, cluster=cluster)).keys()
    sources.undo(draft)
    for model in (Pool, Container, Block, ReservedRange, RegisterRecord):
        assert not model._default_manager.exists()


@pytest.mark.parametrize("decided_by", ["vrf", "cluster"])
def test_an_address_of_a_prefix_that_goes_to_another_cluster(decided_by: str) -> None:
    """By the mapping of its VRF it is asked about, by the column cluster it goes there; nobody else gets it."""
    default, other = factories.cluster(), factories.cluster()
    mapping = {"vrf": {"blue": other.pk}} if decided_by == "vrf" else {}
    value = "blue" if decided_by == "vrf" else other.name
    prefix = f"prefix,{decided_by}\n10.3.0.0/29,{value}\n".encode()
    draft = sources.draft(prefix, b"IP,Host\n10.3.0.2,a\n", cluster=default, mapping=mapping)
    row = rows_of(draft)[1]
    if decided_by == "cluster":
        assert (row.status, row.cluster_id) == ("new", other.pk)
    else:
        assert (row.status, drafts.candidates(row)) == ("conflict", ["blue"])
    sources.commit(draft, skip_bad=True)
    assert "10.3.0.2/32" not in factories.drain(Pool.objects.get())


def test_a_vrf_in_another_cluster_is_chosen_for_a_row() -> None:
    default, other = factories.cluster(), factories.cluster()
    prefix = b"prefix,vrf\n10.3.0.0/29,blue\n"
    draft = sources.draft(prefix, b"IP,Host\n10.3.0.2,a\n", cluster=default, mapping={"vrf": {"blue": other.pk}})  # fmt: skip
    drafts.IMPORTS.correct_row(draft.pk, 2, {"vrf": "blue"}, author=BY)
    sources.commit(draft)
    assert str(Block.objects.get(space__cluster=other, state="held").cidr) == "10.3.0.2/32"
