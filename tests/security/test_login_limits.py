"""Signing in: how often, how long, and for which pages."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from pools.models import LoginFailures
from pools.platform import login_limits
from tests.pools.conftest import Clock
from tests.security.target import RunningTarget, Target, Visitor

PASSWORD = "a long enough pass phrase"


@pytest.fixture(autouse=True)
def _limits(settings: Any) -> None:
    settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT = 3
    settings.IPAM_LOGIN_FAILURES_PER_ADDRESS = 6


@pytest.fixture
def person(db: None, _limits: None) -> Any:
    created = get_user_model().objects.create(username="olga", is_staff=True)
    created.set_password(PASSWORD)
    created.save()
    return created


def sign_in(name: str, password: str, *, address: str = "192.0.2.1", **headers: str) -> Any:
    values = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address, headers=headers).post(reverse("admin:login"), values)


def fail(count: int, name: str = "olga", address: str = "192.0.2.1") -> None:
    for _ in range(count):
        assert sign_in(name, "wrong", address=address).status_code == 200


def test_an_account_is_closed_after_its_failures_from_any_address(person: Any) -> None:
    for number in range(3):
        fail(1, address=f"192.0.2.{number}")
    refused = sign_in("Olga", PASSWORD, address="198.51.100.7")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= login_limits.WINDOW
    assert "Too many sign-ins have failed. Try again in 15 minutes." in refused.text
    assert "_auth_user_id" not in refused.wsgi_request.session


def test_an_address_is_closed_after_its_failures_with_any_account(person: Any) -> None:
    for number in range(6):
        fail(1, name=f"person-{number}", address=f"2001:db8::{number}")
    assert sign_in("olga", PASSWORD, address="2001:db8::ffff").status_code == 429
    assert sign_in("olga", PASSWORD, address="2001:db8:0:1::1").status_code == 302


def test_an_account_that_does_not_exist_is_refused_alike(person: Any) -> None:
    answers = {}
    for name in ("olga", "nobody"):
        for _ in range(3):
            sign_in(name, "wrong", address=name)
        answer = sign_in(name, "wrong", address=name)
        text = answer.text.replace(name, "?")
        answers[name] = (answer.status_code, "Too many sign-ins" in text, len(text) // 100)
    assert answers["olga"] == answers["nobody"]


def test_the_limit_ends_with_its_time(person: Any) -> None:
    fail(3)
    assert sign_in("olga", PASSWORD).status_code == 429
    clock = Clock()
    clock.advance(login_limits.WINDOW + 1)
    assert sign_in("olga", PASSWORD).status_code == 302
    clock.advance(login_limits.WINDOW + 1)
    assert login_limits.tidy() == 1
    assert not LoginFailures.objects.exists()


def test_signing_in_forgets_the_failures(person: Any) -> None:
    for _ in range(4):
        fail(1)
        assert sign_in("olga", PASSWORD).status_code == 302
    fail(2, name="other")
    assert sign_in("olga", PASSWORD).status_code == 429  # the address has failed six times


def test_what_was_typed_is_not_stored(person: Any) -> None:
    fail(1, name="hunter2-typed-as-name")
    assert "hunter2" not in str(list(LoginFailures.objects.values()))


def test_behind_a_proxy_its_last_entry_is_the_address(person: Any, settings: Any) -> None:
    settings.IPAM_BEHIND_PROXY = True
    for number in range(6):
        answer = sign_in(
            f"person-{number}", "wrong", **{"X-Forwarded-For": f"{number}, 203.0.113.9"}
        )
        assert answer.status_code == 200
    assert sign_in("olga", PASSWORD, **{"X-Forwarded-For": "203.0.113.9"}).status_code == 429
    assert sign_in("olga", PASSWORD, **{"X-Forwarded-For": "203.0.113.8"}).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_attempts_at_the_same_time_are_not_more_than_the_limit() -> None:
    allowed: list[bool] = []

    def attempt(number: int) -> None:
        try:
            for _ in range(5):
                counted = login_limits.count_attempt("olga", f"192.0.2.{number}")
                allowed.append(not counted.retry_after)
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(allowed), sum(allowed)) == (40, 3)


# --- Rule `sessions-end`: cookies, the login, the logout ------------------------------------------
@pytest.mark.exhaustive
def test_cookies_are_for_this_site_over_tls_only(running: RunningTarget) -> None:
    visitor = Visitor(running)
    cookies = visitor.ask("GET", "/admin/login/").headers.get_all("Set-Cookie", [])
    cookies += visitor.login("viewer").headers.get_all("Set-Cookie", [])
    assert {line.partition("=")[0] for line in cookies} >= {"csrftoken", "sessionid"}
    for line in cookies:
        assert "; Secure" in line, line
        assert "; SameSite=Lax" in line, line
        assert "; HttpOnly" in line or line.startswith("csrftoken="), line


def test_a_session_that_somebody_prepared_is_not_taken_up(target: Target) -> None:
    visitor = Visitor(target, sessionid="prepared0prepared0prepared0prep0")
    visitor.login("viewer")
    assert visitor.cookies["sessionid"] != "prepared0prepared0prepared0prep0"
    first = visitor.cookies["sessionid"]
    visitor.login("viewer")
    assert visitor.ask("GET", "/admin/").status == 200
    assert Visitor(target, sessionid="prepared0prepared0prepared0prep0").ask("GET", "/admin/").status == 302  # fmt: skip
    assert first


def test_a_stolen_session_ends_with_the_logout(target: Target) -> None:
    visitor = Visitor(target)
    visitor.login("viewer")
    thief = Visitor(target, sessionid=visitor.cookies["sessionid"])
    assert thief.ask("GET", "/admin/pools/pool/").status == 200
    visitor.post("/admin/logout/", {})
    assert thief.ask("GET", "/admin/pools/pool/").status == 302


# --- Rule `login-required`: what is open shows nothing. Who may open what is
# tests/security/test_policy.py's
def test_what_is_for_anybody_names_no_object(target: Target) -> None:
    for path in ("/healthz", "/readyz", "/admin/login/", "/static/cadastre/cadastre.css"):
        answer = target.ask("GET", path)
        assert answer.status == 200, path
        assert "prod" not in answer.text.split("prod-"), path
    assert target.ask("GET", "/metrics").status == 401
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static//etc/passwd"):
        assert target.ask("GET", path).status in {302, 400, 404}, path
