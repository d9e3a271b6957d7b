"""The page of leaks: what it shows, reclaim with its say first, and the line on the overview."""

import csv
import io
import pathlib
import re
from typing import Any

import pytest
from django.test import Client

from pools.models import Leak
from pools.platform.conditions import evaluation
from tests.edges import api
from tests.leaks.feeds import Feed, row
from tests.leaks.test_commands import reclaim_outcomes

LIST = "/admin/pools/leak/"


@pytest.fixture
def browser(db: None) -> Client:
    client = Client()
    client.force_login(api.user("operator", is_staff=True))
    return client


def page(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, (path, answer.status_code)
    return str(answer.content.decode())


def hidden(text: str) -> dict[str, list[str]]:
    """The hidden fields of the page."""
    result: dict[str, list[str]] = {}
    for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', text):
        if name != "csrfmiddlewaretoken":
            result.setdefault(name, []).append(value)
    return result


@pytest.mark.exhaustive
def test_leaks_and_suspicions(feed: Feed, browser: Client) -> None:
    feed.holds("i-1")
    feed.twice()
    feed.holds("i-2")
    feed.report()
    text = page(browser, LIST)
    assert "i-1" in text
    assert "i-2" not in text
    assert "instance i-1 is missing from the last 3 inventory reports." in text
    assert "Inventory reports" in text
    assert "i-2" in page(browser, LIST, state="suspected")
    assert "i-1" not in page(browser, LIST, kind="node")
    assert "i-1" in page(browser, LIST, source="tooling", cluster=feed.cluster.pk)
    assert "i-1" in page(browser, LIST, q="i-1", pool=feed.pool.pk)
    assert "i-1" in page(browser, f"{LIST}{Leak.objects.get(holder_id='i-1').pk}/change/")
    assert browser.get(f"{LIST}999999/change/").status_code == 404


def test_reclaim_says_whom_it_hits_and_does_what_was_shown(feed: Feed, browser: Client) -> None:
    blocks = [feed.holds(name, f"u-{name}") for name in ("i-1", "i-2", "i-3")]
    feed.twice()
    ids = list(Leak.objects.values_list("pk", flat=True))
    action = {"action": "reclaim_selected", "_selected_action": ids}
    answer = browser.post(LIST, action)
    assert answer.status_code == 302
    text = page(browser, answer.headers["Location"])
    assert "Reclaim 3 blocks?" in text
    assert "3 holders in" in text
    assert feed.cluster.name in text
    fields = hidden(text)
    without = browser.post(f"{LIST}reclaim/", fields)
    assert without.status_code == 200
    assert row(blocks[0]).state == "held", "a reason is needed"
    assert hidden(without.content.decode()) == fields
    feed.report("i-2", complete=False)
    done = browser.post(f"{LIST}reclaim/", {**fields, "reason": "gone"})
    assert "2 of 3 blocks reclaimed" in done.content.decode()
    assert "is referenced" in done.content.decode()
    assert [row(block).state for block in blocks] == ["cooling", "held", "cooling"]


def test_a_form_of_before_hits_nobody_else(feed: Feed, browser: Client) -> None:
    block = feed.holds("i-1")
    feed.twice()
    fields = hidden(page(browser, f"{LIST}reclaim/", id=Leak.objects.get().pk))
    fields[f"holder-id-{block['id']}"] = ["i-2"]
    done = browser.post(f"{LIST}reclaim/", {**fields, "reason": "gone"})
    assert "0 of 1 block reclaimed" in done.content.decode()
    assert row(block).state == "held"


def test_a_viewer_sees_and_does_not_reclaim(feed: Feed) -> None:
    feed.holds("i-1")
    feed.twice()
    viewer = Client()
    viewer.force_login(api.user("viewer", is_staff=True))
    text = page(viewer, LIST)
    assert "i-1" in text
    assert "reclaim_selected" not in text
    pk = Leak.objects.get().pk
    assert viewer.get(f"{LIST}reclaim/", {"id": pk}).status_code == 403
    stranger = Client()
    stranger.force_login(api.user("vm-owner", is_staff=True))
    assert stranger.get(LIST).status_code == 403
    assert stranger.get(f"{LIST}{pk}/change/").status_code == 403
    assert stranger.get(f"{LIST}export/").status_code == 403


def test_the_export_is_a_report_to_reclaim_from(
    feed: Feed, browser: Client, tmp_path: pathlib.Path
) -> None:
    feed.holds("=i-1", "u")
    feed.twice()
    answer: Any = browser.get(f"{LIST}export/")
    text = b"".join(answer.streaming_content).decode()
    (line,) = csv.DictReader(io.StringIO(text))
    assert line["holder_id"] == "'=i-1"
    path = tmp_path / "leaks.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert reclaim_outcomes("--from-report", str(path)) == [("reclaimed", "")]


def test_the_overview_says_how_many_leaked(feed: Feed, browser: Client) -> None:
    assert "leaked" not in page(browser, "/admin/")
    for number in range(3):
        feed.holds(f"i-{number}")
    feed.twice()
    evaluation.evaluate()
    text = page(browser, "/admin/")
    assert "3 blocks leaked in cluster" in text
    assert f"{LIST}?state=leaked&amp;cluster=" in text


def test_the_page_of_a_block_says_so(feed: Feed, browser: Client) -> None:
    block = feed.holds("i-1")
    assert "leaked" not in page(browser, f"/admin/pools/block/{block['id']}/change/")
    feed.twice()
    assert "leaked" in page(browser, f"/admin/pools/block/{block['id']}/change/")
