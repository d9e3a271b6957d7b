"""Network containers: one per CIDR and address space, nested freely, and nothing changes inside."""

from ipaddress import ip_network

import pytest
from django.db import IntegrityError, transaction

from pools.core import errors
from pools.models import AddressSpace, Container, Event, JournalEntry, Pool
from pools.register import journal
from pools.register.plan import containers
from tests import factories
from tests.edges import api as apis

pytestmark = pytest.mark.django_db
TEN = ip_network("10.0.0.0/8")


def test_one_container_of_a_cidr_in_each_space_and_in_the_fleet() -> None:
    space = AddressSpace.objects.get(cluster=factories.cluster())
    for scope in (None, space):
        containers.create(TEN, space=scope, author=factories.BY)
        with pytest.raises(errors.AlreadyExists, match=r"10\.0\.0\.0/8"):
            containers.create(TEN, space=scope, author=factories.BY)
        with pytest.raises(IntegrityError), transaction.atomic():
            Container.objects.create(cidr="10.0.0.0/8", space=scope)
    containers.create(ip_network("10.1.0.0/16"), author=factories.BY)
    assert Container.objects.count() == 3


def test_each_change_is_an_event_of_its_author() -> None:
    cluster = factories.cluster()
    space = AddressSpace.objects.get(cluster=cluster)
    row = containers.create(TEN, space=space, name="Office", author=factories.BY)
    containers.change(row.pk, {"name": "Offices"}, author=factories.BY)
    containers.delete(row.pk, author=factories.BY)
    rows = Event.objects.filter(type__startswith="container.").order_by("id")
    assert [(event.type, event.cidr, event.message) for event in rows] == [
        ("container.created", "10.0.0.0/8", "Office"),
        ("container.changed", "10.0.0.0/8", "Offices"),
        ("container.deleted", "10.0.0.0/8", "Offices"),
    ]
    assert {(event.actor, event.cluster_id) for event in rows} == {(factories.BY.actor, cluster.pk)}


def test_a_deletion_takes_only_the_container_and_its_journal() -> None:
    pool = factories.pool("10.1.0.0/24")
    outer = containers.create(TEN, author=factories.BY)
    inner = containers.create(ip_network("10.1.0.0/16"), author=factories.BY)
    journal.add(outer, "Ask Ann.", "info", user=None, author=factories.BY)
    assert JournalEntry.objects.get().cluster is None
    containers.delete(outer.pk, author=factories.BY)
    assert Container.objects.get() == inner
    assert Pool.objects.get() == pool
    assert not JournalEntry.objects.exists()


def test_rest_with_versions() -> None:
    api = apis.Api("operator")
    apis.Api().cluster("prod")
    body = {"cidr": "10.0.0.0/16", "address_space": "prod", "name": "Rack 1"}
    created = api.create("containers/", body)
    assert created["address_space"] == "prod"
    fleet = api.create("containers/", {"cidr": "10.0.0.0/8"})
    assert fleet["address_space"] is None
    path = f"containers/{created['id']}/"
    changed = api("PATCH", path, {"name": "Rack 2"}, If_Match='"1"')
    assert (changed.json()["name"], changed["ETag"]) == ("Rack 2", '"2"')
    assert api("PATCH", path, {"name": "Rack 3"}, If_Match='"1"').status_code == 412
    assert api("DELETE", path, If_Match='"1"').status_code == 412
    assert api("PATCH", path, {"address_space": None}).json()["code"] == "immutable_in_use"
    assert _ids(api, "?address_space=fleet") == [fleet["id"]]
    assert _ids(api, "?address_space=prod") == [created["id"]]
    assert _ids(api, "?within=10.0.0.0/12") == [created["id"]]
    note = {"object_type": "container", "object_id": fleet["id"], "text": "Ask Ann."}
    assert api.create("journal/", note)["cluster"] is None
    assert api("DELETE", path, If_Match='"2"').status_code == 204


def _ids(api: apis.Api, query: str) -> list[int]:
    return [row["id"] for row in api("GET", f"containers/{query}").json()["results"]]
