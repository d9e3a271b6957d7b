"""Daily samples: what is counted, kept apart by day, summed up, and forgotten."""

from datetime import timedelta

import pytest
from django.db import connection

from pools import tasks
from pools.models import Block, Pool, Sample, SampleSum
from pools.platform import database
from pools.register import pools as pool_services
from pools.register.utilization import samples
from tests import factories


def shifted(days: float) -> None:
    """Move the register's clock for the rest of the test's transaction."""
    offset = f"{timedelta(days=days).total_seconds()} s"
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', %s, true)", [offset])


def sums(grouping: str, **filters: object) -> dict[tuple[str, str], tuple[int, int]]:
    """(organisation, name) -> (held, cooling), summed over the families."""
    result: dict[tuple[str, str], tuple[int, int]] = {}
    for row in SampleSum.objects.filter(by=grouping, **filters):
        held, cooling = result.get((row.org, row.name), (0, 0))
        result[row.org, row.name] = (held + row.held, cooling + row.cooling)
    return result


def test_a_sample_of_every_pool_and_family_with_its_counts() -> None:
    pool = factories.pool("10.0.0.0/29", "fd00::/64", cooldown=600)
    held = factories.ask(pool, family=4).blocks[0]
    factories.ask(pool, family=4)
    factories.give_back(held)
    factories.reserve(pool, "10.0.0.6-10.0.0.6")
    assert samples.take_samples() == 2
    four, six = Sample.objects.order_by("family")
    assert (four.capacity, four.held, four.cooling, four.reserved) == (6, 1, 1, 1)
    assert (six.capacity, six.held) == (2**64, 0) or six.capacity > 2**63
    assert (four.day, four.pool, four.cluster) == (
        database.now().date(),
        pool.name,
        pool.cluster.name,
    )


def test_the_last_of_a_day_stays_and_a_new_day_has_its_own() -> None:
    pool = factories.pool("10.0.0.0/29")
    shifted(-1)
    samples.take_samples()
    factories.take(pool)
    samples.take_samples()
    shifted(0)
    factories.take(pool)
    samples.take_samples()
    assert list(Sample.objects.order_by("day").values_list("held", flat=True)) == [1, 2]
    rows = SampleSum.objects.filter(by="category", name="vm").order_by("day")
    assert list(rows.values_list("held", "capacity")) == [(1, 6), (2, 6)]


def test_sums_by_category_cluster_organisation_and_environment() -> None:
    cluster = factories.cluster()
    first = factories.pool("10.0.0.0/28", within=cluster, cooldown=600)
    other = factories.pool("10.1.0.0/28", "fd00::/64", category="pod", within=cluster)
    elsewhere = factories.pool("10.0.0.0/28")
    factories.take(first, org="acme", env="prod")
    factories.give_back(factories.take(first, org="acme", env="test"))
    factories.take(elsewhere, org="acme", env="prod")
    factories.take(other, family=4, org="globex", env="prod")
    factories.take(other, family=6)
    samples.take_samples()
    assert sums("category") == {("", "vm"): (2, 1), ("", "pod"): (2, 0)}
    assert sums("cluster")["", cluster.name] == (3, 1)
    assert sums("org") == {("", "acme"): (2, 1), ("", "globex"): (1, 0), ("", ""): (1, 0)}
    assert sums("env") == {
        ("acme", "prod"): (2, 0),
        ("acme", "test"): (0, 1),
        ("globex", "prod"): (1, 0),
    }
    members = SampleSum.objects.get(by="cluster", name=cluster.name, family=4).members
    assert members == 2


def test_the_smallest_tenants_share_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "TENANTS", 2)
    pool = factories.pool("10.0.0.0/26")
    for number, env in enumerate("abcd", 1):
        for _ in range(number):
            factories.take(pool, org="acme", env=env)
    samples.take_samples()
    assert sums("env", rest=False) == {("acme", "d"): (4, 0), ("acme", "c"): (3, 0)}
    rest = SampleSum.objects.get(by="env", rest=True)
    assert (rest.held, rest.members) == (3, 2)


def test_a_cooldown_that_has_passed_is_over() -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=60)
    factories.give_back(factories.take(pool, org="acme", env="e"))
    shifted(1)
    samples.take_samples()
    assert Sample.objects.get().cooling == 0
    assert sums("org") == {}
    assert Block.objects.filter(state="cooling").exists()


def test_past_days_stay_when_a_pool_goes_and_today_forgets_it() -> None:
    pool = factories.pool("10.0.0.0/29")
    shifted(-1)
    samples.take_samples()
    shifted(-0.0001)
    samples.take_samples()
    shifted(0)
    pool_services.delete(pool.pk, author=factories.BY)
    assert not Pool.objects.exists()
    samples.take_samples()
    yesterday = database.now().date() - timedelta(days=1)
    assert [row.day for row in Sample.objects.all()] == [yesterday]
    assert {row.day for row in SampleSum.objects.all()} == {yesterday}


@pytest.mark.parametrize(("days", "remaining"), [(0, 3), (10, 2), (9, 1)])
def test_old_samples_are_tidied(days: int, remaining: int) -> None:
    factories.pool("10.0.0.0/29")
    for ago in (11, 10, 0):
        shifted(-ago)
        samples.take_samples()
    samples.delete_old_samples(days)
    assert Sample.objects.count() == remaining
    assert len(set(SampleSum.objects.values_list("day", flat=True))) == remaining


def test_the_task_takes_works_out_and_tidies(settings: object) -> None:
    settings.IPAM_SAMPLE_DAYS = 5  # type: ignore[attr-defined]
    pool = factories.pool("10.0.0.0/29")
    shifted(-6)
    samples.take_samples()
    shifted(0)
    assert tasks.take_samples() == 1
    assert Sample.objects.count() == 1
    assert pool.forecasts.get().state == "too_little_history"
