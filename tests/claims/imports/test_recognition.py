"""What an upload is, is recognised by its content; each user is offered what they may import."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from claims.models import Network, VMImport
from pools.models import Import, RegisterImport
from tests.claims.imports import corpus, pages
from tests.register_imports import sources

VMS = b"VM,MAC address,IP addresses,Network\nweb,00:50:56:00:00:01,10.0.0.5,vlan1\n"
LIST = b"web 00:50:56:00:00:01 10.0.0.5\n"
PREFIXES = b"prefix,status,vrf,description\n10.9.0.0/24,active,,of the office\n"
ADDRESSES = b"IP address,MAC,Device,Port,Description\n10.9.0.5,00:50:56:00:00:01,sw1,1,a host\n"
SHEET = b"address,holder,description\n10.9.0.5,web,a host\n"
INFOBLOX = (
    b"header-hostaddress,address*,parent*,mac_address\nhostaddress,10.9.0.5,web,00:50:56:00:00:01\n"
)
VNETWORK = (",".join(corpus.VNETWORK) + "\n").encode()
EITHER = b"VM,IP address\nweb,10.0.0.5\n"
NEITHER = b"colour,size\nblue,5\n"


def _send(client: Client, *files: bytes, **said: Any) -> Any:
    named = [pages.file(content, f"file-{n}.csv") for n, content in enumerate(files)]
    return client.post(reverse(pages.NEW), {"kind": "", "file": named, **said})


def _notes(row: Import) -> str:
    return " ".join(note["message"] for note in row.notes)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (VMS, "Read as template, CSV, because of the columns VM, MAC address, IP addresses"),
        (LIST, "Read as list, because of lines with MAC addresses"),
        (VNETWORK, "Read as RVTools, CSV, because of the columns VM"),
        (b'{"rows": []}', "Read as typed rows, because of the objects in it"),
    ],
)
def test_vms(network: Network, content: bytes, told: str) -> None:
    _send(pages.browser(), content, where=f"network-{network.pk}")
    assert told in _notes(VMImport.objects.get())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (PREFIXES, "Read as NetBox, CSV, because of the columns prefix, status, vrf, description"),
        (ADDRESSES, "Read as phpIPAM, because of the columns IP address, MAC, Device, Port"),
        (SHEET, "Read as spreadsheet, because of the columns address, holder, description"),
        (INFOBLOX, "Read as Infoblox, CSV, because of rows that begin with header-"),
        (b"10.9.0.0/24;the office\n", "because of lines that begin with prefixes or addresses"),
    ],
)
def test_registers(network: Network, content: bytes, told: str) -> None:
    _send(pages.browser(), content)  # of the only cluster
    made = RegisterImport.objects.get()
    assert told in _notes(made)
    assert made.cluster == network.cluster


def test_what_both_can_read_is_asked_and_what_none_can_says_what_was_looked_for(
    network: Network, client: Client
) -> None:
    (told,) = _send(client, EITHER).context["form"].errors["file"]
    assert "file-0.csv: these can be VMs (the columns VM, IP address) or a register" in told
    (told,) = _send(client, NEITHER).context["form"].errors["file"]
    assert "VMs: no header row found: name the columns as in RVTools" in told
    assert "Register: no header row found: name the columns as NetBox" in told
    assert not Import.objects.exists()
    _send(client, EITHER, kind="vm", where=f"network-{network.pk}")
    assert Import.objects.get().kind == "vm"


def test_several_files(network: Network, client: Client) -> None:
    answer = _send(client, PREFIXES, VMS)
    assert "import them apart" in answer.context["form"].errors["file"][0]
    assert "one file at a time" in _send(client, VMS, VMS).context["form"].errors["file"][0]
    addresses = sources.table(sources.IMPORT_ADDRESS, [("10.9.0.5/24", "active", "", "", "pc", "")])
    _send(client, PREFIXES, addresses)
    assert RegisterImport.objects.get().counts["new"] == 2


def test_manifests_of_pools_have_a_page_of_their_own(network: Network) -> None:
    answer = _send(pages.browser(), b"kind: CiliumPodIPPool\nmetadata: {name: blue}\n")
    link = reverse("admin:import")
    assert f'<a class="cad-link" href="{link}">Import pools</a>' in pages.text(answer)


def _only(*names: str) -> Client:
    """A user who may do nothing but this with imports."""
    user = User.objects.create(username="-".join(names), is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(user)
    return client


def test_an_owner_of_vms_is_offered_vms_only(network: Network) -> None:
    client = pages.owner(network, "shop")
    shown = pages.text(client.get(reverse(pages.NEW)))
    assert 'name="kind" value="vm"' in shown
    for hidden in ('value="register"', 'name="mapping"', "NetBox over its API", "CiliumPodIPPool"):
        assert hidden not in shown
    answer = _send(client, PREFIXES, kind="register")
    assert answer.context["form"].errors["kind"]
    assert "no header row found" in _send(client, PREFIXES).context["form"].errors["file"][0]
    assert not Import.objects.exists()


def test_each_kind_has_its_rights(network: Network) -> None:
    _send(pages.browser(), VMS, where=f"network-{network.pk}")
    client = _only("add_registerimport", "view_registerimport")
    shown = pages.text(client.get(reverse(pages.NEW)))
    assert 'name="vm"' not in shown
    assert _send(client, VMS, kind="vm").context["form"].errors["kind"]
    _send(client, PREFIXES, where=f"cluster-{network.cluster_id}")
    vms, register = Import.objects.order_by("pk")
    assert (vms.kind, register.kind) == ("vm", "register")
    listed = reverse("admin:pools_import_changelist")
    assert "file-0.csv" in pages.text(client.get(listed))
    assert client.get(reverse("admin:pools_import_change", args=[vms.pk])).status_code == 404
    assert client.get(reverse("admin:pools_import_change", args=[register.pk])).status_code == 200
    commit = {"action": "commit"}
    url = reverse("admin:pools_import_change", args=[register.pk])
    assert client.post(url, commit).status_code == 403
