"""Requests and their answers: headers, messages, logs, forged requests and unknown fields."""

import itertools
import os
import pathlib
import subprocess
import sys

import kombu
import kombu.exceptions
import kombu.serialization
import pytest
import redis

from ipam_site import celery, data_folder
from tests import eventually
from tests.claims.access import answers
from tests.security.target import RunningTarget, Target, Visitor

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


# --- Rule `forged-requests-fail`: another page makes the browser of an administrator send requests
METHODS = ("POST", "PUT", "PATCH", "DELETE")
KINDS = ("text/plain", "multipart/form-data; boundary=x")


@pytest.mark.exhaustive
def test_no_page_of_the_admin_takes_a_forged_post(target: Target) -> None:
    victim = Visitor(target)
    victim.login("administrator")
    for address in answers.addresses("admin/"):
        path = address.filled(*(1 for _ in address.names))
        answer = victim.ask(
            "POST", path, "a=b", Origin="https://evil.example", Referer="https://evil.example/",
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        # That the autocomplete takes no POST at all is said first.
        assert answer.status in {403, 405}, (path, answer.status)


def test_no_address_of_the_api_takes_a_forged_change(target: Target) -> None:
    """As text or a form, which a page may send without asking; and with a token that is not the session's."""
    victim = Visitor(target)
    victim.login("administrator")
    before = target.rest("GET", "events/?limit=1").json()["results"]
    for address in answers.addresses("api/v1/"):
        path = address.filled(*(1 for _ in address.names))
        for method, kind in itertools.product(METHODS, KINDS):
            answer = victim.ask(
                method, path, "{}", Content_Type=kind, Origin="https://evil.example"
            )
            assert answer.status in {403, 405}, (method, path, kind, answer.status)
    forged = victim.ask(
        "POST", "/api/v1/clusters/", {"name": "forged"}, X_CSRFToken="x" * 64,
        Referer=target.origin + "/",
    )  # fmt: skip
    assert forged.status == 403
    assert target.rest("GET", "events/?limit=1").json()["results"] == before


# --- Rule `messages-carry-no-code`, for who can write to Redis ------------------------------------
class Bomb:
    """What unpickles as a command."""

    def __init__(self, marker: pathlib.Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self._marker}",)


def test_workers_decode_json_only(tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "was-here"
    accepted = celery.app.conf.accept_content
    content_type, encoding, body = kombu.serialization.dumps(Bomb(marker), serializer="pickle")
    with pytest.raises(kombu.exceptions.ContentDisallowed):
        kombu.serialization.loads(body, content_type, encoding, accept=accepted)
    assert not marker.exists()
    assert celery.app.conf.task_serializer in accepted


@pytest.mark.exhaustive
def test_a_pickled_message_is_thrown_away_unread(
    running: RunningTarget, tmp_path: pathlib.Path
) -> None:
    marker = tmp_path / "was-here"
    url = data_folder.connections(running.up.data)["redis_url"]
    with kombu.Connection(url) as broker, broker.Producer() as producer:
        producer.publish(
            ((Bomb(marker),), {}, {}), routing_key="ipam.default", serializer="pickle",
            headers={"task": "pools.tasks.tick", "id": "bomb"},
        )  # fmt: skip
    with redis.Redis.from_url(url) as server:
        eventually.until(lambda: not server.llen("ipam.default"))
    eventually.until(lambda: "ContentDisallowed" in running.logs())
    assert not marker.exists()
    assert running.ask("GET", "/readyz").status == 200


# --- Rules `logs-hold-no-secret` and `metrics-name-nobody` ----------------------------------------
CANARY = "canary-word-b7e2c9"


@pytest.mark.exhaustive
def test_what_callers_send_wrongly_is_in_no_log(running: RunningTarget) -> None:
    token = running.tokens["viewer"]
    running.ask("GET", "/api/v1/pools/", Authorization=f"Bearer {CANARY}")
    running.ask("POST", "/api/v1/pools/", f'{{"password": "{CANARY}", ', token="administrator")
    running.ask("POST", "/admin/login/", f"username=admin&password={CANARY}")
    running.ask("GET", "/api/v1/nowhere/", Cookie=f"sessionid={CANARY}")
    running.ask("GET", f"/api/v1/pools/?token={token}", token="viewer")
    for encoded in (token, token.replace("_", "%5f"), f"%63{token[1:]}"):
        running.ask("GET", f"/api/v1/pools/{encoded}/", Referer=f"https://h/{encoded}")
    last = "/api/v1/nowhere/the-last-one/"
    running.ask("GET", last)
    eventually.until(lambda: last in running.logs())
    logged = running.logs()
    assert CANARY not in logged
    assert not [person for person, stored in running.tokens.items() if stored[4:] in logged]


def test_metrics_are_for_those_who_may_and_name_nobody(target: Target) -> None:
    assert target.ask("GET", "/metrics").status == 401
    assert target.ask("GET", "/metrics", token="vera").status == 403
    text = target.ask("GET", "/metrics", token="viewer").text
    assert "ipam_" in text
    for private in ("vera", "alpha", "10.77.0.5", "02:aa:00:00:00:01"):
        assert f'"{private}"' not in text, private


# --- Rule `unknown-fields-are-refused` ------------------------------------------------------------
PLACES = (
    "pools/", "clusters/", "memberships/", "networks/", "ippools/", "ipamclaims/", "waves/",
    "webhook-targets/", "references/",
)  # fmt: skip
PRODUCT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("path", PLACES)
def test_a_field_of_others_is_refused(target: Target, path: str) -> None:
    for name in ("is_superuser", "password", "_state", "pk"):
        answer = target.rest("POST", path, {name: True})
        assert answer.status == 400, (path, name)
        assert [e["field"] for e in answer.json()["errors"] if e["code"] == "unknown_field"] == [
            name
        ]


def test_nothing_takes_all_fields_of_a_table() -> None:
    for app in ("pools", "claims", "ipam_site"):
        for module in (PRODUCT / app).rglob("*.py"):
            assert 'fields = "__all__"' not in module.read_text(), module
