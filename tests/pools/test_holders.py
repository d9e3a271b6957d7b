"""Who gets a block: one for each holder, environments of organisations, holders that return."""

import pytest

from pools.core import errors
from pools.models import Block, Environment, Pool
from pools.register.allocator import allocation, requests
from tests import clock as database_clock, factories

SINGLE = [("node", "node"), ("instance", "instance"), ("ipv4", "env")]
CIDR = {"node": "fd00::/64", "instance": "fd00::/64", "ipv4": "203.0.113.0/24"}
single = pytest.mark.parametrize(("category", "kind"), SINGLE)


@single
def test_asking_again_gives_the_same_block(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    who = factories.holder(kind=kind)
    first, second = factories.ask(pool, who), factories.ask(pool, who)
    assert (first.status, second.status) == (201, 200)
    assert second.blocks == first.blocks


@single
def test_not_of_another_pool_of_the_category(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    other = factories.pool(
        CIDR[category].replace("fd00", "fd01").replace("203.0", "198.51"),
        category=category,
        within=pool.cluster,
    )
    who = factories.holder(kind=kind)
    held = factories.take(pool, who)
    with pytest.raises(errors.OnePerHolder, match=f"holds {held['cidr']} of another pool"):
        factories.take(other, who)
    with pytest.raises(errors.OnePerHolder):
        factories.ask(other, who, factories.holder(kind=kind))


@single
def test_not_a_second_exact_one_nor_two(category: str, kind: str) -> None:
    pool = factories.pool(CIDR[category], category=category)
    who = factories.holder(kind=kind)
    held = factories.take(pool, who)
    exact = held["cidr"].replace("::1/", "::9/").replace(".1/", ".9/")
    with pytest.raises(errors.OnePerHolder, match=f"holds {held['cidr']} already"):
        factories.take(pool, who, cidr=exact)
    with pytest.raises(errors.OnePerHolder):
        factories.ask(pool, factories.holder(kind=kind), count=2)


@single
def test_the_database_holds_it(category: str, kind: str, breaks) -> None:
    pool = factories.pool(CIDR[category], category=category)
    first, second = (factories.take(pool, factories.holder(kind=kind)) for _ in range(2))
    with breaks("one_block_per_environment" if kind == "env" else "one_block_per_holder"):
        Block.objects.filter(pk=second["id"]).update(holder_id=first["holder"]["id"])


def test_named_twice_in_one_request_is_one_holder() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    who = factories.holder(kind="instance")
    blocks = factories.ask(pool, who, who).blocks
    assert {block["cidr"] for block in blocks} == {"fd00::1/128"}


def test_one_of_each_family() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    assert [b["family"] for b in factories.ask(pool, who).blocks] == [4, 6]
    assert factories.ask(pool, who).status == 200


def test_another_kind_or_cluster_or_category_is_another_holder() -> None:
    pool = factories.pool("fd00::/64", category="instance")
    node_pool = factories.pool("fd01::/64", category="node", within=pool.cluster)
    other = factories.pool("fd00::/64", category="instance")
    instance, node = factories.holder("x", kind="instance"), factories.holder("x", kind="node")
    got = [
        factories.take(pool, instance),
        factories.take(pool, node),
        factories.take(node_pool, node),
        factories.take(other, instance),
    ]
    assert len({block["id"] for block in got}) == 4


@pytest.mark.parametrize("category", ["pod", "vm"])
def test_elsewhere_a_holder_has_as_many_as_it_likes(category: str) -> None:
    pool = factories.pool("10.0.0.0/24", category=category)
    who = factories.holder()
    assert len({factories.take(pool, who)["cidr"] for _ in range(3)}) == 3
    assert len(factories.ask(pool, who, count=3).blocks) == 3


def test_the_same_name_with_another_uid_is_refused_until_released() -> None:
    pool = factories.pool("fd00::/64", category="node")
    old, new = (factories.holder("n", kind="node", uid=uid) for uid in ("u1", "u2"))
    factories.take(pool, old)
    for ask in ({}, {"cidr": "fd00::1/128"}):
        with pytest.raises(errors.HolderChanged, match="under another uid"):
            factories.take(pool, new, **ask)
    assert factories.ask(pool, factories.holder("n", kind="node")).status == 200


# --- An environment is (cluster, org, env): two organisations may each have one of a name ---------
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


# --- A holder that returns within its cooldown gets its former block back -------------------------
POOLS = [("node", "fd00::/64"), ("instance", "fd00::/64"), ("ipv4", "10.0.0.0/24"),
         ("vm", "10.0.0.0/24"), ("pod", "10.0.0.0/24")]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize(("category", "cidr"), POOLS)
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "in a batch"])
def test_the_former_block(category: str, cidr: str, batch: bool) -> None:
    pool = factories.pool(cidr, category=category, cooldown=3600)
    who = factories.holder()
    factories.take(pool)
    former = factories.take(pool, who)
    factories.give_back(former)
    other = factories.take(pool)
    answer = factories.ask(pool, *([factories.holder()] * batch), who)
    assert answer.status == 201
    assert former["cidr"] in {block["cidr"] for block in answer.blocks}
    assert former["cidr"] != other["cidr"]
    assert factories.row(former).holder_id == who.id


def test_the_newest_of_several() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    who = factories.holder()
    first, second = factories.ask(pool, who, count=2).blocks
    factories.give_back(second)
    factories.give_back(first)
    got = {factories.take(pool, who)["cidr"], factories.take(pool, who)["cidr"]}
    assert got == {first["cidr"], second["cidr"]}


def test_after_its_cooldown_it_is_like_everybody_else(clock) -> None:
    pool = factories.pool("10.0.0.0/30", cooldown=60)
    who = factories.holder()
    former = factories.take(pool, who)
    factories.give_back(former)
    clock.advance(61)
    assert factories.take(pool, who)["cidr"] == "10.0.0.2/32"


def test_another_uid_is_another_holder() -> None:
    pool = factories.pool("fd00::/64", category="node")
    former = factories.take(pool, factories.holder("n", kind="node", uid="u1"))
    factories.give_back(former)
    got = factories.take(pool, factories.holder("n", kind="node", uid="u2"))
    assert got["cidr"] != former["cidr"]


@pytest.mark.parametrize("uid", ["u1", ""], ids=["same uid", "uid not said"])
def test_the_same_uid_is_the_same_holder(uid: str) -> None:
    pool = factories.pool("fd00::/64", category="node")
    former = factories.take(pool, factories.holder("n", kind="node", uid="u1"))
    factories.give_back(former)
    got = factories.take(pool, factories.holder("n", kind="node", uid=uid))
    assert got["cidr"] == former["cidr"]


def test_the_exact_former_block_too_but_not_for_others() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    who = factories.holder()
    former = factories.take(pool, who, cidr="10.0.0.9/32")
    factories.give_back(former)
    end, before = factories.row(former).available_from, database_clock.moment()
    with pytest.raises(errors.CoolingDown, match="is in cooldown until") as caught:
        factories.take(pool, cidr="10.0.0.9/32")
    least, most = ((end - item).total_seconds() for item in (database_clock.moment(), before))
    assert least <= caught.value.retry_after <= most <= 60
    assert factories.take(pool, who, cidr="10.0.0.9/32")["id"] == former["id"]


def test_the_end_of_the_cooldown_is_forgotten(clock) -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    who = factories.holder()
    factories.give_back(factories.take(pool, who))
    back = factories.take(pool, who)
    assert (back["state"], back["cooldown_until"], back["released_at"]) == ("held", None, None)
    clock.advance(3600)
    assert factories.row(back).state == "held"


def test_each_family_of_a_dual_stack_pool() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64", category="node")
    who = factories.holder(kind="node")
    former = factories.ask(pool, who).blocks
    factories.give_back(former[1])
    factories.take(pool, factories.holder(kind="node"), family=6)
    again = factories.ask(pool, who)
    assert [block["cidr"] for block in again.blocks] == [block["cidr"] for block in former]
