"""Reserved ranges, CIDRs and pools that come and go while blocks are handed out."""

import threading
import time
from collections.abc import Callable
from ipaddress import ip_network

import pytest
from django.db import transaction

from pools.core import errors
from pools.models import Block, Cluster, FreeSpan, Pool, PoolCIDR, Window
from pools.register import pools, usage
from pools.register.allocator import requests, window
from tests import factories
from tests.concurrent import threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]
SECONDS = 1.0


def _for_a_while(work: Callable[[], object]) -> Callable[[], int]:
    def run() -> int:
        until, times = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            work()
            times += 1
        return times

    return run


def _take_and_give_back(pool: Pool, count: int = 1) -> Callable[[], int]:
    def once() -> None:
        try:
            blocks = factories.ask(pool, factories.holder(), count=count).blocks
        except errors.PoolExhausted:
            return
        for block in blocks:
            factories.give_back(block)

    return _for_a_while(once)


def _nothing_is_lost(pool: Pool) -> None:
    """Every block of the pool is free, once: as a row or in a span."""
    used = usage.pool_usage(pool)[4]
    assert (used.held, used.cooling, used.free) == (0, 0, used.capacity - used.reserved)
    spans = FreeSpan.objects.filter(pool_cidr__pool=pool)
    in_spans = sum(int(span.last - span.first) + 1 for span in spans)
    rows = Block.objects.filter(pool=pool, withheld=False).count()
    assert in_spans + rows == used.free
    assert len(factories.drain(pool)) == used.free


@pytest.mark.exhaustive
def test_ranges_come_and_go() -> None:
    pool = factories.pool("10.0.0.0/24")

    def reserve(span: str) -> Callable[[], int]:
        return _for_a_while(
            lambda: pools.unreserve(factories.reserve(pool, span), author=factories.BY)
        )

    tidy = _for_a_while(requests.end_cooldowns)
    works = [_take_and_give_back(pool)] * 5 + [_take_and_give_back(pool, 20), tidy]
    works += [reserve("10.0.0.0-10.0.0.99"), reserve("10.0.0.150-10.0.0.200")]
    assert not threads.failures(threads.together(works))
    _nothing_is_lost(pool)


def test_nothing_is_given_out_of_a_range_once_it_is_there() -> None:
    pool = factories.pool("10.0.0.0/22", cooldown=0)
    inside = ip_network("10.0.1.0/24")
    since: list[float] = []

    def reserve() -> list[tuple[float, str]]:
        time.sleep(SECONDS / 3)
        factories.reserve(pool, str(inside))
        since.append(time.monotonic())
        return []

    def take() -> list[tuple[float, str]]:
        got, until = [], time.monotonic() + SECONDS
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                block = factories.take(pool)
            except errors.PoolExhausted:
                break
            got.append((began, block["cidr"]))
        return got

    results = threads.together([reserve, *[take] * 6])
    assert not threads.failures(results)
    after = [cidr for result in results for began, cidr in result if began > since[0]]  # type: ignore[union-attr]
    assert not [cidr for cidr in after if ip_network(cidr).subnet_of(inside)]


@pytest.mark.exhaustive
def test_a_cidr_goes_while_blocks_are_taken() -> None:
    pool = factories.pool("10.0.0.0/28", "10.0.1.0/28")

    def remove_and_add() -> None:
        try:
            pools.remove_cidr(factories.cidr(pool, "10.0.1.0/28").pk, author=factories.BY)
        except errors.CIDRInUse:
            return
        pools.add_cidr(pool.pk, factories.entry("10.0.1.0/28"), author=factories.BY)

    works = [_take_and_give_back(pool)] * 5 + [_for_a_while(remove_and_add)]
    assert not threads.failures(threads.together(works))
    held = Block.objects.filter(state="held", cidr__net_contained="10.0.1.0/28")
    assert PoolCIDR.objects.filter(pool=pool, cidr="10.0.1.0/28").exists() or not held.exists()
    _nothing_is_lost(pool)


@pytest.mark.exhaustive
def test_a_pool_goes_while_blocks_are_taken() -> None:
    for _ in range(8):
        pool = factories.pool("10.0.0.0/24")
        factories.give_back(factories.take(pool))

        def delete(pool: Pool = pool) -> None:
            time.sleep(0.02)
            pools.delete(pool.pk, author=factories.BY)

        def take(pool: Pool = pool) -> int:
            return len([factories.take(pool) for _ in range(30)])

        results = threads.together([*[take] * 4, delete])
        gone = not Pool.objects.filter(pk=pool.pk).exists()
        allowed = {errors.NotFound} if gone else {errors.PoolInUse}
        assert {type(error) for error in threads.failures(results)} <= allowed
        assert gone == (not Block.objects.filter(pool=pool).exists())


def test_two_pools_want_one_cidr() -> None:
    cluster = factories.cluster()
    results = threads.together([lambda: factories.pool("10.0.0.0/16", within=cluster)] * 6)
    assert {type(error) for error in threads.failures(results)} == {errors.CIDROverlap}
    assert PoolCIDR.objects.count() == cluster.pools.count() == 1


def test_two_ranges_want_one_place() -> None:
    pool = factories.pool("10.0.0.0/16")
    results = threads.together([lambda: factories.reserve(pool, "10.0.0.0-10.0.0.9")] * 6)
    assert {type(error) for error in threads.failures(results)} == {errors.RangesOverlap}
    assert pool.reserved_ranges.count() == 1


def test_two_changes_of_one_version() -> None:
    pool = factories.pool("10.0.0.0/16")

    def change() -> Pool:
        expected = pools.PoolChange(description="x")
        return pools.change(pool.pk, expected, author=factories.BY, version=pool.version)

    results = threads.together([change] * 6)
    assert {type(error) for error in threads.failures(results)} == {errors.VersionMismatch}
    assert len(threads.failures(results)) == 5


@pytest.mark.exhaustive
def test_several_workers_serve_each_request_once() -> None:
    pool = factories.pool("10.0.0.0/28")
    blocks = factories.ask(pool, *factories.holders(14)).blocks
    for _ in range(20):
        requests.allocate(pool.pk, factories.demand(), author=factories.BY, wait=True)
    for block in blocks:
        factories.give_back(block)
    results = threads.together([lambda: requests.retry(pool.pk)] * 6)
    assert not threads.failures(results)
    requests.retry(pool.pk)
    assert pool.requests.filter(state="fulfilled").count() == 14
    assert Block.objects.filter(state="held").count() == 14


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "rolled back"])
@pytest.mark.parametrize("what", ["CIDR", "pool"])
def test_removal_waits_for_an_allocation(what: str, commit: bool) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.give_back(factories.take(pool))
    cidr = factories.cidr(pool)

    def remove() -> None:
        if what == "CIDR":
            pools.remove_cidr(cidr.pk, author=factories.BY)
        else:
            pools.delete(pool.pk, author=factories.BY)

    taking = threads.in_passing(lambda: factories.take(pool), commit=commit)
    results = threads.together([taking, threads.meanwhile(remove)])
    expected = {"CIDR": errors.CIDRInUse, "pool": errors.PoolInUse}[what]
    assert [type(error) for error in threads.failures(results)] == [expected] * commit
    assert Block.objects.filter(state="held").exists() == commit


@pytest.mark.exhaustive
@pytest.mark.parametrize("commit", [True, False], ids=["committed", "rolled back"])
def test_an_allocation_while_its_pool_goes(commit: bool) -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.give_back(factories.take(pool))
    deleting = threads.in_passing(lambda: pools.delete(pool.pk, author=factories.BY), commit=commit)
    results = threads.together([deleting, threads.meanwhile(lambda: factories.take(pool))])
    failed = [type(error) for error in threads.failures(results)]
    assert failed == [errors.NotFound] * commit


def test_a_range_that_comes_while_a_block_is_taken_withholds_it() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.give_back(factories.take(pool))
    taking = threads.in_passing(lambda: factories.take(pool), commit=True)
    reserve = threads.meanwhile(lambda: factories.reserve(pool, "10.0.0.0/24"))
    results = threads.together([taking, reserve])
    assert not threads.failures(results)
    assert Block.objects.get(state="held").withheld


def test_a_range_that_comes_while_a_block_is_released_withholds_it() -> None:
    pool = factories.pool("10.0.0.0/24")
    block = factories.take(pool)
    giving = threads.in_passing(lambda: factories.give_back(block), commit=True)
    reserve = threads.meanwhile(lambda: factories.reserve(pool, "10.0.0.0/24"))
    results = threads.together([giving, reserve])
    assert not threads.failures(results)
    assert factories.drain(pool) == []
    pools.unreserve(pool.reserved_ranges.get().pk, author=factories.BY)
    _nothing_is_lost(pool)


@pytest.mark.exhaustive
@pytest.mark.parametrize("commit", [True, False], ids=["committed", "rolled back"])
def test_a_note_that_is_written_while_a_name_changes(commit: bool) -> None:
    pool = factories.pool("10.0.0.0/24")

    def rename() -> object:
        Pool.objects.filter(pk=pool.pk).update(name="renamed")
        return Cluster.objects.filter(pk=pool.cluster_id).update(name="renamed cluster")

    works = [
        threads.in_passing(rename, commit=commit),
        threads.meanwhile(lambda: factories.take(pool)),
    ]
    assert not threads.failures(threads.together(works))
    block = factories.take(pool)
    names = ("renamed", "renamed cluster") if commit else (pool.name, pool.cluster.name)
    assert (block["pool"], block["cluster"]) == names


@pytest.mark.exhaustive
def test_names_change_while_blocks_go_out() -> None:
    pool = factories.pool("10.0.0.0/16", cooldown=0)
    names = iter(range(10**6))

    def rename() -> None:
        Pool.objects.filter(pk=pool.pk).update(name=f"pool-{next(names)}")
        Cluster.objects.filter(pk=pool.cluster_id).update(name=f"cluster-{next(names)}")

    def look() -> None:
        window.refill(pool.pk, 4)

    works = [_take_and_give_back(pool)] * 4 + [_for_a_while(look), _for_a_while(rename)]
    assert not threads.failures(threads.together(works))
    block = factories.take(pool)
    pool.refresh_from_db()
    assert (block["pool"], block["cluster"]) == (
        pool.name,
        Cluster.objects.get(pk=pool.cluster_id).name,
    )


def test_a_name_changes_within_a_transaction_that_goes_on_to_take_more() -> None:
    """Whoever has the note's row has locked the pool's name before: they never wait for each other."""
    pool = factories.pool("10.0.0.0/20")
    factories.take(pool)

    def take_more() -> None:
        with transaction.atomic():
            threads.in_passing(lambda: window.top_up(pool.pk, 4), commit=True)()
            factories.ask(pool, *factories.holders(window.WINDOW + 100))

    def rename() -> object:
        return Pool.objects.filter(pk=pool.pk).update(name="renamed")

    works = [take_more, threads.meanwhile(rename)]
    assert not threads.failures(threads.together(works))
    assert factories.take(pool)["pool"] == "renamed"


@pytest.mark.exhaustive
def test_a_cluster_that_gets_another_name_holds_up_nothing() -> None:
    pool = factories.pool("10.0.0.0/24")
    before = pool.cluster.name

    renamed, allocated = threading.Event(), threading.Event()

    def rename() -> bool:
        with transaction.atomic():
            Cluster.objects.filter(pk=pool.cluster_id).update(name="renamed")
            renamed.set()
            return allocated.wait(20)  # not when somebody waits for this transaction

    def take() -> str:
        return str(factories.take(pool)["cluster"])

    def take_meanwhile() -> str:
        assert renamed.wait(20)
        try:
            return take()
        finally:
            allocated.set()

    assert threads.together([rename, take_meanwhile]) == [True, before]
    assert not Window.objects.filter(pool=pool).exists()
    window.top_up(pool.pk, 4)
    assert take() == "renamed"
