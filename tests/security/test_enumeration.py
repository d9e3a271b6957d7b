"""What nobody is told of others, and what others wrote."""

import csv
import io
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.security.target import Answer, Target, Visitor

_PASSING = {"Date", "X-Request-Id", "Content-Length", "Expires", "Set-Cookie"}


def _said(answer: Answer, name: str) -> tuple[int, str, dict[str, str]]:
    text = re.sub(r'(csrfmiddlewaretoken" value|nonce)="[^"]*"', "", answer.text)
    headers = {key: value for key, value in answer.headers.items() if key not in _PASSING}
    return answer.status, text.replace(name, "NAME"), headers


def test_a_login_that_fails_tells_nothing_of_the_user(target: Target) -> None:
    replies = [
        _said(Visitor(target).login(name, "wrong"), name)
        for name in ("administrator", "administratox", "vera", "verx")
    ]
    assert replies[0][0] in {200, 429}
    assert [item for item in replies if item != replies[0]] == []


def test_tokens_that_are_wrong_are_wrong_alike(target: Target) -> None:
    viewer = target.tokens["viewer"]
    wrong = [
        viewer[:-1] + ("0" if viewer[-1] != "0" else "1"),
        "cad_" + "0" * 60,
        target.tokens["expired"],
    ]
    replies = [_said(target.rest("GET", "pools/", token=item), item) for item in wrong]
    bodies = {re.sub(r'"request_id": "[^"]*"', "", text) for _, text, _ in replies}
    assert ({status for status, _, _ in replies}, len(bodies)) == ({401}, 1)


def test_what_is_foreign_is_like_what_is_not_there(target: Target) -> None:
    network = {
        "cluster": "prod", "name": "cluster_udn_s32", "kind": "cudn", "topology": "layer2",
        "role": "primary", "lifecycle": "Persistent", "subnets": ["10.79.0.0/24"],
        "namespaces": ["zulu"],
    }  # fmt: skip
    foreign = str(target.rest("POST", "networks/", network).json()["id"])
    absent = "987654321"
    visitor = Visitor(target)
    visitor.login("vera")
    for path in ("", "manifest/", "workloads/", "addresses-for-mac/?mac=02:00:00:00:00:01"):
        replies = [
            _said(target.rest("GET", f"networks/{item}/{path}", token="vera"), f"/{item}/")
            for item in (foreign, absent)
        ]
        texts = [re.sub(r'"request_id": "[^"]*"', "", text) for _, text, _ in replies]
        assert texts[0] == texts[1], path
        assert replies[0][0] == replies[1][0] == 404, path
        assert replies[0][2] == replies[1][2], path
    for path in ("change", "history", "delete", "edit"):
        pages = [
            _said(visitor.ask("GET", f"/admin/claims/network/{item}/{path}/"), f"/{item}/")
            for item in (foreign, absent)
        ]
        assert pages[0] == pages[1], path


# --- Rule `overrides-need-a-reason` ---------------------------------------------------------------
def _holder(name: str) -> dict[str, Any]:
    return {"holder": {"kind": "vm", "id": name}}


def test_force_and_the_end_of_a_cooldown(target: Target) -> None:
    part = {"mask_size": 32, "cidrs": ["10.89.0.0/29"]}
    pool = {
        "cluster": "prod",
        "name": "s33",
        "category": "vm",
        "ipv4": part,
        "cooldown_seconds": 600,
    }
    place = f"pools/{target.rest('POST', 'pools/', pool).json()['id']}/allocations/"
    held = target.rest("POST", place, _holder("victim")).json()["blocks"][0]
    block = held["id"]
    release, cooldown = f"blocks/{block}/release/", f"blocks/{block}/end-cooldown/"
    for token in ("viewer", "operator", "vera"):
        assert target.rest("POST", release, {"force": True, "reason": "x"}, token).status == 403
        assert target.rest("POST", cooldown, {"reason": "x"}, token).status == 403
    assert target.rest("POST", release, _holder("another")).status == 409
    for reason in ({}, {"reason": ""}, {"reason": "  "}):
        assert target.rest("POST", release, {"force": True} | reason).status == 400, reason
    done = target.rest("POST", release, {"force": True, "reason": "its host burnt"})
    assert done.status == 200, done.text
    assert target.rest("POST", cooldown, {}).status == 400
    assert target.rest("POST", cooldown, {"reason": "never used"}).status == 200
    events = target.rest("GET", f"events/?block={held['cidr']}&limit=20").json()["results"]
    reasons = {(event["actor"], event["reason"]) for event in events}
    assert {("administrator", "its host burnt"), ("administrator", "never used")} <= reasons


def test_a_cluster_goes_by_force_with_a_reason_only(target: Target) -> None:
    target.rest("POST", "clusters/", {"name": "burnt"})
    part = {"mask_size": 32, "cidrs": ["10.90.0.0/29"]}
    pool = {"cluster": "burnt", "name": "p", "category": "vm", "ipv4": part}
    pool_id = target.rest("POST", "pools/", pool).json()["id"]
    target.rest("POST", f"pools/{pool_id}/allocations/", _holder("a"))
    path = "clusters/burnt/?force=true"
    assert target.rest("DELETE", f"{path}&reason=x", token="operator").status == 403
    assert target.rest("DELETE", "clusters/burnt/").status == 409
    assert target.rest("DELETE", path).status == 400
    assert target.rest("DELETE", f"{path}&reason=fire").status == 204


# --- Rule `vm-owner-asks-for-own-vms` -------------------------------------------------------------
ENTRY = {"mac": "02:aa:00:00:00:01", "ips": ["10.77.0.5/24"], "vm": "web", "namespace": "alpha"}


@pytest.fixture(scope="module")
def place(target: Target) -> str:
    """The entries of a network of the namespace alpha."""
    network: dict[str, Any] = {
        "cluster": "prod", "name": "alpha_s08", "namespace": "alpha", "kind": "udn",
        "topology": "layer2", "role": "primary", "lifecycle": "Persistent",
        "subnets": ["10.77.0.0/24"],
    }  # fmt: skip
    assert target.rest("POST", "networks/", network).status == 201
    body = {"cluster": "prod", "name": "s08", "network_name": "alpha_s08"}
    return f"ippools/{target.rest('POST', 'ippools/', body).json()['id']}/entries/"


def test_namespaces_of_others_are_like_those_that_there_are_not(target: Target, place: str) -> None:
    replies = [
        target.rest("POST", place, ENTRY | {"namespace": name}, "vera")
        for name in ("beta", "gamma")
    ]
    assert [answer.status for answer in replies] == [403, 403]
    first, second = (answer.json() | {"request_id": ""} for answer in replies)
    assert first == second


def test_nothing_is_set_that_others_decide(target: Target, place: str) -> None:
    for name, value in (("source", "manual"), ("id", 1), ("ippool", 1), ("is_superuser", True)):
        assert target.rest("POST", place, ENTRY | {name: value}, "vera").status == 400, name
    created = target.rest("POST", place, ENTRY, "vera")
    assert (created.status, created.json()["source"]) == (201, "request")
    entry_path = f"{place}{created.json()['id']}/"
    assert target.rest("PATCH", entry_path, {"mac": "02:aa:00:00:00:02"}, "vera").status == 403
    assert target.rest("PUT", place, {"entries": []}, "vera").status == 403
    answer = target.rest("POST", place, ENTRY | {"mac": "02:aa:00:00:00:03", "vm": "x"}, "vera")
    assert answer.status in {201, 409}  # of one's own VMs; never of others
    for method, path, body in (
        ("PATCH", "clusters/prod/", {"description": "x"}),
        ("POST", "pools/", {}),
        ("POST", "memberships/", {"user": "vera", "cluster": "prod", "namespaces": ["beta"]}),
        ("PATCH", place.removesuffix("entries/"), {"note": "x"}),
        ("POST", "leaks/reclaim/", {}),
    ):
        assert target.rest(method, path, body, "vera").status == 403, path


# --- Rules `markup-is-escaped`, `exports-hold-no-formula` and `input-is-never-sql` ----------------
SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("https://evil.example")')


@pytest.fixture(scope="module")
def reader(target: Target) -> Visitor:
    visitor = Visitor(target)
    visitor.login("administrator")
    return visitor


@pytest.mark.exhaustive
def test_no_page_runs_what_somebody_wrote(target: Target, reader: Visitor) -> None:
    created = target.rest("POST", "clusters/", {"name": "written", "description": SCRIPT})
    assert created.status == 201, created.text
    part = {"mask_size": 32, "cidrs": ["10.88.0.0/29"]}
    pool = {
        "cluster": "written",
        "name": "w",
        "category": "vm",
        "ipv4": part,
        "description": SCRIPT,
    }
    pool_id = target.rest("POST", "pools/", pool).json()["id"]
    holder = {"holder": {"kind": "vm", "id": "<script>alert(1)</script>"}}
    target.rest("POST", f"pools/{pool_id}/allocations/", holder)
    paths = [
        "", "pools/cluster/", "pools/pool/", f"pools/pool/{pool_id}/change/", "pools/event/",
        f"pools/cluster/{created.json()['id']}/change/", "pools/block/", "history/?q=10.88.0.0",
        f"find/?q={quote(SCRIPT)}", f"pools/pool/?q={quote(SCRIPT)}",
    ]  # fmt: skip
    for path in paths:
        answer = reader.ask("GET", f"/admin/{path}")
        assert answer.status == 200, path
        assert "<script>alert" not in answer.text, path
        assert "<img src=x" not in answer.text, path
    answer = target.rest("GET", f"pools/{pool_id}/")
    assert answer.headers["Content-Type"] == "application/json"


def test_no_spreadsheet_computes_what_somebody_wrote(target: Target, reader: Visitor) -> None:
    for number, formula in enumerate(FORMULAS):
        body = {"name": f"formula-{number}", "description": formula}
        assert target.rest("POST", "clusters/", body).status == 201
    text = reader.ask("GET", "/admin/pools/cluster/export/").text
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert [cell for cell in cells if cell.startswith("'=")]
    for formula in FORMULAS:
        assert formula not in cells
        assert f"'{formula}" in cells


INJECTIONS = ("1' OR '1'='1", "1;DROP TABLE pools_pool", "id);SELECT pg_sleep(60)--", "cluster__name", "-password")  # fmt: skip


def test_no_filter_or_order_is_sql(target: Target, reader: Visitor) -> None:
    for text in INJECTIONS:
        value = quote(text)
        for path in (
            f"pools/?ordering={value}",
            f"blocks/?pool={value}",
            f"events/?fields={value}",
        ):
            answer = target.rest("GET", path)
            assert answer.status == 400, (path, answer.status)
        for path in ("blocks/?holder_id={}", "environments/?org={}", "networks/?name={}"):
            answer = target.rest("GET", path.format(value))
            assert answer.status in {200, 400}, path
            assert answer.status == 400 or answer.json()["results"] == [], path
        for path in ("pools/pool/?o={}", "pools/block/?q={}", "auth/user/?password__startswith={}", "find/?q={}"):  # fmt: skip
            answer = reader.ask("GET", f"/admin/{path.format(value)}")
            assert answer.status in {200, 302, 400}, (path, answer.status)
    assert target.rest("GET", "pools/").status == 200
