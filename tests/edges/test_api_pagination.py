"""Cursor pages: every row once, forwards and back, in each order; bad cursors and limits are refused."""

import base64
import itertools
import json
import re
from typing import Any

import pytest
from django.db import connection

from tests.edges import api as apis


@pytest.fixture
def api() -> apis.Api:
    """50 blocks of two families in two clusters."""
    api = apis.Api()
    api.cluster()
    for pool, family in ((api.vm_pool("10.0.0.0/26"), 4), (api.vm_pool("fd00::/120", name="b"), 6)):
        holders = [{"kind": "vm", "id": f"v-{n}"} for n in range(25)]
        api.create(f"pools/{pool}/allocations/", {"holders": holders, "family": family})
    return api


def _walk(api: apis.Api, url: str, link: str) -> list[list[int]]:
    """The ids of each page, from an address on along `next` or `previous`."""
    pages: list[list[int]] = []
    page_url: str | None = f"http://testserver{apis.ROOT}{url}"
    while page_url:
        answer = api.client.get(page_url.removeprefix("http://testserver"))
        assert answer.status_code == 200, answer.content
        pages.append([row["id"] for row in answer.json()["results"]])
        page_url = answer.json()[link]
        assert len(pages) < 60
        last = answer.json()
    assert last[link] is None
    return pages


def _last(api: apis.Api, url: str) -> str:
    page_url = f"{apis.ROOT}{url}"
    while following := api.client.get(page_url).json()["next"]:
        page_url = following
    return page_url.rpartition(apis.ROOT)[2]


@pytest.mark.sample(18)
@pytest.mark.parametrize("ordering", ["id", "-id", "cidr", "-cidr"])
@pytest.mark.parametrize("limit", [7, 10, 49, 50])
def test_every_row_once_forwards_and_back(api: apis.Api, ordering: str, limit: int) -> None:
    url = f"blocks/?limit={limit}&ordering={ordering}"
    (whole,) = _walk(api, f"blocks/?limit=1000&ordering={ordering}", "next")
    pages = _walk(api, url, "next")
    assert list(itertools.chain(*pages)) == whole
    assert len(set(whole)) == 50
    assert {len(page) for page in pages[:-1]} <= {limit}
    assert pages[-1]
    back = _walk(api, _last(api, url), "previous")
    assert list(itertools.chain(*back[::-1])) == whole


def test_addresses_are_ordered_as_numbers(api: apis.Api) -> None:
    rows = api("GET", "blocks/?ordering=cidr&fields=address&within=10.0.0.0/26").json()["results"]
    assert [row["address"] for row in rows] == [f"10.0.0.{n}" for n in range(1, 26)]


def test_rows_that_come_or_go_meanwhile_move_no_others(api: apis.Api) -> None:
    first = api("GET", "blocks/?limit=7&family=4").json()
    gone = first["results"][0]
    assert api("POST", f"blocks/{gone['id']}/release/", apis.holder("v-0")).status_code == 200
    following = api.client.get(first["next"]).json()["results"]
    assert [row["address"] for row in following] == [f"10.0.0.{n}" for n in range(8, 15)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("lists", ["clusters/", "pools/"])
def test_names_are_an_order_too(api: apis.Api, lists: str) -> None:
    api.cluster("a.first")
    api.cluster("zoo")
    (whole,) = _walk(api, f"{lists}?ordering=name", "next")
    url = f"{lists}?ordering=name&limit=1"
    assert list(itertools.chain(*_walk(api, url, "next"))) == whole
    assert list(itertools.chain(*_walk(api, _last(api, url), "previous")[::-1])) == whole
    assert list(itertools.chain(*_walk(api, url.replace("=name", "=-name"), "next"))) == whole[::-1]


def test_a_filter_goes_with_the_pages(api: apis.Api) -> None:
    pages = _walk(api, "blocks/?limit=7&family=6", "next")
    assert [len(page) for page in pages] == [7, 7, 7, 4]


@pytest.mark.sample(5)
@pytest.mark.parametrize("lists", ["clusters/", "pools/", "events/", "environments/", "requests/"])
def test_every_list_has_pages(api: apis.Api, lists: str) -> None:
    api.cluster("other")
    answer = api("GET", f"{lists}?limit=1").json()
    assert set(answer) == {"next", "previous", "results"}
    rows = list(itertools.chain(*_walk(api, f"{lists}?limit=1", "next")))
    assert len(rows) == len(set(rows)) == len(api("GET", lists).json()["results"])


def _cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


BAD = {
    "limit=0": "out_of_range", "limit=-1": "wrong_type", "limit=1001": "out_of_range",
    "limit=1e9": "wrong_type", "limit=abc": "wrong_type", "limit=\u0667": "wrong_type",
    f"limit={'9' * 40}": "wrong_type", "limit=7&limit=8": "repeated",
    "ordering=colour": "invalid_choice", "ordering=id;drop table": "invalid_choice",
    "ordering=--id": "invalid_choice", "offset=10": "unknown_parameter",
    "cursor=%00": "invalid", "cursor=x": "cursor", "cursor=AAAA": "cursor",
    f"cursor={_cursor(None)}": "cursor", f"cursor={_cursor([False])}": "cursor",
    f"cursor={_cursor([False, []])}": "cursor", f"cursor={_cursor([0, [1]])}": "cursor",
    f"cursor={_cursor([False, [1, 2]])}": "cursor", f"cursor={_cursor([False, [1e3]])}": "cursor",
    f"cursor={_cursor([False, [True]])}": "cursor", f"cursor={_cursor([False, [10**30]])}": "cursor",
    f"cursor={_cursor([False, ['1; drop']])}": "cursor",
    f"cursor={_cursor([False, ['10.0.0.0/8']])}": "cursor",
    f"ordering=cidr&cursor={_cursor([False, [1]])}": "cursor",
    f"ordering=cidr&cursor={_cursor([False, ['10.0.0.0/8', 1]])}": "cursor",
    f"ordering=cidr&cursor={_cursor([False, [1, 2]])}": "cursor",
    f"ordering=cidr&cursor={_cursor([False, [1, 'prod']])}": "cursor",
    "fields=colour": "unknown_field",
}  # fmt: skip


@pytest.mark.sample(32)
@pytest.mark.parametrize(("query", "code"), BAD.items(), ids=range(len(BAD)))
def test_what_is_no_page_is_refused(api: apis.Api, query: str, code: str) -> None:
    apis.refused(api("GET", f"blocks/?{query}"), 400, code)


def test_only_the_fields_that_are_asked_for(api: apis.Api) -> None:
    (row,) = api("GET", "blocks/?limit=1&fields=cidr,holder").json()["results"]
    assert set(row) == {"cidr", "holder"}


def _rows_read(table: str) -> int:
    """How many rows of a table this transaction has read so far, by scans and by indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
            " WHERE relname = %s",
            [table],
        )
        return int(cursor.fetchone()[0])


@pytest.mark.sample(6)
@pytest.mark.parametrize("limit", ["", "0", "3", "+3", "٣", "50", "1001", "3&limit=4"])
@pytest.mark.parametrize(
    "cursor", [None, "", "x", [], [0], [-1], [1 << 70], [True], ["1"], [1, 2], [1 << 60]]
)
def test_a_page_in_the_order_of_ids_is_that_of_no_order(
    api: apis.Api, limit: str, cursor: str | list[Any] | None
) -> None:
    """Blocks are read by one statement if nothing is filtered or ordered."""
    if isinstance(cursor, list):
        cursor = base64.urlsafe_b64encode(json.dumps([False, cursor]).encode()).decode().rstrip("=")
    path = f"blocks/?limit={limit}" + ("" if cursor is None else f"&cursor={cursor}")
    answers = [api("GET", path + ordering) for ordering in ("", "&ordering=id")]
    plain, ordered = ((answer.status_code, _contents(answer.json())) for answer in answers)
    assert plain == ordered


def _contents(document: dict[str, Any]) -> Any:
    """A page with the cursors of its links, or the problems of a refusal."""
    links = [document.get(name) for name in ("next", "previous")]
    cursors = [link and re.findall(r"cursor=([^&]+)", link) for link in links]
    return document.get("results"), cursors, document.get("code"), document.get("errors")


@pytest.mark.exhaustive
def test_blocks_are_read_without_the_others_before_there_are_statistics(api: apis.Api) -> None:
    pool = api.vm_pool("10.1.0.0/16", name="c")
    block = api.take(pool, "first")
    paths = {"blocks/?limit=100": 300, f"blocks/{block['id']}/": 5}  # rows, at most
    for path in paths:
        for _ in range(8):  # then PostgreSQL keeps its plan, of a table of one row
            assert api("GET", path).status_code == 200
    holders = [{"kind": "vm", "id": f"w-{number}"} for number in range(3000)]
    api.create(f"pools/{pool}/allocations/", {"holders": holders})
    for path, most in paths.items():
        before = _rows_read("pools_block")
        assert api("GET", path).status_code == 200
        assert _rows_read("pools_block") - before <= most, path
