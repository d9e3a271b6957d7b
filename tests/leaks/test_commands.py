"""`ipam leaks` and `ipam reclaim`: reports that are stored and reclaimed from, and exit statuses."""

import csv
import io
import json
import pathlib
from typing import Any

import pytest
from django.core.management import CommandError

from pools.management import output
from tests import commands, factories
from tests.leaks.feeds import Feed, row


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
    assert (leak["block_id"], leak["holder_id"], leak["cidr"]) == (
        block["id"],
        "i-1",
        block["cidr"],
    )
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
