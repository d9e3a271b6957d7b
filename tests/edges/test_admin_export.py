"""A list exports what it shows; a spreadsheet takes no cell for a formula."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from django.urls import reverse

from pools.admin import export
from tests import factories, people

pytestmark = pytest.mark.django_db


def rows(name: str, permissions: Any = people.VIEWER, **query: Any) -> list[dict[str, str]]:
    url = reverse(f"admin:pools_{name}_export", query=query)
    answer = people.browser(permissions).get(url)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(text.splitlines()))


def test_blocks_with_the_filters_of_the_list() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    held = factories.take(pool, factories.holder("vm-a"), org="acme")
    factories.give_back(factories.take(pool, factories.holder("vm-b")))
    assert [row["cidr"] for row in rows("block")] == ["10.0.0.1/32", "10.0.0.2/32"]
    (row,) = rows("block", state="held")
    assert (row["holder_id"], row["org"], row["pool_name"]) == ("vm-a", "acme", pool.name)
    assert [row["holder_id"] for row in rows("block", q=held["cidr"])] == ["vm-a"]


def test_pools_have_a_line_for_each_family() -> None:
    factories.pool("10.0.0.0/24", "fd00::/120", name="dual")
    found = rows("pool", q="dual")
    assert [(row["family"], row["cidrs"]) for row in found] == [
        ("4", "10.0.0.0/24"),
        ("6", "fd00::/120"),
    ]
    assert [row["free"] for row in found] == ["254", "255"]


@pytest.mark.parametrize("name", ["event", "environment", "allocationrequest"])
def test_the_other_lists(name: str) -> None:
    factories.take(factories.pool("10.0.0.0/24"), org="acme", env="shop")
    found = rows(name)
    assert (name == "allocationrequest") is not bool(found)


def test_clusters_with_the_number_of_their_pools() -> None:
    factories.pool("10.0.0.0/24")
    (found,) = rows("cluster")
    assert found["pool_count"] == "1"


def test_tokens_have_none_and_strangers_get_none() -> None:
    url = reverse("admin:knox_authtoken_export")
    assert people.browser().get(url).status_code == 403
    for name in ("block", "pool", "cluster", "event"):
        url = reverse(f"admin:pools_{name}_export")
        assert people.browser(()).get(url).status_code == 403


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_formula(text: str) -> None:
    answer = export.as_csv("x", ["a"], [[text]])
    cell = list(csv.reader([part.decode() for part in answer.streaming_content], strict=True))[1][0]
    assert cell == f"'{text}"
