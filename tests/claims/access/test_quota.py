"""Limits of VM owners: their quota, and no rights by the users that they manage."""

import functools
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from claims.access import memberships
from claims.entries import ippools
from claims.models import ClusterGroupMember, Entry, IPAMClaim, IPPool
from tests import people
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
        network.nads.create(namespace=namespace, name="n", allow_persistent_ips=True)
    created = worlds.ippool(network, "prod-pool")
    ippools.update_conditions(created)
    return created


@pytest.fixture
def owner(ippool: IPPool) -> Api:
    """Who owns shop and bank."""
    return worlds.owner(ippool.cluster, "shop", "bank")


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
    client = people.signed_in(owner.user)
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
    bodies = [(entries, entry(f"02:00:00:00:01:{last:02}", last)) for last in range(10, 14)]
    bodies += [("ipamclaims/", claim(last, f"10.0.0.{last}/24")) for last in range(20, 24)]
    works: list[Any] = [functools.partial(owner, "POST", *request) for request in bodies]
    answers = threads.together(works)
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [409] * 6
    assert Entry.objects.count() + IPAMClaim.objects.count() == 2


# --- Whoever manages users becomes no VM owner by it: neither by a name that a cluster gives
# rights to, nor by a group
MANAGES = tuple(
    f"{verb}_{model}" for model in ("user", "group") for verb in ("view", "add", "change", "delete")
)


@pytest.fixture
def manager() -> Any:
    """Manages users and groups, and owns the VMs of a namespace."""
    person = people.user()
    memberships.create(worlds.cluster(), ["mine"], author=worlds.BY, user=person)
    person.user_permissions.add(*Permission.objects.filter(codename__in=MANAGES))
    return person


@pytest.fixture
def browser(manager: Any) -> Client:
    return people.signed_in(manager)


def change(client: Client, user: User, **fields: Any) -> int:
    data = {"username": user.username, "is_active": "on", "is_staff": "on", **fields}
    data |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return int(client.post(reverse("admin:auth_user_change", args=[user.pk]), data).status_code)


def test_no_account_gets_a_name_that_a_cluster_gives_rights_to(
    browser: Client, manager: Any
) -> None:
    row = worlds.bound(worlds.cluster(), "shop", "vera")
    worlds.bound(worlds.cluster(), "shop", "team", kind="Group")
    ClusterGroupMember.objects.create(connection=row.connection, group="team", username="tom")
    for name in ("vera", "tom"):
        assert change(browser, manager, username=name) == 200
        assert browser.post(reverse("admin:auth_user_add"), {"username": name}).status_code == 200
        assert not User.objects.filter(username=name).exists()
    mine = Group.objects.create(name="mine")
    change_url = reverse("admin:auth_group_change", args=[mine.pk])
    for url in (reverse("admin:auth_group_add"), change_url):
        assert "rights" in browser.post(url, {"name": "team"}).content.decode()
    assert not Group.objects.filter(name="team").exists()
    assert change(browser, manager, username="else") == 302


def test_no_owner_and_no_group_of_another_namespace_is_within_reach(
    browser: Client, manager: Any
) -> None:
    other, bound_user = people.user(), User.objects.create(username="vera")
    memberships.create(worlds.cluster(), ["other"], author=worlds.BY, user=other)
    memberships.create(worlds.cluster(), ["other"], author=worlds.BY, group="owners")
    worlds.bound(worlds.cluster(), "shop", "vera")
    for person in (other, bound_user):
        assert change(browser, person, first_name="X") == 403
        password = reverse("admin:auth_user_password_change", args=[person.pk])
        assert browser.post(password, {"password1": "p", "password2": "p"}).status_code == 403
    owners = Group.objects.get(name="owners")
    change(browser, manager, groups=[owners.pk])
    assert not manager.groups.filter(name="owners").exists()
    url = reverse("admin:auth_group_change", args=[owners.pk])
    assert browser.post(url, {"name": "x"}).status_code == 403


def test_an_administrator_gives_these_names(manager: Any) -> None:
    worlds.bound(worlds.cluster(), "shop", "vera")
    manager.groups.set([Group.objects.get(name="administrator")])
    client = people.signed_in(manager)
    assert change(client, manager, username="vera") == 302
