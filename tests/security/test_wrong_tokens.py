"""Rule `sign-ins-are-limited`: tokens cannot be tried at will, and whoever has one is served."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from knox.models import AuthToken

from pools.platform import login_limits
from tests import factories, people
from tests.edges import webhooks
from tests.pools.conftest import Clock

LIMIT = 4
PATHS = ("/api/v1/pools/", "/api/v1/blocks/", "/api/v1/blocks/1/", "/api/v1/schema/")


@pytest.fixture(autouse=True)
def _limit(settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ADDRESS = LIMIT


def ask(token: str, path: str = PATHS[0], address: str = "192.0.2.1", method: str = "get") -> Any:
    client = Client(REMOTE_ADDR=address, headers={"Authorization": f"Token {token}"})
    return getattr(client, method)(path, content_type="application/json")


def test_wrong_tokens_of_an_address_are_slowed_down_whatever_they_ask_for() -> None:
    for number in range(LIMIT):
        assert ask(f"cad_{number:064x}", PATHS[number % len(PATHS)]).status_code == 401
    for path in PATHS:
        refused = ask(f"cad_{77:064x}", path)
        assert refused.status_code == 429, path
        assert 0 < int(refused.headers["Retry-After"]) <= login_limits.WINDOW
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["code"] == "throttled"
        assert "cad_" not in refused.text
    posted = ask(f"cad_{78:064x}", "/api/v1/pools/1/allocations/", method="post")
    assert posted.status_code == 429
    scraped = ask(f"cad_{79:064x}", "/metrics")
    assert scraped.status_code == 429
    assert int(scraped.headers["Retry-After"]) > 0


def test_others_and_right_tokens_of_the_address_are_served() -> None:
    clock = Clock()
    right = AuthToken.objects.create(people.user(people.VIEWER))[1]
    for number in range(LIMIT + 2):
        ask(f"cad_{number:064x}", address=f"2001:db8::{number}")
    assert ask("cad_no", address="2001:db8::ffff").status_code == 429
    assert ask("cad_no", address="2001:db8:0:1::1").status_code == 401
    assert ask(right, address="2001:db8::1").status_code == 200
    clock.advance(login_limits.WINDOW + 1)
    assert ask("cad_no", address="2001:db8::ffff").status_code == 401


def test_behind_a_proxy_the_forwarded_address_counts(settings: Any) -> None:
    """Also where the proxy writes the port of the client, which is another one for each connection."""
    settings.IPAM_BEHIND_PROXY = True
    for form in ("203.0.113.7", "198.51.100.7:{}", "2001:db8::7", "[2001:db8:1::7]:{}"):
        for number in range(LIMIT):
            forwarded = f"10.0.0.{number}, {form.format(40000 + number)}"
            assert _ask_through_proxy(forwarded) == 401, form
        assert _ask_through_proxy(form.format(50000)) == 429, form
        right = AuthToken.objects.create(people.user(people.VIEWER))[1]
        assert _ask_through_proxy(form.format(50001), right) == 200
    assert _ask_through_proxy("203.0.113.8") == 401, "another client of the same proxy"


def _ask_through_proxy(forwarded: str, bearer: str = "cad_no") -> int:
    headers = {"Authorization": f"Bearer {bearer}", "X-Forwarded-For": forwarded}
    client = Client(REMOTE_ADDR="192.0.2.99", headers=headers)
    return int(client.get(PATHS[0]).status_code)


def test_without_a_trusted_proxy_the_header_counts_for_nothing() -> None:
    assert [_ask_through_proxy(f"203.0.113.{number}") for number in range(LIMIT + 1)] == [
        *[401] * LIMIT,
        429,
    ]


def test_wrong_keys_of_webhooks_are_slowed_down_and_the_right_one_is_served() -> None:
    door = webhooks.Door(factories.cluster())
    statuses = [_review(webhooks.path(door.cluster.name, f"cadw_{n}")) for n in range(LIMIT + 1)]
    assert statuses == [*[403] * LIMIT, 429]
    assert _review(door.path) == 200
    assert _review(webhooks.path(door.cluster.name, "cadw_x"), "192.0.2.2") == 403


def _review(where: str, address: str = "192.0.2.1") -> int:
    body = json.dumps(webhooks.review(webhooks.manifest("green")))
    client = Client(REMOTE_ADDR=address)
    return int(client.post(where, body, content_type="application/json").status_code)


def test_wrong_tokens_close_no_sign_in() -> None:
    for number in range(LIMIT + 2):
        ask(f"cad_{number:064x}")
    assert login_limits.count_attempt("olga", "192.0.2.1").retry_after == 0
