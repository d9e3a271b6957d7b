"""Many threads and one pool: no duplicate, no error, no deadlock (NetBox #2519, #10282)."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pools.core import errors
from pools.models import Block, IdempotencyKey, Pool
from pools.platform import idempotency
from pools.register.allocator import allocation
from tests import factories
from tests.concurrent import threads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_deadlock")]


def _taking(pool: Pool, times: int, **settings: Any) -> Callable[[], list[str]]:
    return lambda: [factories.take(pool, **settings)["cidr"] for _ in range(times)]


@pytest.mark.parametrize(
    ("cidr", "mask"), [("10.0.0.0/16", None), ("fd00::/64", None), ("10.0.0.0/8", 24)]
)
def test_sixteen_threads_and_one_pool(cidr: str, mask: int | None) -> None:
    pool = factories.pool(cidr, mask=mask)
    results = threads.together([_taking(pool, 30)] * 16)
    assert not threads.failures(results)
    got = [cidr for result in results for cidr in result]  # type: ignore[union-attr]
    assert len(got) == len(set(got)) == 480
    assert Block.objects.filter(state="held").count() == 480


def test_a_small_pool_is_emptied_to_the_last_block() -> None:
    pool = factories.pool("10.0.0.0/25")
    results = threads.together([lambda: factories.drain(pool)] * 16)
    assert not threads.failures(results)
    got = Counter(cidr for result in results for cidr in result)  # type: ignore[union-attr]
    assert len(got) == 126
    assert set(got.values()) == {1}


@pytest.mark.exhaustive
def test_thirty_two_threads_that_take_and_give_back() -> None:
    pool = factories.pool("10.0.0.0/26")

    def work() -> int:
        done = 0
        for _ in range(10):
            block = factories.take(pool)
            factories.give_back(block)
            done += 1
        return done

    results = threads.together([work] * 32)
    assert not threads.failures(results)
    assert not Block.objects.filter(state="held").exists()


@pytest.mark.parametrize("category", ["node", "instance", "ipv4"])
@pytest.mark.parametrize("returning", [False, True], ids=["new", "returning"])
def test_the_same_holder_at_once_gets_one_block(category: str, returning: bool) -> None:
    pool = factories.pool("10.0.0.0/24", category=category)
    who = factories.holder(kind="x")
    if returning:
        factories.give_back(factories.take(pool, who))
    results = threads.together([lambda: factories.ask(pool, who)] * 12)
    assert not threads.failures(results)
    assert len({result.blocks[0]["id"] for result in results}) == 1  # type: ignore[union-attr]
    assert sorted(result.status for result in results) == [200] * 11 + [201]  # type: ignore[union-attr]


@pytest.mark.parametrize("ask", [{}, {"count": 3}, {"cidr": "10.0.0.9/32"}])
def test_the_same_key_at_once_is_one_answer(ask: dict[str, Any]) -> None:
    pool, who = factories.pool("10.0.0.0/24"), factories.holder()
    key = idempotency.Key(factories.user().pk, "k", "f" * 64)
    results = threads.together([lambda: factories.ask(pool, who, key=key, **ask)] * 12)
    assert not threads.failures(results)
    assert all(result == results[0] for result in results)
    assert Block.objects.filter(state="held").count() == ask.get("count", 1)
    assert IdempotencyKey.objects.count() == 1


def test_the_same_key_with_two_bodies_at_once_serves_one_of_them() -> None:
    pool, user = factories.pool("10.0.0.0/24"), factories.user()
    works = [
        lambda body=body: factories.ask(pool, key=idempotency.Key(user.pk, "k", str(body)))
        for body in range(8)
    ]
    results = threads.together(works)
    refused = threads.failures(results)
    assert len(refused) == 7
    assert {type(error) for error in refused} == {errors.IdempotencyMismatch}
    assert Block.objects.filter(state="held").count() == 1


def test_one_exact_block_goes_to_one() -> None:
    pool = factories.pool("10.0.0.0/24")
    results = threads.together([lambda: factories.take(pool, cidr="10.0.0.9/32")] * 12)
    assert {type(error) for error in threads.failures(results)} == {errors.AlreadyAllocated}
    assert len(threads.failures(results)) == 11


@pytest.mark.exhaustive
def test_batches_and_singles_and_exact_ones() -> None:
    pool = factories.pool("10.0.0.0/22")

    def batches() -> list[str]:
        return [
            block["cidr"]
            for _ in range(5)
            for block in factories.ask(pool, *factories.holders(20)).blocks
        ]

    def exact(start: int) -> list[str]:
        got = []
        for number in range(start, start + 40):
            try:
                got.append(factories.take(pool, cidr=f"10.0.2.{number}/32")["cidr"])
            except errors.AlreadyAllocated:
                continue
        return got

    works = [batches] * 4 + [_taking(pool, 50)] * 6 + [lambda: exact(1), lambda: exact(100)]
    results = threads.together(works)
    assert not threads.failures(results)
    got = Counter(cidr for result in results for cidr in result)  # type: ignore[union-attr]
    assert set(got.values()) == {1}
    assert sum(got.values()) == Block.objects.filter(state="held").count() >= 700


def test_a_doubled_release_is_one_release() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    block = factories.take(pool)
    results = threads.together([lambda: factories.give_back(block)] * 12)
    assert not threads.failures(results)
    assert sum(not result.repeated for result in results) == 1  # type: ignore[union-attr]


def test_a_release_and_the_next_holder() -> None:
    pool = factories.pool("10.0.0.0/32")
    for _ in range(20):
        block = factories.take(pool)
        late = [functools.partial(factories.give_back, block)] * 3
        results = threads.together([*late, lambda: factories.drain(pool)])
        unexpected = [e for e in threads.failures(results) if type(e) is not errors.HolderChanged]
        assert not unexpected
        held = Block.objects.filter(state="held").first()
        got = results[-1]
        assert bool(got) == (held is not None)
        if held is not None:
            who = allocation.Holder(held.holder_kind, held.holder_id)
            allocation.release(held.pk, who, author=factories.BY)
