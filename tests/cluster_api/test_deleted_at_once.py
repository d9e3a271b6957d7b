"""A claim that is deleted while it is answered leaves nothing behind; what was left behind is taken away."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from pools.clusters.client import api_client
from pools.core.cluster_api import contract
from pools.models import Leak
from tests.cluster_api.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pool(world: World) -> World:
    world.pool("10.0.0.0/29")
    world.put_pool("pool")
    return world


@pytest.mark.parametrize("before", ["finalizer", "address"])
def test_a_claim_that_goes_between_list_and_write(
    before: str, pool: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`before` which write the claim goes; a finalizer is taken off by force."""
    expected = contract.CLAIM_KIND if before == "finalizer" else contract.ADDRESS_KIND
    get = api_client.ClusterClient.get
    gone = []

    def get_later(self: Any, resource: Any, name: str, *args: Any) -> Any:
        if resource.kind == expected and name == "short" and not gone:
            gone.append(name)
            claim = pool.claim("short")
            pool.strip(claim, pool.claims) if claim else None
        return get(self, resource, name, *args)

    send_apply = api_client.ClusterClient.apply

    def apply_later(self: Any, resource: Any, manifest: Any, **options: Any) -> Any:
        if resource.kind == expected and manifest["metadata"]["name"] == "short" and not gone:
            gone.append("short")
            pool.strip(pool.claim("short"), pool.claims)
        return send_apply(self, resource, manifest, **options)

    pool.put_claim("short")
    pool.put_claim("stays")
    monkeypatch.setattr(api_client.ClusterClient, "get", get_later)
    if before == "finalizer":
        monkeypatch.setattr(api_client.ClusterClient, "apply", apply_later)
    pool.sync()
    monkeypatch.undo()
    assert pool.address("short") is None
    pool.sync_until_missed()
    assert set(pool.held()) == {"blue/stays"}


def left_behind(world: World) -> None:
    """An IPAddress whose claim was deleted without its finalizer."""
    world.follow_claims("test")
    world.strip(world.claim("test"), world.claims)
    world.sync_until_missed()
    assert world.address_text("test") == "10.0.0.1"
    assert Leak.objects.get().confirmed_at is None
    Leak.objects.update(missed_at=F("missed_at") - timedelta(days=1))
    world.sync()
    assert Leak.objects.get().confirmed_at is not None


def test_an_address_without_a_claim_is_released_after_two_observations(pool: World) -> None:
    left_behind(pool)
    pool.sync()
    assert pool.address("test") is None
    pool.sync_until_missed()
    assert pool.held() == {}
    assert not pool.findings()


def test_a_claim_that_comes_back_keeps_it(pool: World) -> None:
    left_behind(pool)
    pool.follow_claims("test")
    assert pool.address_text("test") == "10.0.0.1"
    assert pool.held() == {"blue/test": "10.0.0.1"}


def test_a_paused_pool_keeps_it(pool: World) -> None:
    left_behind(pool)
    manifest = pool.pool_object()
    metadata = manifest["metadata"] | {"annotations": {contract.PAUSED: ""}}
    pool.server.put(manifest | {"metadata": metadata})
    pool.sync()
    assert pool.address_text("test") == "10.0.0.1"
