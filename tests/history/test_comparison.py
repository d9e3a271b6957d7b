"""Two moments are compared: what was gained, lost, or moved to another holder in between."""

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import pytest

from pools.core import errors
from pools.models import Block
from pools.platform import audit, database
from pools.register import pools
from pools.register.allocator import allocation
from pools.register.history import comparison
from tests import factories
from tests.edges import api as apis


@pytest.fixture
def pool() -> Any:
    return factories.pool("10.0.0.0/29", name="blue", cooldown=0)


@pytest.fixture(params=["sealed", "not sealed"])
def history(request: pytest.FixtureRequest, pool: Any, clock: Any) -> datetime:
    """Return the moment before which a, b and c were allocated.

    After it: a was released, b's block moved to d, c released and got its block again, and e came and went.
    """
    first, second, third = (factories.take(pool, factories.holder(name)) for name in "abc")
    clock.advance(60)
    moment = database.now()
    if request.param == "sealed":
        audit.seal()
    clock.advance(60)
    for block in (first, second, third):
        factories.give_back(block)
    clock.advance(60)
    _take_at(pool, "d", second)
    _take_at(pool, "c", third)
    factories.give_back(factories.take(pool, factories.holder("e")))
    factories.take(pool, factories.holder("f"))
    clock.advance(60)
    if request.param == "sealed":
        audit.seal()
    return moment


def _take_at(pool: Any, holder: str, block: Any) -> Any:
    return factories.take(pool, factories.holder(holder), cidr=block["cidr"])


def summary(result: comparison.Comparison) -> set[tuple[str, str, str]]:
    """Return (change, holder before, holder after) of each difference."""
    return {
        (row.change, (row.before or {}).get("id", ""), (row.after or {}).get("id", ""))
        for row in result.differences
    }


def test_what_changed(pool: Any, history: datetime) -> None:
    result = comparison.compare(history, database.now())
    assert ("moved", "b", "d") in summary(result)
    assert {"a", "b"} == {row.before["id"] for row in result.differences if row.before}
    assert {"d", "f"} == {row.after["id"] for row in result.differences if row.after}
    # c has its block again, and e had one in between only.
    assert sum(result.counts.values()) == len(result.differences)
    assert {row.pool for row in result.differences} == {"blue"}


def test_between_two_moments_of_the_past(history: datetime) -> None:
    released = comparison.compare(history, history + timedelta(seconds=90))
    assert summary(released) == {("lost", holder, "") for holder in "abc"}
    assert released.counts == {"gained": 0, "lost": 3, "moved": 0}
    before = comparison.compare(history - timedelta(hours=1), history)
    assert summary(before) == {("gained", "", holder) for holder in "abc"}
    assert comparison.compare(history - timedelta(hours=2), history - timedelta(hours=1)).counts == {
        "gained": 0, "lost": 0, "moved": 0,
    }  # fmt: skip


def test_pages(history: datetime) -> None:
    since, until = history - timedelta(hours=1), history
    whole = comparison.compare(since, until)
    below, rows = None, []
    for _page in range(3):
        page = comparison.compare(since, until, below=below, limit=1)
        assert page.counts == whole.counts
        rows += page.differences
        below = page.below
    assert (rows, below) == (whole.differences, None)


def test_other_pools_and_deleted_ones(pool: Any, history: datetime) -> None:
    other = factories.pool("10.9.0.0/29", name="green", within=factories.cluster())
    factories.give_back(factories.take(other, factories.holder("x")))
    factories.take(other, factories.holder("y"))
    now = database.now()
    of_its_cluster = comparison.select_pools(other.cluster_id, None)
    assert summary(comparison.compare(history, now, of_its_cluster)) == {("gained", "", "y")}
    of_pool = comparison.compare(history, now, {pool.pk})
    assert summary(of_pool) == summary(comparison.compare(history, now)) - {("gained", "", "y")}
    assert comparison.compare(history, now, set()).differences == []


def test_a_deleted_pool_is_lost(pool: Any, history: datetime) -> None:
    for block in Block.objects.filter(pool=pool, state="held"):
        holder = factories.holder(block.holder_id)
        allocation.release(block.pk, holder, author=factories.BY)
    pools.delete(pool.pk, author=factories.BY)
    changes = comparison.compare(history, database.now()).differences
    assert {(row.change, row.before and row.before["id"], row.pool) for row in changes} == {
        ("lost", "a", "blue"), ("lost", "b", "blue"), ("lost", "c", "blue"),
    }  # fmt: skip


def test_the_order_of_the_moments() -> None:
    now = database.now()
    with pytest.raises(errors.InvalidInput) as refusal:
        comparison.compare(now, now)
    assert [problem.code for problem in refusal.value.problems] == ["time_order"]


# --- entry points ---------------------------------------------------------------------------------


def test_over_rest(pool: Any, history: datetime) -> None:
    api = apis.Api()
    since = history.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    answer = api("GET", f"history/compare/?since={since}&pool=blue")
    assert answer.status_code == 200, answer.json()
    body = answer.json()
    assert body["counts"]["moved"] == 1
    (moved,) = [row for row in body["results"] if row["change"] == "moved"]
    assert (moved["before"]["id"], moved["after"]["id"]) == ("b", "d")
    of_a_day = api("GET", "history/compare/").json()["counts"]
    assert sum(of_a_day.values()) == 3  # c, d and f hold blocks; a day ago nobody did
    future = api("GET", "history/compare/?since=2090-01-01T00:00:00Z")
    assert apis.fields(apis.refused(future, 400, "future_time")) == {"since": "future_time"}


def test_on_the_page_and_as_csv(admin_client: Any, history: datetime) -> None:
    page = admin_client.get(
        "/admin/history/compare/", {"since": history.strftime("%Y-%m-%dT%H:%M")}
    )
    assert page.status_code == 200
    text = page.content.decode()
    assert "moved" in text
    wrong = admin_client.get("/admin/history/compare/", {"since": "yesterday"})
    assert wrong.status_code == 200
    assert "cad-error" in wrong.content.decode()
    later = admin_client.get("/admin/history/compare/", {"since": "2999-01-01T00:00"})
    assert "in the future" in later.content.decode()
    file = admin_client.get(
        "/admin/history/compare/", {"since": "2020-01-01T00:00", "format": "csv"}
    )
    rows = list(csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode())))
    assert {row["after_id"] for row in rows if row["change"] == "gained"} == {"c", "d", "f"}
