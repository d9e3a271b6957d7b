"""A list exports what it shows; a spreadsheet takes no cell for a formula."""

import csv
import json
from typing import Any

import pytest
from django.urls import reverse

from pools.platform.admin import export
from tests import factories, people


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
    result = rows("pool", q="dual")
    assert [(row["family"], row["cidrs"]) for row in result] == [
        ("4", "10.0.0.0/24"),
        ("6", "fd00::/120"),
    ]
    assert [row["free"] for row in result] == ["254", "255"]


def test_tokens_have_none_and_strangers_get_none() -> None:
    url = reverse("admin:knox_authtoken_export")
    assert people.browser().get(url).status_code == 403
    for name in ("block", "pool", "cluster", "event"):
        url = reverse(f"admin:pools_{name}_export")
        assert people.browser(()).get(url).status_code == 403


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_formula(text: str) -> None:
    answer = export.download("csv", "x", ["a"], [[text]])
    cell = list(csv.reader([part.decode() for part in answer.streaming_content], strict=True))[1][0]
    assert cell == f"'{text}"


def download(name: str, form: str, **query: Any) -> Any:
    return people.browser(people.VIEWER).get(
        reverse(f"admin:pools_{name}_export", args=[form], query=query)
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["block", "pool", "cluster", "event", "environment"])
def test_every_format_says_the_same(name: str) -> None:
    pool = factories.pool("10.0.0.0/24", "fd00::/64")
    factories.take(pool, factories.holder("=vm"), family=4, org="acme", env="shop")
    lines = rows(name)
    assert lines
    document = json.loads(b"".join(download(name, "json").streaming_content))
    assert list(document[0]) == list(lines[0])
    for line, record in zip(lines, document, strict=True):
        for key, value in record.items():
            plain = ", ".join(value) if isinstance(value, list) else value
            assert line[key].removeprefix("'") == ("" if plain is None else str(plain))


def test_numbers_stay_numbers_and_filters_hold() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    factories.take(pool)
    factories.give_back(factories.take(pool))
    (held,) = json.loads(b"".join(download("block", "json", state="held").streaming_content))
    assert (held["withheld"], held["released_at"]) == (False, None)
    (result,) = json.loads(b"".join(download("pool", "json").streaming_content))
    assert (result["held"], result["cooling"], result["family"]) == (1, 1, 4)
    assert download("block", "xlsx").status_code == 404


def test_a_file_says_that_the_list_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST", 3)
    factories.ask(factories.pool("10.0.0.0/24"), *factories.holders(4))
    answer = download("block", "csv")
    assert 'filename="blocks-first-3.csv"' in answer["Content-Disposition"]
    assert len(b"".join(answer.streaming_content).splitlines()) == 4
