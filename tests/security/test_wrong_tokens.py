"""Rule `sign-ins-are-limited`: tokens cannot be tried at will, and whoever has one is served."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from knox.models import AuthToken

from pools.platform import login_limits
from tests import people
from tests.pools.conftest import Clock

pytestmark = pytest.mark.django_db
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


def test_wrong_tokens_close_no_sign_in() -> None:
    for number in range(LIMIT + 2):
        ask(f"cad_{number:064x}")
    assert login_limits.count_attempt("olga", "192.0.2.1").retry_after == 0
