"""Rules `security-headers-are-sent` and `production-settings-are-strict`."""

import os
import subprocess
import sys

import pytest

from ipam_site import data_folder
from tests.security.target import Target, Visitor

PAGES = (
    "/admin/", "/admin/pools/pool/", "/admin/find/?q=x", "/admin/nowhere/", "/admin/auth/user/",
    "/api/v1/docs/", "/api/v1/pools/", "/api/v1/nowhere/", "/api/v1/schema/", "/admin/claims/network/",
)  # fmt: skip


def _policy(text: str) -> dict[str, list[str]]:
    parts = [part.split() for part in text.split(";") if part.strip()]
    return {name: sources for name, *sources in parts}


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", [*PAGES, "/admin/login/"])
def test_every_answer_is_fenced_in(target: Target, path: str) -> None:
    visitor = Visitor(target)
    if path != "/admin/login/":
        visitor.login("administrator")
    headers = visitor.ask("GET", path).headers
    policy = _policy(headers["Content-Security-Policy"])
    assert policy["default-src"] in (["'self'"], ["'none'"])
    assert policy["frame-ancestors"] == ["'none'"]
    assert "'unsafe-inline'" not in policy.get("script-src", [])
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]
    assert "no-store" in headers["Cache-Control"]
    assert "Python" not in str(headers)
    assert "gunicorn/" not in str(headers)


def test_a_host_that_is_not_ours_gets_nothing(target: Target) -> None:
    for path in ("/admin/login/", "/api/v1/pools/"):
        assert target.ask("GET", path, Host="evil.example").status == 400
    answer = target.ask("GET", "/admin/", X_Forwarded_Host="evil.example")
    assert "evil.example" not in answer.headers.get("Location", "")


@pytest.mark.exhaustive
def test_the_settings_of_production_have_no_warning() -> None:
    env = os.environ | {"IPAM_HTTPS": "1", "ALLOWED_HOSTS": "ipam.example.org"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=data_folder.PROJECT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
def test_debug_pages_are_not_to_be_had_in_production() -> None:
    env = os.environ | {"DEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=data_folder.PROJECT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "refuses to run" in done.stderr
