"""Lists ordered by custom fields, over REST and in the admin."""

import base64
import json
from typing import Any

import pytest
from django.urls import reverse

from tests import people
from tests.edges import api as apis
from tests.security import everything

RACK = {"name": "rack", "label": "Rack", "type": "number"}
STAGE = {"name": "stage", "label": "Stage", "type": "choice", "choices": ["test", "live"]}
NOTE = {"name": "note", "label": "Note", "type": "text"}
LARGEST = "123456789012345678901234567890.123456789012345"
CLUSTERS: dict[str, dict[str, object]] = {
    "c0": {},
    "c1": {"rack": 10},
    "c2": {"rack": "-3.5"},
    "c3": {"rack": 9, "stage": "test"},
    "c4": {},
    "c5": {"rack": LARGEST, "stage": "live"},
    "c6": {"rack": 0, "stage": "live"},
    "c7": {"rack": 10},
}
# Those without a value are the least; equal ones are in the order of their ids.
ORDERS = {
    "cf_rack": ["c0", "c4", "c2", "c6", "c3", "c1", "c7", "c5"],
    "cf_stage": ["c0", "c1", "c2", "c4", "c7", "c5", "c6", "c3"],
}


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    for definition in (RACK, STAGE, NOTE):
        api.create("custom-fields/", {**definition, "object_types": ["cluster"]})
    api.create("custom-fields/", {**NOTE, "name": "wiki", "object_types": ["pool"]})
    return api


@pytest.fixture
def clusters(api: apis.Api) -> None:
    for name, values in CLUSTERS.items():
        api.create("clusters/", {"name": name, "custom_fields": values})


def ordered(api: apis.Api, ordering: str) -> list[str]:
    """The names of all clusters by pages of two; the link back of each page leads to the page before."""
    root, path = "/api/v1/", f"clusters/?ordering={ordering}&limit=2"
    pages: list[list[str]] = []
    while path:
        page = api("GET", path).json()
        if page["previous"]:
            back = api("GET", page["previous"].partition(root)[2]).json()["results"]
            assert [row["name"] for row in back] == pages[-1]
        pages.append([row["name"] for row in page["results"]])
        path = (page["next"] or "").partition(root)[2]
    return [name for page_names in pages for name in page_names]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("ordering", ORDERS)
def test_pages_of_rest_are_ordered(api: apis.Api, ordering: str) -> None:
    assert ordered(api, ordering) == ORDERS[ordering]
    assert ordered(api, f"-{ordering}") == ORDERS[ordering][::-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["cluster", "pool", "network", "container"])
def test_lists_of_each_kind_are_ordered(kind: str) -> None:
    everything.create()
    api = apis.Api()
    api.create("custom-fields/", {**RACK, "name": "row", "object_types": [kind]})
    answer = api("GET", f"{kind}s/?ordering=-cf_row&limit=1")
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == 1


@pytest.mark.exhaustive
@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("ordering", ORDERS)
def test_columns_of_the_admin_are_ordered(ordering: str) -> None:
    browser, rows = people.browser(), reverse("admin:pools_cluster_changelist")
    chosen = {"column": ["name", *ORDERS]}
    browser.post(reverse("admin:list_columns", args=["pools.cluster"]), chosen)
    shown = [
        getattr(column, "__name__", "") for column in browser.get(rows).context["cl"].list_display
    ]
    values = [CLUSTERS[name].get(ordering.removeprefix("cf_")) for name in ORDERS[ordering]]
    for sign, expected in (("", values), ("-", values[::-1])):
        changelist = browser.get(f"{rows}?o={sign}{shown.index(ordering)}").context["cl"]
        names = [row.name for row in changelist.result_list]
        assert [CLUSTERS[name].get(ordering.removeprefix("cf_")) for name in names] == expected


@pytest.mark.parametrize("values", [["x", 1], ["1e5", 1], [5, 1], ["1"], [None, 1], ["NaN", 1]])
def test_a_cursor_of_another_order_is_refused(api: apis.Api, values: list[Any]) -> None:
    text = json.dumps([False, values]).encode()
    cursor = base64.urlsafe_b64encode(text).decode().rstrip("=")
    problem = api("GET", f"clusters/?ordering=cf_rack&cursor={cursor}").json()
    assert (problem["code"], problem["errors"][0]["field"]) == ("cursor", "cursor")


def test_cursors_of_long_texts_are_short_enough(api: apis.Api) -> None:
    for number in range(3):
        note = "\U0001f310" * 499 + str(number)
        api.create("clusters/", {"name": f"c{number}", "custom_fields": {"note": note}})
    assert ordered(api, "cf_note") == ["c0", "c1", "c2"]
