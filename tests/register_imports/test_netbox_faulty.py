"""Answers of NetBox: what no NetBox should give fails the run with a reason, and the objects of each version say the same.

The fields are those of netbox/ipam/api/serializers.py of v3.0.12, v3.7.8 and v4.1.11, and of serializers_/ of v4.6.8: 3.0 has fewer, 4.2 has scopes,
4.5 has owners.
"""

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
from tests.register_imports.netbox_server import NetBox, choice
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


def nested(name: str | None, **more: Any) -> dict[str, Any]:
    display = name or "MX480 (7)"
    return {"id": 7, "url": "https://netbox/7/", "display": display, "name": name, **more}


FAMILY = {"value": 4, "label": "IPv4"}
TIMES = {"created": "2021-09-01", "last_updated": "2021-09-01T08:00:00Z"}
TAG = nested("Old One", slug="old-one", color="9e9e9e")
VRF = nested("Blue", rd="65000:1", prefix_count=2)
VLAN = nested("Data", vid=100) | {"display": "Data (100)"}
SITE = nested("Berlin", slug="berlin")
SHARED_3_0 = {
    "url": "x", "display": "x", "family": FAMILY, "vrf": VRF, "tenant": nested("Acme", slug="acme"), "description": "d",
    "tags": [TAG], "custom_fields": {"stage": "live", "none": None}, **TIMES,
}  # fmt: skip
SHARED = SHARED_3_0 | {"comments": "note"}
SHARED_4_0 = SHARED | {"display_url": "x"}
PREFIX = {
    "id": 2, "prefix": "10.1.1.0/24", "site": SITE, "vlan": VLAN, "status": choice("active"),
    "role": nested("Access", slug="access"), "is_pool": False, "mark_utilized": True, "children": 0, "_depth": 0,
}  # fmt: skip
SCOPED = {name: value for name, value in PREFIX.items() if name != "site"} | {
    "scope_type": "dcim.site", "scope_id": 7, "scope": SITE,
}  # fmt: skip
RANGE = {
    "id": 3, "start_address": "10.1.1.100/24", "end_address": "10.1.1.109/24", "size": 10,
    "status": choice("reserved"), "role": None,
}  # fmt: skip
INTERFACE = nested("eth0", cable=None, _occupied=False, device=nested("sw-1"))
ADDRESS = {
    "id": 4, "address": "10.1.1.5/24", "status": choice("active"), "role": choice("loopback"), "nat_inside": None,
    "nat_outside": [], "dns_name": "a.example", "assigned_object_type": "dcim.interface", "assigned_object_id": 7,
    "assigned_object": INTERFACE,
}  # fmt: skip
TEXTS = {"vrf": "Blue", "tenant": "Acme", "description": "d", "tags": "old-one", "cf_stage": "live"}
NEWER = TEXTS | {"note": "note"}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("shared", "prefix", "texts"),
    [
        (SHARED_3_0, PREFIX, TEXTS),
        (SHARED, PREFIX, NEWER),
        (SHARED_4_0, PREFIX, NEWER),
        (SHARED_4_0 | {"owner": nested("Net Team")}, SCOPED, NEWER | {"owner": "Net Team"}),
    ],
    ids=["3.0", "3.7", "4.1", "4.6"],
)
def test_objects_of_each_version_say_the_same(
    server: NetBox, shared: dict[str, Any], prefix: dict[str, Any], texts: dict[str, str]
) -> None:
    server.objects |= {
        "prefixes": [shared | prefix],
        "ip-ranges": [shared | RANGE],
        "ip-addresses": [shared | ADDRESS],
    }
    mirror = source(server)
    first = run(mirror)
    # Two ranges withhold what the utilized prefix has beside the other one.
    assert (first.error, counts(first)) == ("", {"new": 5})
    assert [row.texts for row in rows_of(first)][:3] == [
        texts | {
            "external_id": "2", "prefix": "10.1.1.0/24", "site": "Berlin", "vlan": "Data (100)", "status": "active",
            "role": "Access", "mark_utilized": "yes",
        },
        texts | {"external_id": "3", "first": "10.1.1.100/24", "last": "10.1.1.109/24", "status": "reserved"},
        texts | {
            "external_id": "4", "address": "10.1.1.5/24", "status": "active", "role": "loopback",
            "dns_name": "a.example", "holder": "sw-1", "interface": "eth0",
        },
    ]  # fmt: skip
    assert counts(run(mirror)) == {"unchanged": 5}


def test_interfaces_of_virtual_machines_of_nameless_devices_and_groups(server: NetBox) -> None:
    server.prefix("10.1.1.0/24")
    assigned = [
        nested("eth0", virtual_machine=nested("vm-1")),
        nested("eth0", device=nested(None)),
        {"id": 1, "url": "x", "display": "VRRP: 10", "protocol": "vrrp", "group_id": 10},
    ]
    for number, item in enumerate(assigned, start=5):
        server.address(f"10.1.1.{number}/24", dns_name="a.example", assigned_object=item)
    holders = [row.holder_id for row in rows_of(run(source(server))) if row.kind == "address"]
    assert holders == ["vm-1", "MX480 (7)", "a.example"]


def test_a_netbox_that_sorts_its_own_way_is_read_completely(server: NetBox) -> None:
    """Until 3.3 the parameter `ordering` is unknown, and pages come by VRF and prefix."""
    for number in (3, 1, 2, 5, 4):
        server.prefix(f"10.1.{number}.0/24")
    server.order = lambda item: item["prefix"]
    server.before_page = lambda name, offset: (
        server.statuses.extend([502, 429]) if (name, offset) == ("prefixes", 0) else None
    )
    waits: list[float] = []
    rows = netbox.read(server.access(), sleep=waits.append).rows
    assert [row.texts["prefix"] for row in rows] == [f"10.1.{n}.0/24" for n in range(1, 6)]
    assert waits == [2.0, 3.0]
