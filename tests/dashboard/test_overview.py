"""The start page: what it says of a register with a past, at a cost that blocks do not set."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.models import PoolUsage, Sample
from pools.platform.conditions import evaluation
from pools.register.demo import demo
from pools.register.utilization import forecasts, samples, series
from tests import factories, people
from tests.dashboard.test_sampling import shifted


def page(client: Client | None = None, **query: object) -> str:
    answer = (client or people.browser()).get(reverse("admin:index"), query)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.exhaustive
def test_the_demo_fleet_in_all_sections() -> None:
    demo.load()
    evaluation.evaluate()
    text = page()
    for words in (
        "Utilization by category", "Utilization by cluster", "Used blocks by organization",
        "Used blocks by environment", "Most utilized pools", "Used blocks by category", "In cooldown",
        "Free within a week", "Failed allocations in the last 24 hours", "ipam_exhausted", "Last events",
        "blue-pool: full in about",
    ):  # fmt: skip
        assert words in text, words
    assert "exhausted now" in text  # the forecast of premium-ipv4
    assert "numbers were counted" not in text  # a small register is counted on the spot


@pytest.mark.sample(16)
@pytest.mark.parametrize("days", [7, 30, 90, 365])
@pytest.mark.parametrize("grouping", ["category", "cluster", "org", "env"])
def test_a_range_and_a_way_to_divide(days: int, grouping: str) -> None:
    pool = factories.pool("10.0.0.0/28")
    factories.take(pool, org="acme", env="prod")
    for ago in (3, 0):
        shifted(-ago)
        samples.take_samples()
    text = page(days=days, by=grouping)
    name = {
        "category": "VM networks",
        "cluster": pool.cluster.name,
        "org": "acme",
        "env": "acme/prod",
    }
    assert re.search(rf"{name[grouping]}(</a>)? <strong>1</strong>", text)
    chosen = re.findall(r'aria-current="true">([^<]+)<', text)
    assert chosen == [
        f"{days} days",
        {"org": "organization", "env": "environment"}.get(grouping, grouping),
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize("query", [{"days": "8"}, {"days": "x"}, {"by": "pool"}, {"by": "<b>"}])
def test_what_is_no_choice_means_the_usual(query: dict[str, str]) -> None:
    factories.pool("10.0.0.0/28")
    chosen = re.findall(r'aria-current="true">([^<]+)<', page(**query))
    assert chosen == ["30 days", "category"]


def test_a_large_register_shows_the_newest_samples_and_their_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = factories.pool("10.0.0.0/28", name="counted")
    factories.take(pool)
    shifted(-0.1)
    samples.take_samples()
    shifted(0)
    monkeypatch.setattr(series, "LIVE_BLOCKS", 0)
    factories.take(pool)
    young = factories.pool("10.9.0.0/28", name="young")
    text = page()
    assert "These numbers were counted" in text
    result = {sampled.name: families for sampled, families in series.measure_pools().pools}
    assert result["counted"][4].held == 1
    assert result[young.name][4].free == 14  # no sample of it yet: counted now


@pytest.mark.exhaustive
def test_the_statements_of_the_page_do_not_grow_with_pools_and_never_count_all_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(series, "LIVE_BLOCKS", 0)
    counts = []
    client = people.browser()
    for number in (3, 30):
        for item in range(number):
            factories.take(factories.pool(f"10.{number}.{item}.0/28", cooldown=600), org="acme")
        samples.take_samples()
        page(client)
        with CaptureQueriesContext(connection) as queries:
            page(client)
        counts.append(len(queries))
        for query in queries:
            assert not re.search(r'(COUNT|SUM)\(.*FROM "pools_block"(?!.*LIMIT)', query["sql"])
    assert counts[0] == counts[1]


@pytest.mark.exhaustive
def test_whoever_may_not_see_environments_sees_none() -> None:
    demo.load()
    client = people.browser(["view_pool", "view_block"])
    text = page(client, by="env")
    assert "Used blocks by organization" not in text
    assert "env-01" not in text
    assert ">organization</a>" not in text
    assert "Utilization by category" in text


@pytest.mark.exhaustive
def test_a_pool_page_has_its_chart_and_its_forecast_in_words() -> None:
    demo.load()
    pool_id = Sample.objects.filter(pool="blue-pool").values_list("pool_id", flat=True)[0]
    url = reverse("admin:pools_pool_change", args=[pool_id])
    text = people.browser().get(url, {"days": 90}).content.decode()
    assert "Used IPv4 blocks" in text
    assert re.search(r"full in about \d+ days, (between|on|\d)", text)
    assert re.search(r'aria-current="true">90 days<', text)


@pytest.mark.exhaustive
def test_the_list_of_pools_tells_forecasts_with_one_more_statement() -> None:
    demo.load()
    client = people.browser()
    url = reverse("admin:pools_pool_changelist")
    with CaptureQueriesContext(connection) as queries:
        text = client.get(url).content.decode()
    assert "full in about" in text
    assert sum("pools_poolforecast" in query["sql"] for query in queries) == 1


@pytest.mark.exhaustive
def test_a_pool_that_is_full_soon_is_an_alert_only_then() -> None:
    pool = factories.pool("10.0.0.0/26")
    for ago in range(20, -1, -1):
        shifted(-ago)
        factories.take(pool)
        samples.take_samples()
    shifted(0)
    forecasts.refresh_forecasts()
    evaluation.evaluate()
    assert "Forecast for " not in page()  # 41 days ahead
    for _ in range(30):
        factories.take(pool)
    samples.take_samples()
    forecasts.refresh_forecasts()
    evaluation.evaluate()
    assert re.search(r"Forecast for \S+: full in about \d+ days", page())


def test_forecasts_go_with_their_pools(settings: Any) -> None:
    pool = factories.pool("10.0.0.0/26")
    samples.take_samples()
    forecasts.refresh_forecasts()
    assert pool.forecasts.exists()
    assert not PoolUsage.objects.exists()
    from pools.register import pools

    pools.delete(pool.pk, author=factories.BY)
    assert forecasts.refresh_forecasts() == 0
    assert list(forecasts.forecasts_within(timedelta(days=1000).days)) == []
