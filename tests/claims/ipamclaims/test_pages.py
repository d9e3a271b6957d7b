"""The pages of claims: the list, one claim, asking for addresses, giving them back, what is wrong."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.models import IPAMClaim, Network
from pools.models import Block
from tests import people
from tests.claims import worlds
from tests.edges.api import user

LIST, ADD = reverse("admin:claims_ipamclaim_changelist"), reverse("admin:claims_ipamclaim_add")
PROBLEMS = reverse("admin:claims_ipamclaim_problems")
MAC = "02:03:04:05:06:07"
FAILED = [
    {
        "type": "IPsAllocated", "status": "False", "reason": "IPAddressConflict",
        "message": "Requested IP 10.0.0.5 is already assigned in the network",
        "lastTransitionTime": "2026-05-05T10:00:00Z",
    }
]  # fmt: skip


@pytest.fixture
def network() -> Network:
    created = worlds.network(default_gateways=["10.0.0.1"])
    created.nads.create(namespace="blue", name="blue", role="primary", allow_persistent_ips=True)
    return created


@pytest.fixture
def owner(network: Network) -> Client:
    return people.signed_in(worlds.owner(network.cluster, "blue").user)


def text(client: Client, url: str, **query: str) -> str:
    answer = client.get(url, query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def page_of(claim: IPAMClaim, name: str = "change") -> str:
    return reverse(f"admin:claims_ipamclaim_{name}", args=[claim.pk])


def leaked(network: Network) -> IPAMClaim:
    claim = worlds.claim(
        network, "vm1", "10.0.0.5/24", uid="u", vm_uid="v", follows_cluster=True,
        finalizers=["kubevirt.io/persistent-ipam"],
    )  # fmt: skip
    details = {"id": claim.pk, "ips": claim.ips, "command": "kubectl patch it"}
    worlds.leaked(claim, message="The VM vm1 is gone.", details=details)
    return claim


@pytest.mark.exhaustive
def test_the_list_says_why_and_what_next(browser: Client, network: Network) -> None:
    assert ADD in text(browser, LIST)
    worlds.claim(network, "vm1", "10.0.0.9/24", owner_pod="of-yesterday")
    worlds.workload(network, "vm1", "02:00:00:00:00:99", "10.0.0.9/24", pods=["launcher"])
    worlds.claim(network, "vm2", mac=MAC, ips_requested=["10.0.0.5/24"], conditions=FAILED)
    page = text(browser, LIST)
    for words in ("10.0.0.9/24", "launcher", MAC, "bound", "conflict", "address already in use"):
        assert words in page
    assert "of-yesterday" not in page
    assert "Request another address" in page
    assert "vm1." not in text(browser, LIST, state="conflict")
    assert "vm2." not in text(browser, LIST, q="10.0.0.9")
    assert browser.get(reverse("admin:claims_ipamclaim_export")).status_code == 200


def test_a_claims_page(browser: Client, network: Network) -> None:
    asks = {"mac": MAC, "ips_requested": ["10.0.0.5/24"]}
    claim = worlds.claim(network, "vm2", **asks, conditions=FAILED)
    page = text(browser, page_of(claim))
    assert "Address already in use: Requested IP 10.0.0.5 is already assigned" in page
    for words in ("<details>", "IPAddressConflict", "kind: VirtualMachine", "kind: IPAMClaim"):
        assert words in page
    assert f"/api/v1/ipamclaims/{claim.pk}/" in page
    assert "v1.multus-cni.io/default-network" in page


@pytest.mark.exhaustive
def test_asking_for_addresses(browser: Client, network: Network) -> None:
    form_data = {
        "network": str(network.pk), "namespace": "blue", "vm": "vm1", "mac": "02-03-04-05-06-07",
        "ips": "10.0.0.5", "note": "for Saturday",
    }  # fmt: skip
    assert browser.get(ADD).status_code == 200
    for changes, words in (
        ({"ips": "10.9.0.5"}, "in none of the network"),
        ({"ips": "10.0.0.5 10.0.0.6"}, "at most one of each family"),
        ({"mac": "02"}, "Must be a MAC address"),
        ({"namespace": "a.b"}, "A name is made of"),
    ):
        assert words in browser.post(ADD, form_data | changes).content.decode()
    answer = browser.post(ADD, form_data)
    claim = IPAMClaim.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page_of(claim))
    assert (claim.mac, claim.ips_requested, claim.note) == (MAC, ["10.0.0.5/24"], "for Saturday")
    assert "has an IPAMClaim" in browser.post(ADD, form_data).content.decode()
    edited = {"mac": "", "ips": "", "note": "never mind"}
    assert browser.post(page_of(claim, "edit"), edited).status_code == 302
    claim.refresh_from_db()
    assert (claim.mac, claim.ips_requested, claim.note) == (None, [], "never mind")
    assert "Release" in text(browser, page_of(claim, "delete"))
    assert browser.post(page_of(claim, "delete")).status_code == 302
    assert not IPAMClaim.objects.exists()


def test_what_has_addresses_is_not_changed(browser: Client, network: Network) -> None:
    claim = worlds.claim(network, "vm1", "10.0.0.5/24", uid="u", follows_cluster=True)
    assert 'name="ips"' not in text(browser, page_of(claim, "edit"))
    browser.post(page_of(claim, "delete"))
    assert IPAMClaim.objects.exists()
    assert "delete it there" in text(browser, page_of(claim))


@pytest.mark.exhaustive
def test_a_leaked_claim(browser: Client, network: Network) -> None:
    claim = leaked(network)
    assert PROBLEMS in text(browser, LIST)
    page = text(browser, PROBLEMS)
    assert "kubectl patch it" in page
    assert page_of(claim, "release") in page
    assert "remove finalizer" not in page
    detail = text(browser, page_of(claim))
    assert "kubectl patch ipamclaims.k8s.cni.cncf.io vm1.cluster_udn_blue -n blue" in detail
    assert "10.0.0.5" in text(browser, page_of(claim, "release"))
    assert "required" in browser.post(page_of(claim, "release"), {}).content.decode()
    assert browser.post(page_of(claim, "release"), {"reason": "its VM is gone"}).status_code == 302
    assert not Block.objects.filter(state="held").exists()
    assert "addresses released" in text(browser, page_of(claim))


def test_nothing_is_wrong(browser: Client) -> None:
    assert "No findings about claims" in text(browser, PROBLEMS)


@pytest.mark.exhaustive
def test_a_vm_owner_sees_their_own_and_what_to_do(owner: Client, network: Network) -> None:
    mine = worlds.claim(network, "vm1", "10.0.0.9/24")
    worlds.claim(network, "secret", "10.0.0.5/24", namespace="red")
    page = text(owner, LIST)
    assert "vm1." in page
    assert "secret." not in page + text(owner, LIST, q="secret") + text(owner, LIST, q="10.0.0.5")
    detail = text(owner, page_of(mine))
    assert "kind: VirtualMachine" in detail
    assert "Start the VM" in detail
    form_data: dict[str, Any] = {"network": network.pk, "namespace": "blue", "vm": "vm2"}
    refused = owner.post(ADD, form_data | {"ips": "10.0.0.5"}).content.decode()
    assert "already in use" in refused
    assert "secret" not in refused
    foreign = owner.post(ADD, form_data | {"namespace": "red"}).content.decode()
    assert "namespaces that you own" in foreign
    assert owner.post(ADD, form_data | {"ips": "10.0.0.7"}).status_code == 302


def test_a_viewer_is_offered_no_change(network: Network) -> None:
    client = people.signed_in(user("viewer", is_staff=True))
    claim = worlds.claim(network, "vm1", "10.0.0.9/24")
    assert ADD not in text(client, LIST)
    assert "Release claim" not in text(client, page_of(claim))
