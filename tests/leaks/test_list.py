"""GET leaks/: filters and pages, and who may see them."""

from typing import Any

import pytest

from tests.leaks.feeds import Feed


def listed(feed: Feed, query: str = "") -> list[Any]:
    answer = feed.api("GET", f"leaks/?{query}")
    assert answer.status_code == 200, answer.content
    rows: list[Any] = answer.json()["results"]
    return rows


def test_what_is_said_of_a_leak(feed: Feed) -> None:
    block = feed.holds("i-1", "u-1", org="acme", env="prod")
    feed.twice()
    (leak,) = listed(feed)
    assert (leak["block_id"], leak["cidr"]) == (block["id"], block["cidr"])
    assert leak["holder"] == {"kind": "instance", "id": "i-1", "uid": "u-1"}
    assert (leak["org"], leak["env"], leak["source"], leak["state"]) == (
        "acme", "prod", "tooling", "leaked",
    )  # fmt: skip
    assert leak["allocated_at"] == block["allocated_at"]
    assert leak["why"] == "instance i-1 is missing from the last 2 inventory reports."
    assert leak["missed_at"] < leak["confirmed_at"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("holder_kind=instance", 2), ("holder_kind=node", 0), ("holder_id=i-1", 1),
        ("org=acme", 1), ("env=prod", 1), ("source=tooling", 2), ("source=nodes", 0),
        ("state=leaked", 2), ("state=suspected", 1), ("since=2200-01-01T00:00:00Z", None),
        ("until=2026-01-01T00:00:00Z", 0), ("state=gone", None), ("cluster=nowhere", None),
        ("pool=nowhere", None), ("shape=round", None), ("limit=0", None),
    ],
)  # fmt: skip
def test_filters(feed: Feed, query: str, count: int | None) -> None:
    feed.holds("i-1", org="acme", env="prod")
    feed.holds("i-2")
    feed.twice()
    feed.holds("i-3")
    feed.report()
    if count is None:
        assert feed.api("GET", f"leaks/?{query}").status_code == 400
    else:
        assert len(listed(feed, query)) == count
        assert (
            len(listed(feed, f"{query}&cluster={feed.cluster.name}&pool={feed.pool.pk}")) == count
        )
