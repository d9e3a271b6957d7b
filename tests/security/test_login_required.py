"""Rule `login-required`."""

from __future__ import annotations

from tests.claims.access import answers
from tests.security import policy
from tests.security.target import Target

FOR_ANYBODY = {line.route for line in policy.lines() if line.role == "anybody"}


def test_a_stranger_reaches_nothing(target: Target) -> None:
    for address in answers.addresses():
        path = address.filled(*(1 for _ in address.names))
        answer = target.ask("GET", path)
        where = (path, answer.status)
        if address.route in FOR_ANYBODY:
            assert answer.status in {200, 302, 405}, where
        elif address.route.startswith("/admin/") or address.route == "/api/v1/docs/":  # pages
            assert answer.status == 302, where
            assert answer.headers["Location"].startswith("/admin/"), where
        else:
            assert answer.status in {401, 405}, where


def test_what_is_for_anybody_names_no_object(target: Target) -> None:
    for path in ("/healthz", "/readyz", "/admin/login/", "/static/cadastre/cadastre.css"):
        answer = target.ask("GET", path)
        assert answer.status == 200, path
        assert "prod" not in answer.text.split("prod-"), path
    assert target.ask("GET", "/metrics").status == 401
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static//etc/passwd"):
        assert target.ask("GET", path).status in {302, 400, 404}, path
