"""GET leaks/: filters and pages, and who may see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edges.api import Api, refused
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


def test_pages(feed: Feed) -> None:
    for number in range(5):
        feed.holds(f"i-{number}")
    feed.twice()
    observed: list[str] = []
    path: str | None = "leaks/?limit=2&fields=holder"
    while path:
        answer = feed.api("GET", path).json()
        observed += [row["holder"]["id"] for row in answer["results"]]
        path = answer["next"] and answer["next"].partition("/api/v1/")[2]
    assert observed == [f"i-{number}" for number in range(5)]


def test_who_may_see_them(feed: Feed) -> None:
    assert Api("viewer")("GET", "leaks/").status_code == 200
    refused(Api("vm-owner")("GET", "leaks/"), 403, "permission_denied")
    refused(Api("vm-owner")("GET", "references/"), 403, "permission_denied")
    body = {"holder": {"kind": "instance", "id": "i"}, "reason": "gone"}
    refused(Api("viewer")("POST", "blocks/1/reclaim/", body), 403, "permission_denied")
