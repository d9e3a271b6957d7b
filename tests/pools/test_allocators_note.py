"""The allocator's note of a pool (models.Window) repeats what pool and cluster say: it goes when that changes,
and without it blocks are handed out all the same."""

from collections.abc import Callable

import pytest

from pools.models import Cluster, Pool, Window
from pools.register import pools
from pools.register.allocator import window
from tests import factories


def _noted(pool: Pool) -> bool:
    return Window.objects.filter(pool=pool, pool_name__isnull=False).exists()


def _used(*cidrs: str, **settings: object) -> Pool:
    pool = factories.pool(*(cidrs or ("10.0.0.0/24",)), **settings)
    factories.take(pool)
    assert _noted(pool)
    return pool


def test_another_name_of_the_pool() -> None:
    pool, other = _used(), _used()
    Pool.objects.filter(pk=pool.pk).update(name="renamed")
    assert not _noted(pool)
    assert _noted(other)
    assert factories.take(pool)["pool"] == "renamed"


def test_another_name_of_the_cluster() -> None:
    pool = _used()
    other = _used("10.1.0.0/24", within=pool.cluster)
    Cluster.objects.filter(pk=pool.cluster_id).update(name="renamed")
    assert not _noted(pool)
    assert not _noted(other)
    assert [factories.take(item)["cluster"] for item in (pool, other)] == ["renamed"] * 2


def test_what_it_does_not_repeat_leaves_it() -> None:
    pool = _used()
    Pool.objects.filter(pk=pool.pk).update(description="for the shop", cooldown_seconds=7)
    Cluster.objects.filter(pk=pool.cluster_id).update(description="in Zürich")
    assert _noted(pool)


def test_a_second_family() -> None:
    pool = _used()
    assert len(factories.ask(pool).blocks) == 1
    pools.change(
        pool.pk, pools.PoolChange(families=factories.families("fd00::/112")), author=factories.BY
    )
    assert sorted(block["family"] for block in factories.ask(pool).blocks) == [4, 6]


def test_a_family_that_the_pool_has_beside_another_is_asked_for_by_name() -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/112")
    for _ in range(2):
        assert factories.take(pool, family=4)["family"] == 4
        assert factories.take(pool, family=6)["family"] == 6
    assert Window.objects.filter(pool=pool, only_family=False).count() == 2
    assert len(factories.ask(pool).blocks) == 2


def test_without_a_note_blocks_go_out_in_order_and_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One allocation in STEP writes the note; which one depends on the numbers that blocks got before.
    monkeypatch.setattr(window, "STEP", 2**62)
    pool = _used("10.0.0.0/22")
    Window.objects.filter(pool=pool).delete()
    assert factories.cidrs(pool, 3) == ["10.0.0.2/32", "10.0.0.3/32", "10.0.0.4/32"]
    assert not _noted(pool)
    window.top_up(pool.pk, 4)
    assert _noted(pool)
    assert factories.cidrs(pool, 1) == ["10.0.0.5/32"]


def test_what_an_older_version_has_written(sql: Callable[..., list[tuple[object, ...]]]) -> None:
    pool = _used()
    sql("DELETE FROM pools_window WHERE pool_id = %s", pool.pk)
    sql("INSERT INTO pools_window (pool_id, family, since) VALUES (%s, 4, now())", pool.pk)
    assert factories.take(pool, family=4)["pool"] == pool.name
    window.top_up(pool.pk, 4)
    assert Window.objects.filter(pool=pool).count() == 1
    assert _noted(pool)
    assert factories.take(pool)["cluster"] == pool.cluster.name


def test_the_environment_of_a_holder_is_served(
    sql: Callable[..., list[tuple[object, ...]]],
) -> None:
    """The note knows the cluster: an environment of another cluster is not the one asked for."""
    pool, other = _used(category="instance"), _used(category="instance")
    for item in (pool, other):
        factories.take(item, factories.holder(kind="instance"), org="o", env="e")
    sql(
        "UPDATE pools_environment SET degraded_since = now(), reason = 'ipam_exhausted' WHERE cluster_id = %s",
        pool.cluster_id,
    )
    factories.take(other, factories.holder(kind="instance"), org="o", env="e")
    degraded = "SELECT count(*) FROM pools_environment WHERE degraded_since IS NOT NULL"
    assert sql(degraded) == [(1,)]
    factories.take(pool, factories.holder(kind="instance"), org="o", env="e")
    assert sql(degraded) == [(0,)]
