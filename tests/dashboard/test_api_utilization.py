"""utilization/ and pools/{}/forecast/."""

from typing import Any

import pytest

from pools.models import Pool
from pools.register.utilization import forecasts, samples
from tests import factories
from tests.dashboard.test_sampling import shifted
from tests.edges import api as apis


def growing(days: int = 20) -> Pool:
    """A pool of 62 addresses that hands one out each day, and one that stays empty."""
    pool = factories.pool("10.0.0.0/26", name="growing")
    factories.pool("10.0.0.0/26", name="idle")
    for ago in range(days - 1, -1, -1):
        shifted(-ago)
        factories.take(pool, org="acme", env=f"env-{ago % 3}")
        samples.take_samples()
    shifted(0)
    forecasts.refresh_forecasts()
    return pool


def got(path: str, **query: object) -> list[dict[str, Any]]:
    api = apis.Api()("GET", f"{path}?" + "&".join(f"{k}={v}" for k, v in query.items()))
    assert api.status_code == 200, api.content
    return list(api.json()["results"])


@pytest.mark.exhaustive
def test_now_by_each_way() -> None:
    pool = growing()
    (vm,) = got("utilization/")
    assert (vm["by"], vm["name"], vm["members"]) == ("category", "vm", 2)
    assert (vm["capacity"], vm["held"], vm["free"], vm["ratio"]) == ("124", "20", "104", 0.16129)
    assert vm["history"] is None
    by_name = {row["name"]: row for row in got("utilization/", by="pool")}
    assert by_name["growing"]["pool_id"] == pool.pk
    assert (by_name["growing"]["held"], by_name["idle"]["held"]) == ("20", "0")
    (acme,) = got("utilization/", by="org")
    assert (acme["name"], acme["held"], acme["capacity"], acme["ratio"]) == (
        "acme",
        "20",
        None,
        None,
    )
    envs = got("utilization/", by="env", org="acme", ordering="-held")
    assert [(row["org"], row["held"]) for row in envs] == [("acme", n) for n in ("7", "7", "6")]
    assert len(got("utilization/", by="cluster")) == 2


@pytest.mark.exhaustive
def test_over_time_and_in_pages() -> None:
    pool = growing()
    (row,) = got("utilization/", by="pool", days=5, name="growing")
    assert [int(item["held"]) for item in row["history"]] == [16, 17, 18, 19, 20]
    assert row["history"][-1]["day"] == row["day"]
    (env,) = got("utilization/", by="env", name="env-0", days=400)
    assert len(env["history"]) == 19  # it has had blocks for so long
    first = apis.Api()("GET", "utilization/?by=pool&limit=1").json()
    rest = apis.Api()("GET", first["next"].split("/api/v1/")[1]).json()
    names = [row["name"] for page in (first, rest) for row in page["results"]]
    assert sorted(names) == ["growing", "idle"]
    assert rest["next"] is None
    (pool_row,) = got("utilization/", by="pool", cluster=pool.cluster.name, fields="name,held")
    assert pool_row == {"name": "growing", "held": "20"}


def test_before_the_first_sample_there_is_nothing() -> None:
    factories.pool("10.0.0.0/26")
    for item in ("category", "cluster", "org", "env", "pool"):
        assert got("utilization/", by=item, days=7) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("by=vm", "invalid_choice"),
        ("days=0", "out_of_range"),
        ("days=401", "out_of_range"),
        ("days=7&limit=101", "out_of_range"),
        ("org=acme", "unknown_parameter"),
        ("cluster=prod", "unknown_parameter"),
        ("by=pool&cluster=nowhere", "unknown_cluster"),
        ("by=pool&cursor=x", "cursor"),
    ],
)
def test_what_is_refused(query: str, code: str) -> None:
    apis.refused(apis.Api()("GET", f"utilization/?{query}"), 400, code)


@pytest.mark.exhaustive
def test_a_forecast_in_days_and_words() -> None:
    pool = growing()
    answer = apis.Api()("GET", f"pools/{pool.pk}/forecast/").json()
    (four,) = answer["families"]
    assert (four["state"], four["history_days"], four["missing_days"]) == ("growing", 20, 0)
    assert (four["used"], four["free"], four["per_day"]) == ("20", "42", 1.0)
    assert four["earliest"] <= four["day"] <= four["latest"]
    assert four["summary"].startswith("full in about 6 weeks, ")
    assert answer["share"] == 0.8


@pytest.mark.exhaustive
def test_a_forecast_goes_by_the_numbers_of_now() -> None:
    pool = growing()
    factories.drain(pool)
    (four,) = apis.Api()("GET", f"pools/{pool.pk}/forecast/").json()["families"]
    assert (four["state"], four["free"], four["summary"]) == ("full", "0", "exhausted now")


def test_a_forecast_of_too_short_a_past_says_how_long_it_must_be() -> None:
    pool = growing(5)
    (four,) = apis.Api()("GET", f"pools/{pool.pk}/forecast/").json()["families"]
    assert (four["state"], four["missing_days"], four["day"]) == ("too_little_history", 9, None)
    assert four["summary"] == "no forecast yet: 5 days of history, 14 are needed"
