"""An environment is (cluster, org, env): two organisations may each have one of a name."""

import pytest

from pools.core import errors
from pools.models import Block, Environment, Pool
from pools.register.allocator import allocation, requests
from tests import factories

ENV = factories.holder("prod", kind="env")


def _pool(cidr: str = "203.0.113.0/24", **settings: object) -> Pool:
    return factories.pool(cidr, category="ipv4", **settings)  # type: ignore[arg-type]


def _ways() -> list[dict[str, str]]:
    return [{}, {"cidr": "203.0.113.9/32"}]


@pytest.mark.parametrize("way", _ways(), ids=["next", "exact"])
def test_each_organisation_has_its_own(way: dict[str, str]) -> None:
    pool = _pool()
    acme = factories.take(pool, ENV, org="acme", **way)
    globex = factories.ask(pool, ENV, org="globex")
    assert globex.status == 201
    assert globex.blocks[0]["id"] != acme["id"]
    assert factories.ask(pool, ENV, org="acme", **way).blocks == [acme]
    assert factories.ask(pool, ENV, org="acme").status == 200


def test_one_of_a_name_and_organisation(sql, breaks) -> None:
    pool = _pool()
    first = factories.take(pool, ENV, org="acme")
    other = factories.take(pool, ENV, org="globex")
    with pytest.raises(errors.OnePerHolder):
        factories.take(pool, ENV, org="acme", cidr="203.0.113.9/32")
    with breaks("one_block_per_environment"):
        sql("UPDATE pools_block SET org = 'acme' WHERE id = %s", other["id"])
    sql("UPDATE pools_block SET org = 'initech' WHERE id = %s", other["id"])
    assert Block.objects.filter(holder_id="prod", state="held").count() == 2
    assert factories.row(first).org == "acme"


def test_anothers_exact_address_is_taken() -> None:
    pool = _pool()
    factories.take(pool, ENV, org="acme", cidr="203.0.113.9/32")
    with pytest.raises(errors.AlreadyAllocated):
        factories.take(pool, ENV, org="globex", cidr="203.0.113.9/32")


@pytest.mark.parametrize("way", [*_ways(), {"count": 1, "family": 4}], ids=["next", "exact", "one"])
def test_only_its_own_organisation_gets_a_cooling_one_back(way: dict[str, str]) -> None:
    pool = _pool()
    held = factories.take(pool, ENV, org="acme", cidr="203.0.113.9/32")
    factories.give_back(held)
    if "cidr" in way:
        with pytest.raises(errors.CoolingDown):
            factories.take(pool, ENV, org="globex", **way)
    else:
        assert factories.take(pool, ENV, org="globex", **way)["id"] != held["id"]
    assert factories.take(pool, ENV, org="acme", **way)["id"] == held["id"]


def test_a_batch_tells_them_apart_too() -> None:
    pool = _pool()
    first = factories.take(pool, ENV, org="acme")
    both = factories.ask(pool, ENV, factories.holder("test", kind="env"), org="globex").blocks
    assert first["id"] not in {block["id"] for block in both}


def test_a_cooldown_is_kept_from_the_other_one_by_the_database(sql, breaks) -> None:
    held = factories.take(_pool(), ENV, org="acme")
    factories.give_back(held)
    take = (
        "UPDATE pools_block SET state = 'held', available_from = NULL, org = %s,"
        " allocated_at = ipam_now() WHERE id = %s"
    )
    with breaks("cooldown_is_kept"):
        sql(take, "globex", held["id"])
    sql(take, "acme", held["id"])


def test_a_late_release_that_says_its_organisation_frees_nobody_elses(clock) -> None:
    pool = _pool("203.0.113.9/32")
    acme = factories.take(pool, ENV, org="acme")
    factories.give_back(acme)
    clock.advance(24 * 3600 + 1)
    requests.end_cooldowns()
    globex = factories.take(pool, ENV, org="globex")
    assert globex["id"] == acme["id"]
    with pytest.raises(errors.HolderChanged):
        factories.give_back(acme, org="acme")
    assert factories.row(globex).state == "held"
    assert not factories.give_back(globex, org="globex").repeated


def test_other_holders_have_one_whatever_their_organisation(breaks) -> None:
    pool = factories.pool("fd00::/64", category="instance")
    who = factories.holder("i-1", kind="instance")
    first = factories.take(pool, who, org="acme")
    assert factories.take(pool, who, org="globex")["id"] == first["id"]
    second = factories.take(pool, factories.holder("i-2", kind="instance"), org="globex")
    with breaks("one_block_per_holder"):
        Block.objects.filter(pk=second["id"]).update(holder_id="i-1")
    assert isinstance(allocation.release(first["id"], who, author=factories.BY), allocation.Release)


@pytest.mark.parametrize("cidrs", [False, True], ids=["from the window", "fresh"])
def test_each_block_of_a_batch_serves_its_holder(cidrs: bool) -> None:
    pool = _pool()
    if not cidrs:
        factories.take(pool, factories.holder("first", kind="env"), org="acme")
    who = [factories.holder(name, kind="env") for name in ("prod", "stage", "test")]
    blocks = factories.ask(pool, *who, org="acme").blocks
    assert [(block["holder"]["id"], block["env"]) for block in blocks] == [
        (name, name) for name in ("prod", "stage", "test")
    ]
    for block in blocks:
        assert Block.objects.get(pk=block["id"]).env == block["holder"]["id"]
    served = Environment.objects.filter(cluster=pool.cluster, org="acme")
    assert {"prod", "stage", "test"} <= set(served.values_list("env", flat=True))


def test_a_batch_that_finds_none_left_degrades_each_environment() -> None:
    pool = _pool("203.0.113.0/30")
    who = [factories.holder(name, kind="env") for name in ("prod", "stage", "test")]
    with pytest.raises(errors.PoolExhausted):
        factories.ask(pool, *who, org="acme")
    degraded = Environment.objects.filter(cluster=pool.cluster, degraded_since__isnull=False)
    assert sorted(degraded.values_list("env", flat=True)) == ["prod", "stage", "test"]
