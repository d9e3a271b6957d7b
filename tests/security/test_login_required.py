"""Rule `login-required`: what is open shows nothing. Who may open what is tests/security/test_policy.py's."""

from tests.security.target import Target


def test_what_is_for_anybody_names_no_object(target: Target) -> None:
    for path in ("/healthz", "/readyz", "/admin/login/", "/static/cadastre/cadastre.css"):
        answer = target.ask("GET", path)
        assert answer.status == 200, path
        assert "prod" not in answer.text.split("prod-"), path
    assert target.ask("GET", "/metrics").status == 401
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static//etc/passwd"):
        assert target.ask("GET", path).status in {302, 400, 404}, path
