"""409 `ipam_exhausted` is never said of a block in passing hands (rule `exhaustion-is-definite`)."""

import pytest
from django.db import connection

from pools.core import errors
from pools.register.allocator import allocation, requests
from tests import factories
from tests.concurrent import threads

pytestmark = pytest.mark.django_db(transaction=True)
asks = pytest.mark.parametrize("count", [1, 2], ids=["one", "batch"])


@asks
def test_the_worker_tidies(count: int) -> None:
    pool = factories.pool("10.0.0.0/31", cooldown=3600)
    for block in factories.ask(pool, factories.holder(), count=2).blocks:
        factories.give_back(block)
        allocation.skip_cooldown(block["id"], author=factories.WITH_REASON)
    _cooled_down()
    ask = threads.meanwhile(lambda: factories.ask(pool, count=count))
    results = threads.together([threads.in_passing(requests.end_cooldowns, commit=True), ask])
    assert not threads.failures(results)


def _cooled_down() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_block SET state = 'cooling', released_at = ipam_now() WHERE state = 'available'"
        )


@asks
def test_an_allocation_is_rolled_back(count: int) -> None:
    pool = factories.pool("10.0.0.0/31")
    factories.give_back(factories.take(pool))
    taking = threads.in_passing(lambda: factories.cidrs(pool, 2), commit=False)
    results = threads.together(
        [taking, threads.meanwhile(lambda: factories.ask(pool, count=count))]
    )
    assert not threads.failures(results)


@asks
def test_a_release_is_repeated(count: int) -> None:
    pool = factories.pool("10.0.0.0/31")
    for block in factories.ask(pool, factories.holder(), count=2).blocks:
        factories.give_back(block)
    again = threads.in_passing(lambda: factories.give_back(block), commit=True)
    ask = threads.meanwhile(lambda: factories.ask(pool, count=2 if count == 2 else 1))
    results = threads.together([again, ask])
    assert not threads.failures(results)


@asks
def test_what_is_really_taken_is_exhausted(count: int) -> None:
    pool = factories.pool("10.0.0.0/31")
    factories.give_back(factories.take(pool))
    taking = threads.in_passing(lambda: factories.cidrs(pool, 2), commit=True)
    results = threads.together(
        [taking, threads.meanwhile(lambda: factories.ask(pool, count=count))]
    )
    assert [type(error) for error in threads.failures(results)] == [errors.PoolExhausted]
