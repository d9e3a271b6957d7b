"""`make check` names a pinned package with a known flaw, and says when it could not look."""

import contextlib
import datetime
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import servers
from tests.deploy import shipped

SCRIPT = shipped.DEPLOY / "container" / "advisories.py"
LOCKS = (SCRIPT.parent / "requirements.lock", SCRIPT.parents[2] / "requirements-dev.lock")
OLD, YOUNG = "2026-01-05T00:00:00Z", f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}T00:00:00Z"


def advisory(**changes: Any) -> dict[str, Any]:
    fixed = changes.pop("fixed", "99.0")
    events = [{"introduced": "0"}, *([{"fixed": fixed}] if fixed else [])]
    affected = {"package": {"name": "Django"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {
        "id": "PYSEC-2026-7", "aliases": ["CVE-2026-77"], "published": OLD, "summary": "SQL\ninjection",
        "affected": [affected], **changes,
    }  # fmt: skip


@contextlib.contextmanager
def serving(known_advisory: dict[str, Any] | None) -> Iterator[str]:
    """OSV's API on this machine, with at most one advisory, about Django."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            hit = {"vulns": [{"id": "PYSEC-2026-7"}]} if known_advisory else {}
            names = [query["package"]["name"] for query in queries]
            assert "django" in names
            self._answer({"results": [hit if name == "django" else {} for name in names]})

        def do_GET(self) -> None:
            assert self.path == "/v1/vulns/PYSEC-2026-7"
            self._answer(known_advisory)

        def _answer(self, body: Any) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with servers.in_thread(server):
        yield f"http://127.0.0.1:{server.server_port}"


def check(url: str, folder: pathlib.Path | None = None) -> tuple[int, str]:
    script = SCRIPT if folder is None else folder / "deploy" / "container" / SCRIPT.name
    environment = {"ADVISORIES_URL": url, "no_proxy": "127.0.0.1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_flaw_that_has_been_fixed_fails() -> None:
    with serving(advisory()) as url:
        status, text = check(url)
    assert status == 1
    assert re.search(
        r"FLAW: django 5\S+: PYSEC-2026-7 of 2026-01-05, fixed in 99.0. SQL injection", text
    )


@pytest.mark.parametrize("changes", [{"published": YOUNG}, {"fixed": ""}], ids=["young", "no fix"])
def test_one_that_nobody_can_act_on_yet_is_a_note(changes: dict[str, Any]) -> None:
    with serving(advisory(**changes)) as url:
        status, text = check(url)
    assert (status, "note: django" in text) == (0, True)


@pytest.mark.parametrize(
    "known_advisory", [None, advisory(withdrawn=OLD)], ids=["none", "withdrawn"]
)
def test_nothing_found(known_advisory: Any) -> None:
    with serving(known_advisory) as url:
        status, text = check(url)
    assert status == 0
    assert re.fullmatch(r"Advisories: \d+ packages, no flaw that has been fixed.\n", text)


@pytest.mark.exhaustive
def test_without_a_network_it_says_in_one_line_that_it_could_not_look() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        answers = [
            check("http://127.0.0.1:1"),
            check(f"http://127.0.0.1:{silent.getsockname()[1]}"),  # never answers
            check(""),
        ]
        assert time.monotonic() - began < 60
    for status, text in answers:
        assert status == 0
        assert re.fullmatch(r"Advisories: could not look \(.+\)\n", text)


@pytest.mark.parametrize(("line", "status"), [
    ("CVE-2026-77 until 2999-01-01 not reachable", 0),
    ("PYSEC-2026-7 until 2026-01-01 not reachable", 1),
])  # fmt: skip
def test_an_ignored_one_counts_again_after_its_day(
    tmp_path: pathlib.Path, line: str, status: int
) -> None:
    folder = tmp_path / "deploy" / "container"
    folder.mkdir(parents=True)
    (folder / SCRIPT.name).write_text(SCRIPT.read_text())
    (folder / "requirements.lock").write_text(LOCKS[0].read_text())
    (tmp_path / "requirements-dev.lock").write_text(LOCKS[1].read_text())
    (folder / "advisories-ignored.txt").write_text(f"{line}\n")
    with serving(advisory()) as url:
        assert check(url, tmp_path)[0] == status
