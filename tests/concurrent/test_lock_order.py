"""Two who lock the same rows lock them in one order: whoever waits for the first has locked none of the others."""

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models

from claims.access import memberships
from claims.models import Membership, Network
from claims.networks import networks
from pools.clusters import connections, drift
from pools.clusters.reconcile import leases
from pools.core.cilium import podippool
from pools.models import (
    Cluster,
    Connection,
    Container,
    CustomField,
    DirectoryAccount,
    Now,
    ObservedObject,
    Pool,
    PoolCIDR,
    WebhookTarget,
)
from pools.platform import advisory_locks, attributes
from pools.register import clusters, pools
from pools.register.plan import containers
from pools.register.pools import PoolChange
from tests import factories, people
from tests.claims import worlds
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)


def lock(*row_models: type[models.Model]) -> None:
    """Lock all rows, without waiting."""
    for model in row_models:
        list(model._default_manager.select_for_update(nowait=True, of=("self",)))


# --- what is deleted while a sync run writes it ---------------------------------------------------


def _disconnect(connection: Connection) -> None:
    connections.disconnect(connection, author=factories.BY)


def _remove(connection: Connection) -> None:
    clusters.remove(connection.cluster, author=factories.BY)


@pytest.mark.parametrize("delete", [_disconnect, _remove])
def test_a_cluster_goes_while_a_sync_run_writes(delete: Callable[[Connection], None]) -> None:
    connection = Connection.objects.create(
        cluster=factories.cluster(), server="https://api.example.org", due_at=Now()
    )
    factories.pool("10.0.0.0/24", within=connection.cluster)
    lease = leases.take(connection.pk, "worker")
    assert lease is not None
    begin = leases.transaction_under_lease(lease, factories.BY)
    with threads.waiting(lambda: delete(connection), behind=begin.__enter__):
        lock(Cluster, Connection, Pool, ObservedObject)
        begin.__exit__(None, None, None)
    assert not Connection.objects.exists()


# --- custom fields --------------------------------------------------------------------------------

_VALUES = {"custom_fields": {"rack": "a"}}


def _change_cluster() -> None:
    clusters.change(Cluster.objects.get(), _VALUES, author=factories.BY)


def _change_pool() -> None:
    change = PoolChange(**_VALUES)
    pools.change(Pool.objects.get(name="blue").pk, change, author=factories.BY)


def _change_cidr() -> None:
    cidr = PoolCIDR.objects.get(pool__name="blue")
    pools.change_cidr(cidr.pk, _VALUES, author=factories.BY)


def _change_container() -> None:
    containers.change(Container.objects.get().pk, _VALUES, author=factories.BY)


def _change_network() -> None:
    networks.change(Network.objects.get(), _VALUES, author=factories.BY)


@pytest.mark.parametrize(
    "change", [_change_cluster, _change_pool, _change_cidr, _change_container, _change_network]
)
def test_a_custom_field_is_renamed(change: Callable[[], None]) -> None:
    """Its definition is locked, then the rows with values of it are."""
    cluster = worlds.cluster()
    factories.pool("10.0.0.0/24", within=cluster, name="blue")
    worlds.network()
    containers.create(ip_network("10.0.0.0/8"), author=factories.BY)
    values = {"name": "rack", "label": "Rack", "type": "text", "object_types": [*attributes.MODELS]}
    attributes.create(values, author=factories.BY)
    with threads.waiting(change, behind=lambda: lock(CustomField)):
        lock(*attributes.MODELS.values())


def test_a_custom_field_is_renamed_while_a_container_is_changed() -> None:
    """The change is that of the renamed values: it waits before it reads them."""
    containers.create(ip_network("10.0.0.0/8"), author=factories.BY)
    values = {"name": "rack", "label": "Rack", "type": "text", "object_types": ["container"]}
    field = attributes.create(values, author=factories.BY)
    _change_container()

    def change() -> None:
        values = {"description": "Berlin", "custom_fields": {}}
        containers.change(Container.objects.get().pk, values, author=factories.BY)

    def rename() -> None:
        attributes.change(field, {"name": "shelf"}, author=factories.BY)

    with threads.waiting(change, behind=rename):
        pass
    container = Container.objects.get()
    assert (container.description, container.custom_fields) == ("Berlin", {"shelf": "a"})


# --- the address plan -----------------------------------------------------------------------------


def test_an_object_is_adopted_while_the_next_prefix_is_taken() -> None:
    cluster = factories.cluster()
    Connection.objects.create(cluster=cluster, server="https://api.example.org", due_at=Now())
    manifest = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": podippool.KIND,
        "metadata": {"name": "green", "uid": "1"},
        "spec": {"ipv4": {"cidrs": ["10.11.0.0/24"], "maskSize": 27}},
    }
    ObservedObject.objects.create(
        cluster=cluster,
        kind=podippool.KIND,
        name="green",
        uid="1",
        resource_version="1",
        manifest=manifest,
        api_version="cilium.io/v2alpha1",
        first_seen_at=Now(),
        changed_at=Now(),
    )
    thing = drift.ClusterObject(cluster, podippool.KIND, "green")
    with threads.waiting(
        lambda: drift.adopt(thing, author=factories.BY), behind=advisory_locks.lock_plan
    ):
        lock(Connection)
    assert Pool.objects.get().name == "green"


# --- users ----------------------------------------------------------------------------------------


def _delete(user: Any) -> None:
    people.browser().post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"})


def _leave(user: Any) -> None:
    memberships.delete(Membership.objects.get(user=user), author=factories.BY)


@pytest.mark.parametrize(
    ("work", "first"),
    [(_delete, DirectoryAccount), (_delete, WebhookTarget), (_delete, User), (_leave, User)],
)
def test_what_belongs_to_a_user(work: Callable[[Any], None], first: type[models.Model]) -> None:
    """A sign-in, what sends a message, and a form lock these rows before what belongs to them."""
    user = worlds.owner(worlds.cluster(), "blue").user
    DirectoryAccount.objects.create(source="ldap", subject="olga", user=user, username="olga")
    WebhookTarget.objects.create(
        name="hers",
        url="https://hooks.example.org/",
        user=user,
        created_at=Now(),
        secret_made_at=Now(),
    )
    others = [Membership, User.groups.through]
    with threads.waiting(lambda: work(user), behind=lambda: lock(first)):
        lock(*others)
    assert not Membership.objects.filter(user=user.pk).exists()
