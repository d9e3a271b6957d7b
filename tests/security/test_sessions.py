"""Rule `sessions-end`: cookies, the login, the logout."""

import pytest

from tests.security.target import RunningTarget, Target, Visitor


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
