"""Answers that no NetBox should give: each fails the run with a reason, is asked for again, or is read as far as it can be."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.urls import reverse

from pools.platform.outbound import faults
from pools.register.imports import netbox
from tests import people
from tests.register_imports import netbox_server
from tests.register_imports.netbox_server import NetBox
from tests.register_imports.sources import counts, rows_of
from tests.register_imports.test_netbox_mirror import run, source

pytestmark = pytest.mark.django_db(transaction=True)
Answer = Callable[[BaseHTTPRequestHandler], None]


def answer(body: bytes, status: int = 200, **headers: str) -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def objects(*items: Any, count: Any = None, following: str | None = None) -> bytes:
    count = len(items) if count is None else count
    return json.dumps({"count": count, "next": following, "results": items}).encode()


def _cut(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(objects())
    handler.close_connection = True


def _trickle(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)
    handler.close_connection = True


AGAIN = "/api/ipam/aggregates/?limit=1&offset=0"
FAULTS: dict[str, tuple[Answer, type[faults.ClusterFault], str]] = {
    "redirect": (
        answer(b"", 301, Location="https://ipam.example/api/"),
        faults.MalformedResponse,
        "refers to https://ipam.example/api/: enter the URL that it refers to",
    ),
    "login page": (answer(b"<html>"), faults.MalformedResponse, "no JSON"),
    "another encoding": (answer(b'{"count": "\xff"}'), faults.MalformedResponse, "no JSON"),
    "deep": (answer(b"[" * 100_000), faults.MalformedResponse, "no JSON"),
    "no list": (answer(b"[]"), faults.MalformedResponse, "no list of objects"),
    "a count that is a text": (answer(objects(count="3")), faults.MalformedResponse, "is no list"),
    "no id": (answer(objects({"prefix": "10.0.0.0/8"})), faults.MalformedResponse, "without an id"),
    "an id that is a text": (answer(objects({"id": "x"})), faults.MalformedResponse, "without an id"),
    "no objects": (answer(objects("x")), faults.MalformedResponse, "without an id"),
    "pages without end": (
        answer(objects({"id": 1}, following=AGAIN)), netbox.ChangedWhileReading, "changed while",
    ),
    "cut": (_cut, faults.Unreachable, "was cut"),
    "bad gzip": (answer(b"nope", Content_Encoding="gzip"), faults.Unreachable, "was cut"),
    "a trickle": (_trickle, faults.Unreachable, "no answer in time"),
    "unstorable detail": (
        answer(b'{"detail": "no\\u0000 way"}', 403), faults.Forbidden, "no  way",
    ),
    "no detail": (answer(b'{"detail": ["no"]}', 403), faults.Forbidden, "it does not say why"),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_answer_fails_with_its_reason(
    server: NetBox, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netbox, "LONGEST_ANSWER", 0.2)
    server.raw, fault, words = FAULTS[case]
    with pytest.raises(fault, match=words):
        netbox.read(server.access(), sleep=lambda _: None)
    failed = run(source(server)) if case.startswith("unstorable") else None
    assert failed is None or (failed.status, failed.error_code) == ("failed", "cluster_forbidden")


@pytest.mark.parametrize("token", [netbox_server.TOKEN, netbox_server.TOKEN_V2])
@pytest.mark.parametrize("fault", ["detail", "redirect"])
def test_a_token_that_netbox_repeats_is_stored_and_logged_nowhere(
    server: NetBox, fault: str, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    def repeat(handler: BaseHTTPRequestHandler) -> None:
        sent = handler.headers["Authorization"]
        body = json.dumps({"detail": f"no access with {sent!r} or {token}"}).encode()
        location = f"https://ipam.example/{token}/?{sent.replace(chr(32), chr(43))}"
        (answer(body, 403) if fault == "detail" else answer(b"", 302, Location=location))(handler)

    server.raw = repeat
    with caplog.at_level(logging.INFO):
        failed = run(source(server, token=token))
    assert token in server.requests[0][1]
    assert failed.status == "failed"
    assert ("no access with" if fault == "detail" else "https://ipam.example/") in failed.error
    assert "[redacted]" in failed.error
    assert token[-12:] not in f"{failed.error} {caplog.text}"
    page = people.browser().get(reverse("admin:pools_import_change", args=[failed.pk]))
    assert page.status_code == 200
    assert token[-12:] not in page.content.decode()


def test_compressed_answers_are_read(server: NetBox) -> None:
    server.raw = answer(gzip.compress(objects()), Content_Encoding="gzip")
    assert netbox.read(server.access()).rows == []


def test_characters_that_cannot_be_stored_are_replaced(server: NetBox) -> None:
    server.prefix("10.0.0.0/24", description="one\0two", custom_fields={"x": "\ud800"})
    created = run(source(server))
    assert counts(created) == {"new": 1}
    (row,) = rows_of(created)
    assert (row.description, row.details["cf_x"]) == ("one\ufffdtwo", "\ufffd")
