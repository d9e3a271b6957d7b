"""Leaks on their page, in lists and by commands."""

import csv
import io
import json
import pathlib
import re
from typing import Any

import pytest
from django.core.management import CommandError
from django.test import Client

from pools.management import output
from pools.models import Leak
from pools.platform.conditions import evaluation
from tests import commands, factories, people
from tests.edges import api
from tests.leaks.feeds import Feed, row

LIST = "/admin/pools/leak/"


@pytest.fixture
def browser(db: None) -> Client:
    return people.signed_in(api.user("operator", is_staff=True))


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


def test_a_viewer_is_not_offered_to_reclaim(feed: Feed) -> None:
    feed.holds("i-1")
    feed.twice()
    viewer = people.signed_in(api.user("viewer", is_staff=True))
    text = page(viewer, LIST)
    assert "i-1" in text
    assert "reclaim_selected" not in text


def test_the_export_is_a_report_to_reclaim_from(
    feed: Feed, browser: Client, tmp_path: pathlib.Path
) -> None:
    feed.holds("=i-1", "u")
    feed.twice()
    text = browser.get(f"{LIST}export/").getvalue().decode()
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


# --- GET leaks/: filters and pages, and who may see them ------------------------------------------
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
    assert (leak["org"], leak["env"]) == ("acme", "prod")
    assert (leak["source"], leak["state"]) == ("tooling", "leaked")
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
        place = f"cluster={feed.cluster.name}&pool={feed.pool.pk}"
        assert len(listed(feed, query)) == len(listed(feed, f"{query}&{place}")) == count


# --- `ipam leaks` and `ipam reclaim`: reports that are stored and reclaimed from, and exit
# statuses
def ipam(*words: str) -> tuple[int, str]:
    """Status and standard output."""
    return commands.status_and_output("ipam", *words)


def reclaim_outcomes(*words: str) -> list[tuple[str, str]]:
    """Result and code of each block."""
    _, text = ipam("reclaim", *words, "--reason", "gone", "-o", "json")
    return [(load["result"], load["code"]) for load in json.loads(text)]


def stored(folder: pathlib.Path, form: str) -> str:
    path = folder / f"leaks.{form}"
    path.write_text(ipam("leaks", "-o", form)[1], encoding="utf-8", newline="")
    return str(path)


def test_nothing_leaked(feed: Feed) -> None:
    feed.holds("i-1")
    feed.report()
    assert ipam("leaks", "-o", "json") == (output.DONE, "[]\n")
    assert ipam("leaks", "--suspected")[0] == output.FOUND


def test_status_3_when_there_are_leaks(feed: Feed) -> None:
    block = feed.holds("i-1")
    feed.twice()
    status, text = ipam("leaks", "-o", "json")
    assert status == output.FOUND
    (leak,) = json.loads(text)
    assert (leak["block_id"], leak["cidr"]) == (block["id"], block["cidr"])
    assert leak["holder_id"] == "i-1"
    assert "instance i-1 is missing from" in leak["why"]
    assert ipam("leaks", "--cluster", feed.cluster.name)[0] == output.FOUND
    assert ipam("leaks", "--holder-kind", "node")[0] == output.DONE
    other = factories.cluster()
    assert ipam("leaks", "--cluster", other.name)[0] == output.DONE
    with pytest.raises(CommandError, match="not_found"):
        ipam("leaks", "--cluster", "nowhere")


def test_a_cell_is_no_formula(feed: Feed, tmp_path: pathlib.Path) -> None:
    """And is read back as it was."""
    block = feed.holds("=1+1")
    feed.twice()
    (line,) = csv.DictReader(io.StringIO(ipam("leaks", "-o", "csv")[1]))
    assert line["holder_id"] == "'=1+1"
    assert reclaim_outcomes("--from-report", stored(tmp_path, "csv")) == [("reclaimed", "")]
    assert row(block).state == "cooling"


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_from_a_stored_report(feed: Feed, tmp_path: pathlib.Path, form: str) -> None:
    blocks = [feed.holds(name, uid) for name, uid in (("i-1", "u"), ("i-2", ""), ("i-3", "v"))]
    feed.twice()
    report = stored(tmp_path, form)
    feed.report("i-2", complete=False)
    factories.give_back(blocks[2])
    feed.clock.advance(1)
    feed.holds("i-3", "v")
    dry = reclaim_outcomes("--from-report", report, "--dry-run")
    results = [("refused", "referenced_again"), ("refused", "holder_changed")]
    assert dry == [("would_reclaim", ""), *results]
    assert row(blocks[0]).state == "held"
    assert reclaim_outcomes("--from-report", report) == [("reclaimed", ""), *results]
    assert reclaim_outcomes("--from-report", report) == [("repeated", ""), *results]
    assert [row(block).state for block in blocks] == ["cooling", "held", "held"]
    assert ipam("reclaim", "--from-report", report, "--reason", "x")[0] == output.REFUSED


def test_blocks_by_name(feed: Feed) -> None:
    first, other, held = (feed.holds(name) for name in ("i-1", "i-2", "i-3"))
    feed.twice("i-3")
    assert reclaim_outcomes(str(first["id"]), other["cidr"], str(held["address"])) == [
        ("reclaimed", ""), ("reclaimed", ""), ("refused", "referenced_again"),
    ]  # fmt: skip
    assert reclaim_outcomes(str(first["id"]), "--cluster", feed.cluster.name) == [("repeated", "")]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "required"),
        (("1", "--from-report", "x"), "required"),
        (("4711",), "not_found"),
        (("10.99.0.1",), "not_found"),
        (("10.99.0.0/33",), "prefix_length"),
        (("--from-report", "/nowhere/report.json"), "unreadable"),
    ],
)
def test_odd_command_lines(feed: Feed, words: tuple[str, ...], code: str) -> None:
    with pytest.raises(CommandError, match=f"^{code}: "):
        ipam("reclaim", *words, "--reason", "gone")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "report_columns"),
        ("block_id,holder_id\n1,i\n", "report_columns"),
        ("{}", "wrong_type"),
        ("[1]", "report_row"),
        ("[{}]", "report_row"),
        ("[", "json_syntax"),
        ('[{"block_id":"x","holder_kind":"a","holder_id":"b","holder_uid":"","org":"",'
         '"allocated_at":"2026-01-01T00:00:00Z"}]', "report_row"),
        ('[{"block_id":1,"holder_kind":"a","holder_id":"b","holder_uid":"","org":"",'
         '"allocated_at":"2026-01-01"}]', "report_row"),
    ],
)  # fmt: skip
def test_odd_reports(feed: Feed, tmp_path: pathlib.Path, text: str, code: str) -> None:
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match=f"^{code}: "):
        ipam("reclaim", "--from-report", str(path), "--reason", "gone")


def test_a_reason_is_needed(feed: Feed) -> None:
    words: Any = ("reclaim", "1")
    with pytest.raises(CommandError, match=r"--reason"):
        ipam(*words)
    with pytest.raises(CommandError, match=r"^blank: "):
        ipam(*words, "--reason", " ")
