"""The quota of addresses that VM owners may take in a namespace: at each entry point, and at once."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.entries import ippools
from claims.models import NAD, Entry, IPAMClaim, IPPool
from tests.claims import worlds
from tests.concurrent import threads
from tests.edges.api import Api

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.fixture
def ippool(settings: Any) -> IPPool:
    """Of a network of the namespaces shop and bank, with the quota of two addresses."""
    settings.IPAM_VM_OWNER_QUOTA = 2
    network = worlds.network("prod-network")
    for namespace in ("shop", "bank"):
        NAD.objects.create(
            network=network, namespace=namespace, name="n", allow_persistent_ips=True
        )
    created = worlds.ippool(network, "prod-pool")
    ippools.update_conditions(created)
    return created


@pytest.fixture
def owner(ippool: IPPool) -> Api:
    """Who owns shop and bank."""
    api = Api("vm-owner")
    memberships.create(ippool.cluster, ["shop", "bank"], author=worlds.BY, user=api.user)
    return api


def entry(mac: str, last: int, namespace: str = "shop") -> dict[str, Any]:
    return {"mac": mac, "ips": [f"10.0.0.{last}/24"], "vm": f"vm-{last}", "namespace": namespace}


def claim(last: int, *ips: str) -> dict[str, Any]:
    return {
        "cluster": "prod", "namespace": "shop", "network": "prod-network", "vm": f"vm-{last}",
        "ips_requested": list(ips),
    }  # fmt: skip


def refused(answer: Any) -> bool:
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "quota_exceeded"), problem
    assert "namespace shop" in problem["detail"]
    return True


def test_entries_and_claims_count_together(ippool: IPPool, owner: Api) -> None:
    entries = f"ippools/{ippool.pk}/entries/"
    assert refused(owner("POST", entries, [entry(A, 5), entry(B, 6), entry(C, 7)]))
    owner.create(entries, entry(A, 5))
    owner.create("ipamclaims/", claim(5))  # of the same VM: it gets the address of the entry
    owner.create("ipamclaims/", claim(6, "10.0.0.6/24"))
    assert refused(owner("POST", entries, entry(C, 7)))
    assert refused(owner("POST", "ipamclaims/", claim(7)))
    assert refused(owner("POST", "ipamclaims/", claim(8, "10.0.0.8/24")))
    owner.create(entries, entry(C, 9, "bank"))  # another namespace has its own
    assert (Entry.objects.count(), IPAMClaim.objects.count()) == (2, 2)
    assert owner("DELETE", f"{entries}{Entry.objects.get(mac=A).pk}/").status_code == 204
    owner("DELETE", f"ipamclaims/{IPAMClaim.objects.get(vm='vm-5').pk}/")
    owner.create(entries, entry(B, 10))


def test_a_request_that_is_changed(ippool: IPPool, owner: Api) -> None:
    created = owner.create("ipamclaims/", claim(5, "10.0.0.5/24"))
    worlds.entry(ippool, A, "10.0.0.7/24", vm="vm-7", namespace="shop")
    worlds.entry(ippool, B, "10.0.0.8/24", vm="vm-8", namespace="shop")
    path = f"ipamclaims/{created['id']}/"  # above the quota already, through an operator
    assert owner("PATCH", path, {"note": "mine"}).status_code == 200
    assert owner("PATCH", path, {"ips_requested": ["10.0.0.6/24"]}).status_code == 200


def test_the_form_and_imports(ippool: IPPool, owner: Api) -> None:
    for mac, last in ((A, 5), (B, 6)):
        owner.create(f"ippools/{ippool.pk}/entries/", entry(mac, last))
    owner.user.is_staff = True
    owner.user.save()
    client = Client()
    client.force_login(owner.user)
    values = entry(C, 7) | {"ips": "10.0.0.7", "ippool": ippool.pk}
    answer = client.post(reverse("admin:claims_entry_add"), values)
    assert "its VM owners may take 2" in answer.content.decode()
    values = {"network": ippool.network_id, "namespace": "shop", "vm": "vm-7", "mac": C, "ips": ""}
    answer = client.post(reverse("admin:claims_ipamclaim_add"), values)
    assert "its VM owners may take 2" in answer.content.decode()
    rows = [{"vm": "vm-7", "mac": C, "ips": ["10.0.0.7"]}]
    for target in ("ippool", "ipamclaims"):
        body = {
            "cluster": "prod", "network": ippool.network_id, "namespace": "shop", "target": target,
            "rows": rows, "commit": True,
        }  # fmt: skip
        assert refused(owner("POST", "imports/", body))
    assert (Entry.objects.count(), IPAMClaim.objects.count()) == (2, 0)


def test_operators_and_clusters_have_no_quota(ippool: IPPool) -> None:
    operator = Api()
    operator.create(f"ippools/{ippool.pk}/entries/", [entry(A, 5), entry(B, 6), entry(C, 7)])
    operator.create("ipamclaims/", claim(8))
    assert Entry.objects.count() == 3


def test_without_the_setting_there_is_none(ippool: IPPool, owner: Api, settings: Any) -> None:
    settings.IPAM_VM_OWNER_QUOTA = 0
    owner.create(f"ippools/{ippool.pk}/entries/", [entry(A, 5), entry(B, 6), entry(C, 7)])


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_do_not_exceed_it_together(ippool: IPPool, owner: Api) -> None:
    """Entries and claims, which take different locks otherwise."""
    entries = f"ippools/{ippool.pk}/entries/"
    works: list[Any] = [
        lambda last=last: owner("POST", entries, entry(f"02:00:00:00:01:{last:02}", last))
        for last in range(10, 14)
    ]
    works += [
        lambda last=last: owner("POST", "ipamclaims/", claim(last, f"10.0.0.{last}/24"))
        for last in range(20, 24)
    ]
    answers = threads.together(works)
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [409] * 6
    assert Entry.objects.count() + IPAMClaim.objects.count() == 2
