"""Where the allocator looks for the oldest block keeps up with what was handed out, also where the
window is never low, because as many blocks come back as go."""

import pytest
from django.db import transaction

from pools.models import Window
from pools.register.allocator import window
from tests import factories


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_the_hint_keeps_up_where_blocks_come_and_go() -> None:
    pool = factories.pool("10.0.0.0/23", cooldown=0)
    factories.give_back(factories.take(pool))
    first = Window.objects.get(pool=pool).since
    for _ in range(2 * 510):  # each block twice, oldest first
        factories.give_back(factories.take(pool))
    assert Window.objects.get(pool=pool).since > first


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
def test_it_is_filled_up_before_it_is_empty(within: bool) -> None:
    pool = factories.pool("10.0.0.0/16")
    assert window.refill(pool.pk, 4)
    count = window.WINDOW - window.LOW
    factories.ask(pool, *(factories.holder() for _ in range(count)))
    _top_up(pool.pk, within=within)
    assert pool.blocks.filter(state="available").count() == window.LOW
    factories.take(pool)
    _top_up(pool.pk, within=within)
    assert pool.blocks.filter(state="available").count() == window.WINDOW + window.LOW - 1


def _top_up(pool_id: int, *, within: bool) -> None:
    if within:
        with transaction.atomic():
            window.top_up(pool_id, 4)
    else:
        window.top_up(pool_id, 4)
