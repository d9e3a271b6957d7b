"""Many claims at once are all answered; an event of one lists nothing, and reads no answered claim."""

from typing import Any

import pytest

from pools.cluster_api import claim_writes
from pools.clusters.reconcile import leases, watch_events
from pools.core.cluster_api import contract
from pools.models import Block
from pools.register.allocator import window
from tests.cluster_api.world import BLUE, HANDLERS, World
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.reconcile import small

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 40  # 5,000 take two to three minutes


def _ingest(world: World, kind: str, *events: tuple[str, Any]) -> None:
    """What a watch reported since the last list."""
    run = small.ingest(
        world.connection, kind, HANDLERS, *events, open_client=lambda _: gateways.to(world.server)
    )
    assert not run.error_code, (run.error_code, run.error)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the claims that were compared with what they should be."""
    names: list[str] = []
    compare = claim_writes.serving_writes

    def recorded(target: Any, observed: Any, *rest: Any) -> Any:
        names.append(observed.claim.name.name)
        return compare(target, observed, *rest)

    monkeypatch.setattr(claim_writes, "serving_writes", recorded)
    return names


@pytest.fixture
def read_claims(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the claims that were read."""
    names: set[str] = set()
    parse = contract.parse_claim

    def recorded(manifest: Any) -> Any:
        claim = parse(manifest)
        names.add(claim.name.name)
        return claim

    monkeypatch.setattr(contract, "parse_claim", recorded)
    return names


def test_all_are_answered_and_an_event_concerns_one(
    world: World, compared: list[str], read_claims: set[str]
) -> None:
    world.pool("10.0.0.0/16")
    world.put_pool("pool")
    for number in range(MANY):
        world.put_claim(f"machine-{number}")
    world.sync()
    assert all(world.ready(f"machine-{number}") == ("True", "Ready") for number in range(MANY))
    assert len(set(world.held().values())) == MANY
    world.sync()  # which observes the IPAddresses
    compared.clear()
    read_claims.clear()
    claim = world.put_claim("one-more")
    if isinstance(world.server, FakeCluster):
        world.server.log.clear()
    _ingest(world, contract.CLAIM_KIND, ("ADDED", claim))
    assert world.ready("one-more") == ("True", "Ready")
    assert set(compared) == read_claims == {"one-more"}
    if isinstance(world.server, FakeCluster):
        assert not world.server.log.select("list")


def test_events_of_pools_and_addresses_concern_who_lacks_one(
    world: World, compared: list[str]
) -> None:
    world.pool("10.0.0.0/24")
    world.put_pool("pool")
    for name in ("kept", "lost"):
        world.put_claim(name)
    world.follow_claims("waits", pool="later")
    world.sync()
    assert world.ready("waits") == ("False", "PoolNotReady")
    compared.clear()
    _ingest(world, contract.POOL_KIND, ("ADDED", world.put_pool("later")))
    assert world.ready("waits") == ("True", "Ready")
    assert set(compared) == {"waits"}
    address = world.address("lost")
    world.strip(address, world.addresses)
    _ingest(world, contract.ADDRESS_KIND, ("DELETED", address))
    assert world.address_text("lost") == world.held()[f"{BLUE}/lost"]
    assert "kept" not in compared
    world.sync()
    assert set(compared) == {"kept", "lost", "waits"}


def test_a_change_of_the_register_concerns_who_lost_an_address(
    world: World, read_claims: set[str]
) -> None:
    """Somebody releases the address in the register; the IPAddress has it, and the claim gets it back."""
    world.serve("kept", "lost")
    world.sync()
    text = world.address_text("lost")
    window.release_blocks([Block.objects.get(holder_id=f"{BLUE}/lost").pk])
    assert set(world.held()) == {f"{BLUE}/kept"}
    read_claims.clear()
    lease = leases.borrow(world.connection.pk, "worker")
    assert lease is not None
    run = watch_events.apply_register_changes(
        lease, HANDLERS, open_client=lambda _: gateways.to(world.server)
    )
    assert not run.error_code, (run.error_code, run.error)
    assert world.held()[f"{BLUE}/lost"] == text
    assert read_claims == {"lost"}


def test_a_claim_that_vanishes_in_an_event_releases_its_own_address_only(world: World) -> None:
    """Without its finalizer it goes without us; the addresses of claims that nobody read stay."""
    world.serve("kept", "lost")
    world.sync()
    claim, address = world.claim("lost"), world.address("lost")
    world.strip(claim, world.claims)
    _ingest(world, contract.CLAIM_KIND, ("DELETED", claim))
    assert set(world.held()) == {f"{BLUE}/kept", f"{BLUE}/lost"}, "its IPAddress still has it"
    world.strip(address, world.addresses)
    _ingest(world, contract.ADDRESS_KIND, ("DELETED", address))
    assert set(world.held()) == {f"{BLUE}/kept"}
