"""How full pools are, as a scrape says it."""

import pytest
from django.db import connection

from pools.models import Now, PoolUsage
from pools.register import usage
from tests import factories
from tests.metrics import scrapes

pytestmark = pytest.mark.django_db


def test_the_states_of_a_pool_are_counted_in_addresses() -> None:
    pool = factories.pool("10.0.0.0/20", mask=24, cooldown=3600, reserved=["10.0.1.5/32"])
    blocks = [factories.take(pool) for _ in range(3)]
    factories.give_back(blocks[0])
    assert scrapes.author("state", "ipam_pool_addresses", pool=pool.name) == {
        "free": 12 * 256,
        "held": 2 * 256,
        "cooling": 256,
        "reserved": 256,
    }
    labels = {"cluster": pool.cluster.name, "pool": pool.name, "category": "vm", "family": "4"}
    assert scrapes.value("ipam_pool_capacity_addresses", **labels) == 16 * 256
    assert scrapes.value("ipam_pool_block_addresses", **labels) == 256
    assert scrapes.value("ipam_pool_utilization_ratio", **labels) == pytest.approx(3 / 15)
    del labels["category"]
    assert scrapes.value("ipam_cooldown_queue_addresses", **labels) == 256


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("cidrs", "mask"),
    [
        (["10.0.0.0/29"], None),
        (["10.0.0.0/22", "10.9.0.0/22"], 24),
        (["2001:db8::/112"], None),
        (["10.0.0.0/24", "2001:db8::/120"], None),
    ],
    ids=["small", "blocks", "ipv6", "both"],
)
@pytest.mark.parametrize("cooldown", [0, 3600])
def test_the_states_add_up_to_the_capacity(
    cidrs: list[str], mask: int | None, cooldown: int
) -> None:
    pool = factories.pool(*cidrs, mask=mask, cooldown=cooldown, reserved=["10.0.0.0-10.0.0.3"])
    blocks = [block for _ in range(3) for block in factories.ask(pool).blocks]
    factories.give_back(blocks[0])
    for family in {"4" if "." in cidr else "6" for cidr in cidrs}:
        (capacity,) = scrapes.values("ipam_pool_capacity_addresses", pool=pool.name, family=family)
        states = scrapes.values("ipam_pool_addresses", pool=pool.name, family=family)
        assert len(states) == 4
        assert sum(states) == capacity
        assert min(states) >= 0


def test_a_cooldown_that_has_passed_is_free_although_nobody_tidied() -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=3600)
    factories.give_back(factories.take(pool))
    assert scrapes.value("ipam_cooldown_queue_addresses", pool=pool.name) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '2 hours', true)")
    assert scrapes.author("state", "ipam_pool_addresses", pool=pool.name)["cooling"] == 0
    assert scrapes.value("ipam_cooldown_queue_addresses", pool=pool.name) == 0


def test_a_pool_of_ipv6_has_its_size_to_16_digits() -> None:
    pool = factories.pool("2001:db8::/48", mask=64)
    factories.take(pool)
    capacity = scrapes.value("ipam_pool_capacity_addresses", pool=pool.name)
    assert capacity == float(2**80)
    states = scrapes.author("state", "ipam_pool_addresses", pool=pool.name)
    assert states["held"] == float(2**64)
    assert sum(states.values()) == pytest.approx(capacity, rel=1e-15)


def test_an_old_count_of_a_very_large_pool_still_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = factories.pool("10.0.0.0/28")
    monkeypatch.setattr(usage, "LARGE", 10)
    PoolUsage.objects.create(pool=pool, family=4, held=12, cooling=9, withheld=3, counted_at=Now())
    states = scrapes.author("state", "ipam_pool_addresses", pool=pool.name)
    assert states == {"free": 0, "held": 12, "cooling": 2, "reserved": 0}
