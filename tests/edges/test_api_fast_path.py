"""What the fast path does is answered, judged and recorded as by the ordinary way.

A request with a cookie takes the ordinary way; the number of round trips says which one was taken.
"""

from __future__ import annotations

import base64
import datetime
import json
import pathlib
import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone
from knox.models import AuthToken

from pools.models import Block, Pool
from pools.models.history import BlockEvent
from pools.platform import tokens
from tests.edges import api as apis
from tests.edges import test_api_round_trips as wire

pytestmark = pytest.mark.django_db
ORDINARY = {"Cookie": "a=b"}


def _asker(token: str) -> apis.Api:
    api = object.__new__(apis.Api)
    api.client = Client(headers={"Authorization": f"Bearer {token}"})
    return api


def _shape(answer: Any) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body, without what differs from request to request."""
    headers = dict(answer.headers)
    assert headers.pop("X-Request-Id")
    assert headers.pop("Content-Length") == str(len(answer.content))
    document = answer.json()
    for block in document.get("blocks", [document]):
        for name in ("id", "cidr", "address", "holder", "allocated_at", "released_at"):
            block.pop(name, None)
    document.pop("request_id", None)
    return answer.status_code, headers, document


@pytest.fixture
def api() -> apis.Api:
    made = apis.Api()
    made.cluster()
    return made


@pytest.fixture
def pool(api: apis.Api) -> int:
    return api.vm_pool("10.0.0.0/20", cooldown=60)


def _release(api: apis.Api, block: dict[str, Any], **headers: str) -> Any:
    body = {"holder": {"kind": "vm", "id": block["holder"]["id"]}}
    return api("POST", f"blocks/{block['id']}/release/", body, **headers)


@override_settings(SECURE_HSTS_SECONDS=60)
@pytest.mark.parametrize("secure", [False, True])
def test_answers_have_the_same_headers_and_bodies(pool: int, secure: bool) -> None:
    text = tokens.create(apis.user())
    options = {"headers": {"Authorization": f"Token {text}"}}
    client = Client(**options)  # type: ignore[arg-type]

    def post(path: str, body: Any, **headers: str) -> Any:
        return client.post(
            apis.ROOT + path, body, content_type="application/json", headers=headers, secure=secure
        )

    shapes = []
    for number, headers in enumerate(({}, ORDINARY)):
        body = apis.holder(f"vm-{number}") | {"org": "o", "env": "e"}
        taken = post(f"pools/{pool}/allocations/", body, **headers)
        again = post(f"pools/{pool}/allocations/", {"holder": {"kind": "vm", "id": ""}}, **headers)
        (block,) = taken.json()["blocks"]
        release = {"holder": body["holder"], "org": "o"}
        path = f"blocks/{block['id']}/release/"
        released, repeated = (post(path, release, **headers) for _ in range(2))
        shapes.append([_shape(answer) for answer in (taken, again, released, repeated)])
        for answer in (taken, released):
            assert ("Strict-Transport-Security" in answer.headers) is secure
    assert [shape[0] for shape in shapes[0]] == [201, 400, 200, 200]
    for shape in shapes[0]:  # the time of the cooldown differs
        shape[2].pop("cooldown_until", None)
    for shape in shapes[1]:
        shape[2].pop("cooldown_until", None)
    assert shapes[0] == shapes[1]


@pytest.fixture
def blocks(api: apis.Api, pool: int) -> list[int]:
    """The ids of seven blocks: held, one of them with a DNS name, and one that cools down."""
    made = [api.take(pool, f"vm-{number}") for number in range(7)]
    assert _release(api, made[2]).status_code == 200
    named = api("PATCH", f"blocks/{made[3]['id']}/", {"dns_name": "db.example.org"})
    assert named.status_code == 200
    return [block["id"] for block in made]


def _read_both(path: str, token: str, **options: Any) -> tuple[Any, Any]:
    """Return the answers of both ways, as (status, headers, body)."""
    client = Client(headers={"Authorization": f"Token {token}"})
    answers = [
        client.get(apis.ROOT + path, headers=headers, **options) for headers in ({}, ORDINARY)
    ]
    shapes = []
    for answer in answers:
        headers = dict(answer.headers)
        assert headers.pop("X-Request-Id")
        document = answer.json()
        document.pop("request_id", None)
        headers.pop("Content-Length" if answer.status_code == 200 else "", None)
        shapes.append((answer.status_code, headers, document))
    return shapes[0], shapes[1]


@override_settings(SECURE_HSTS_SECONDS=60)
@pytest.mark.parametrize("secure", [False, True])
def test_blocks_are_read_alike(blocks: list[int], secure: bool) -> None:
    token = tokens.create(apis.user())
    statuses = []
    for block_id in (*blocks, max(blocks) + 1, 0, 10**17):
        fast, ordinary = _read_both(f"blocks/{block_id}/", token, secure=secure)
        assert fast == ordinary
        statuses.append(fast[0])
    assert statuses == [200] * 7 + [404] * 3


def _cursor(*values: Any, backward: bool = False) -> str:
    text = json.dumps([backward, values])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    "query",
    [
        "",
        "?limit=3",
        "?limit=7",
        "?limit=1000",
        "?limit=",
        "?limit=0",
        "?limit=1001",
        "?limit=%2B3",
        "?limit=٣",
        "?limit=3&limit=4",
        "?limit=3&cursor=",
        "?limit=3&cursor=x",
        f"?limit=3&cursor={_cursor(0)}",
        f"?limit=3&cursor={_cursor(10**18)}",
        f"?limit=3&cursor={_cursor(-1)}",
        f"?limit=3&cursor={_cursor(1 << 70)}",
        f"?limit=3&cursor={_cursor(True)}",
        f"?limit=3&cursor={_cursor('1')}",
        f"?limit=3&cursor={_cursor(1, 2)}",
        f"?limit=3&cursor={_cursor(10**6, backward=True)}",
        "?limit=3&ordering=-id",
        "?limit=3&state=cooling",
        "?limit=3&fields=id",
        "?limit=3&unknown=1",
    ],
)
def test_pages_are_read_alike(blocks: list[int], query: str) -> None:
    fast, ordinary = _read_both(f"blocks/{query}", tokens.create(apis.user()))
    assert fast == ordinary


def test_pages_lead_on_and_back(blocks: list[int]) -> None:
    token = tokens.create(apis.user())
    path, read = "blocks/?limit=3", []
    for _ in range(3):
        fast, ordinary = _read_both(path, token)
        assert fast == ordinary
        read += [block["id"] for block in fast[2]["results"]]
        last, path = path, str(fast[2]["next"]).partition(apis.ROOT)[2]
    assert (read, path) == (sorted(blocks), "")
    before = _read_both(last, token)[0][2]["previous"].partition(apis.ROOT)[2]
    page = _read_both(before, token)
    assert page[0] == page[1]
    assert [block["id"] for block in page[0][2]["results"]] == sorted(blocks)[3:6]


def test_a_read_asks_once(api: apis.Api, blocks: list[int], tmp_path: pathlib.Path) -> None:
    for path in (f"blocks/{blocks[0]}/", "blocks/?limit=2"):
        trips = [
            wire.round_trips(tmp_path / "trace", lambda path=path: api("GET", path))  # type: ignore[misc]
            for _ in range(wire.WARM + 4)
        ]
        assert trips[wire.WARM :] == [1] * 4, path


def test_both_ways_record_the_same_author(api: apis.Api, pool: int) -> None:
    for name, headers in (("fast", {}), ("ordinary", ORDINARY)):
        body = apis.holder(name)
        answer = api("POST", f"pools/{pool}/allocations/", body, X_Request_Id="r-1", **headers)
        assert answer.headers["X-Request-Id"] == "r-1"
        assert _release(api, answer.json()["blocks"][0], X_Request_Id="r-1", **headers)
    author = {"actor": api.user.username, "source": "api", "request_id": "r-1"}
    events = BlockEvent.objects.filter(holder_id__in=["fast", "ordinary"])
    assert [event.pgh_context for event in events] == [author] * 4


def test_a_release_asks_once(api: apis.Api, pool: int, tmp_path: pathlib.Path) -> None:
    trips = []
    for number in range(wire.WARM + 4):
        block = api.take(pool, f"vm-{number}")
        trips.append(wire.round_trips(tmp_path / "trace", lambda b=block: _release(api, b)))  # type: ignore[misc]
    assert trips[wire.WARM :] == [1] * 4


@pytest.fixture
def confined() -> dict[str, int]:
    """Two clusters with two pools each, by `cluster/pool`."""
    api = apis.Api()
    made = {}
    for number, cluster in enumerate(("prod", "test")):
        api.cluster(cluster)
        for part, name in enumerate(("vms", "more")):
            body = {
                "cluster": cluster, "name": name, "category": "vm",
                "ipv4": {"mask_size": 32, "cidrs": [{"cidr": f"10.{number}.{part}.0/24"}]},
            }  # fmt: skip
            made[f"{cluster}/{name}"] = api.create("pools/", body)["id"]
    return made


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["", "operator", "viewer"])
@pytest.mark.parametrize("level", ["administer", "allocate", "read"])
@pytest.mark.parametrize("subject", ["", "prod", "prod/vms", "test"])
def test_tokens_are_judged_alike(
    confined: dict[str, int], role: str, level: str, subject: str
) -> None:
    limit = tokens.parse_subject(subject)
    api = _asker(tokens.create(apis.user(role), level=level, subject=limit))
    held = {name: apis.Api().take(pool, f"held-{name[-4:]}") for name, pool in confined.items()}
    for name, pool in confined.items():
        statuses = []
        for way, headers in (("fast", {}), ("slow", ORDINARY)):
            body = apis.holder(f"{way}-vm")
            answer = api("POST", f"pools/{pool}/allocations/", body, **headers)
            statuses.append((answer.status_code, answer.json().get("code")))
            other = {"holder": {"kind": "vm", "id": "another"}}
            refused = api("POST", f"blocks/{held[name]['id']}/release/", other, **headers)
            statuses.append((refused.status_code, refused.json()["code"]))
        assert statuses[:2] == statuses[2:]
        for path in (f"blocks/{held[name]['id']}/", "blocks/?limit=3"):
            fast, ordinary = (api("GET", path, **headers) for headers in ({}, ORDINARY))
            assert (fast.status_code, fast.json().get("results")) == (
                ordinary.status_code,
                ordinary.json().get("results"),
            )
        assert Block.objects.filter(pool=pool, holder_id="fast-vm").exists() == (
            statuses[0][0] == 201
        )
        slow = _release(api, held[name], **ORDINARY).status_code
        apis.Api()("POST", f"pools/{pool}/allocations/", apis.holder(held[name]["holder"]["id"]))
        assert _release(api, held[name]).status_code == slow


@pytest.mark.parametrize("way", [{}, ORDINARY], ids=["fast", "ordinary"])
def test_bad_tokens_change_nothing(pool: int, way: dict[str, str]) -> None:
    inactive = tokens.create(apis.user(is_active=False))
    expired = tokens.create(apis.user())
    AuthToken.objects.filter(token_key=expired[:15]).update(
        expiry=timezone.now() - datetime.timedelta(seconds=1)
    )
    valid = tokens.create(apis.user())
    mistyped = valid[:-1] + ("a" if valid[-1] != "a" else "b")
    for token in (inactive, expired, mistyped, "x", f"{valid} {valid}"):
        answer = _asker(token)("POST", f"pools/{pool}/allocations/", apis.holder("vm"), **way)
        apis.refused(answer, 401, "authentication_failed")
        apis.refused(_asker(token)("GET", "blocks/", **way), 401, "authentication_failed")
    assert not Block.objects.filter(holder_id="vm").exists()


def test_the_use_of_a_token_is_recorded(api: apis.Api, pool: int) -> None:
    api.take(pool, "first")  # fills the window, which is the ordinary way's to do
    text = tokens.create(apis.user())
    assert _asker(text)("POST", f"pools/{pool}/allocations/", apis.holder("vm")).status_code == 201
    assert AuthToken.objects.get(token_key=text[:15]).use.used_at


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/24")
    statuses: list[int] = []

    def ask_and_be_cut() -> None:
        for number in range(3):
            answer = api("POST", f"pools/{pool}/allocations/", apis.holder(f"vm-{number}"))
            statuses.append(answer.status_code)
            pid = connection.connection.info.backend_pid
            with connection.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            killer.append(pid)
            asked.set()
            cut.wait(10)
            cut.clear()
        connection.close()

    killer: list[int] = []
    asked, cut = threading.Event(), threading.Event()
    thread = threading.Thread(target=ask_and_be_cut)
    thread.start()
    for _ in range(3):
        assert asked.wait(20)
        asked.clear()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [killer[-1]])
        cut.set()
    thread.join(20)
    assert statuses == [201, 201, 201]
    assert Pool.objects.get(pk=pool).blocks.filter(state="held").count() == 3


@pytest.mark.parametrize("ways", [({}, ORDINARY), (ORDINARY, {})], ids=["fast first", "last"])
def test_a_key_is_the_same_for_both_ways(api: apis.Api, pool: int, ways: Any) -> None:
    path, body = f"pools/{pool}/allocations/", {"holder": {"kind": "vm", "id": "a"}}
    first, again = (api("POST", path, body, Idempotency_Key="k", **way) for way in ways)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    other = {"holder": {"kind": "vm", "id": "b"}}
    for way in ways:
        answer = api("POST", path, other, Idempotency_Key="k", **way)
        assert answer.json()["code"] == "idempotency_key_reused"
    assert Block.objects.filter(state="held").count() == 1
