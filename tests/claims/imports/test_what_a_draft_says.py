"""What a draft says beside its statuses: who was left out, which names and namespaces do not fit."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.models import NAD, Network, VMImport
from tests.claims import worlds
from tests.claims.imports import corpus, drafts, pages
from tests.claims.imports.drafts import mac, row
from tests.edges import api as apis

IPPOOL = """
apiVersion: k8s.ovn.org/v1alpha1
kind: IPPool
metadata: {name: blue}
spec:
  network-name: cluster_udn_green
  entries:
    00:50:56:00:00:01: [10.0.0.5/24]
"""


def _draft(network: Network, content: bytes, **values: Any) -> VMImport:
    api = apis.Api("operator")
    said = {"file": pages.file(content), "network": network.pk} | values
    answer = api.client.post(f"{apis.ROOT}imports/", said)
    assert answer.status_code == 201, answer.content
    return VMImport.objects.get(pk=answer.json()["id"])


def _codes(of: VMImport) -> list[set[str]]:
    rows = of.rows.order_by("number")
    return [{reason["code"] for reason in item.reasons} for item in rows]


def test_who_was_left_out_is_named(network: Network) -> None:
    table = corpus.rows(
        corpus.nic(1),
        corpus.nic(2, VM="golden-image", Template="True"),
        corpus.nic(3, VM="vCLS-1"),
        corpus.nic(4, VM="vCLS-2"),
        corpus.nic(5, VM="dr-web", **{"SRM Placeholder": "True"}),
    )
    draft = _draft(network, corpus.to_csv(table).encode(), namespace="blue")
    notes = apis.Api()("GET", f"imports/{draft.pk}/").json()["notes"]
    notes = {note["code"]: note["message"] for note in notes}
    assert notes["left_out_template"] == "Templates are left out: golden-image"
    assert notes["left_out_vcls"].endswith(": vCLS-1, vCLS-2")
    assert notes["left_out_srm_placeholder"].endswith(": dr-web")
    page = pages.page(pages.browser(), draft)
    assert all(name in page for name in ("golden-image", "vCLS-2", "dr-web"))


def test_a_namespace_that_the_network_does_not_serve(network: Network) -> None:
    NAD.objects.create(network=network, namespace="blue", name="n")
    web, db = row("web", mac(1), "10.0.0.11"), row("db", mac(2), "10.0.0.12", namespace="gren")
    of = drafts.draft(network, web, db)
    assert drafts.statuses(of) == {1: ("new", set()), 2: ("new", {"no_nad"})}
    page = pages.page(pages.browser(), of)
    assert "The namespace gren has no network attachment definition" in page


def test_the_namespace_of_a_udn_that_has_only_one(network: Network) -> None:
    Network.objects.update(kind="udn", namespace="shop")
    network.refresh_from_db()
    of = drafts.draft(network, row("web", mac(1), "10.0.0.11"), namespace="", target="ipamclaims")
    (result,) = of.rows.all()
    assert (result.status, result.namespace, result.claim_name[:4]) == ("new", "shop", "web.")


def test_a_manifest_of_another_network(network: Network) -> None:
    draft = _draft(network, IPPOOL.encode())
    assert _codes(draft) == [{"another_network"}]
    assert _codes(_draft(network, IPPOOL.replace("green", "blue").encode())) == [set()]
    assert f"target network of the row is {network.name}" in pages.page(pages.browser(), draft)


def test_what_mtv_does_not_preserve(network: Network) -> None:
    """Of Windows guests: by DHCP, or made of the link layer's address."""

    def vm(number: int, system: str, origin: str) -> dict[str, Any]:
        guest = {"mac": mac(number), "ip": f"10.0.0.{10 + number}", "origin": origin, "prefix": 24}
        nic = {"network": {"id": "n"}, "mac": mac(number), "deviceKey": 4000}
        name = {"id": f"vm-{number}", "name": f"vm-{number}"}
        return name | {"guestId": system, "nics": [nic], "guestNetworks": [guest]}

    inventory = [
        vm(1, "windows2019srv_64Guest", "dhcp"),
        vm(2, "windows2019srv_64Guest", "manual"),
        vm(3, "rhel8_64Guest", "dhcp"),
        vm(4, "windows9_64Guest", "linklayer"),
    ]
    draft = _draft(network, json.dumps(inventory).encode(), namespace="blue")
    assert _codes(draft) == [{"not_preserved"}, set(), set(), {"not_preserved"}]
    assert draft.rows.filter(status="new").count() == 4, "marked only"


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", [pages.NEW, "admin:claims_entry_add"])
def test_no_network_is_chosen_that_cannot_hold_static_vms(network: Network, page: str) -> None:
    """Only the one that can, if there is one."""
    worlds.ippool(network)
    other = worlds.ippool(worlds.network("cluster_udn_a", subnets=("10.9.0.0/24",)), "a")
    client = pages.browser()

    def chosen(**query: int) -> str:
        form = client.get(reverse(page), {"kind": "vm", **query}).context["form"]
        return str(form["where" if "where" in form.fields else "ippool"].value() or "")

    names = {f"network-{other.network_id}", str(other.pk)}
    Network.objects.update(lifecycle="")
    assert chosen() == ""
    assert chosen(network=other.network_id, ippool=other.pk) in names
    Network.objects.filter(pk=other.network_id).update(lifecycle="Persistent")
    assert chosen() in names
    Network.objects.update(lifecycle="Persistent")
    assert chosen() == "", "two can: a person chooses"


def _text(client: Any, *ips: str) -> Any:
    lines = "\n".join(f"vm-{n} {mac(n)} {ip}" for n, ip in enumerate(ips, 1))
    said = {"kind": "", "where": "", "target": "ippool", "namespace": "shop", "text": lines}
    return client.post(reverse(pages.NEW), said)


def test_the_network_that_the_addresses_tell(network: Network, client: Client) -> None:
    worlds.network("cluster_udn_red", subnets=("10.9.0.0/24",))
    worlds.network("cluster_udn_l3", subnets=("10.0.0.0/16",), topology="layer3")
    _text(client, "10.0.0.5", "10.0.0.6/24")
    vm_import = VMImport.objects.get()
    assert (vm_import.network, vm_import.counts["new"]) == (network, 2)
    assert [note["code"] for note in vm_import.notes] == ["recognised", "network_by_addresses"]
    page = pages.page(client, vm_import)
    assert f"No network was specified: {network.name} was chosen, the only network" in page
    client.post(reverse(pages.NEW), pages.typed(network, where="", mac=mac(9), ips="10.9.0.7"))
    assert VMImport.objects.latest("pk").network.name == "cluster_udn_red"


@pytest.mark.sample(3)
@pytest.mark.parametrize("ips", [["10.0.0.5", "10.9.0.5"], ["10.7.0.5"], ["192.0.2.1"]])
def test_addresses_that_tell_no_network(network: Network, ips: list[str]) -> None:
    worlds.network("cluster_udn_red", subnets=("10.9.0.0/24",))
    worlds.network("cluster_udn_l3", subnets=("10.7.0.0/24",), topology="layer3")
    answer = _text(pages.browser(), *ips)
    assert answer.context["form"].errors["where"] == ["Choose the target network."]
    assert not VMImport.objects.exists()


def test_a_program_is_told_the_network_of_its_addresses(network: Network, api: apis.Api) -> None:
    answer = api("POST", "imports/", {"rows": [row("web", mac(1), "10.0.0.5")], "commit": True})
    detail = apis.refused(answer, 400, "required")["detail"]
    assert f"whose subnets contain all addresses is {network.name} ({network.pk})" in detail
    answer = api("POST", "imports/", {"rows": [row("web", mac(1), "10.5.0.5")]})
    assert network.name not in apis.refused(answer, 400, "required")["detail"]


def test_a_network_that_is_not_seen_is_not_told(network: Network) -> None:
    NAD.objects.create(network=network, namespace="bank", name="n", allow_persistent_ips=True)
    other = worlds.network("cluster_udn_red", subnets=("10.9.0.0/24",))
    answer = _text(pages.owner(other, "shop"), "10.0.0.5")
    assert network.name not in pages.text(answer)
    assert answer.context["form"].errors["where"]
