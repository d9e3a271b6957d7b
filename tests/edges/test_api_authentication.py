"""No address below /api/v1/ answers a stranger; what is no valid token is told so."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from knox.models import AuthToken

from pools.models import TokenUse
from pools.platform.rest import authentication
from tests.edges import api as apis


def _get(authorization: str | bytes) -> Any:
    return Client().get(f"{apis.ROOT}pools/", headers={"Authorization": authorization})


def _token(*, over: bool = False, **settings: Any) -> str:
    expiry = timedelta(seconds=-1 if over else 60)
    return str(AuthToken.objects.create(apis.user(**settings), expiry=expiry)[1])


def test_a_valid_token_is_heard() -> None:
    token = _token()
    assert _get(f"Token {token}").status_code == 200
    assert _get(f"token   {token}").status_code == 200
    assert _get(f"Bearer {token}").status_code == 200
    assert _get(f"bearer {token}").status_code == 200


REFUSED = {
    "expired": lambda: f"Token {_token(over=True)}",
    "of an inactive user": lambda: f"Token {_token(is_active=False)}",
    "cut short": lambda: f"Token {_token()[:-1]}",
    "changed": lambda: f"Token {_token()[:-1]}é",
    "one more character": lambda: f"Token {_token()}0",
    "its key only": lambda: f"Token {_token()[:15]}",
    "garbage": lambda: "Token 0000",
    "long": lambda: "Token " + "0" * 5000,
    "nothing": lambda: "Token",
    "two": lambda: f"Token {_token()} {_token()}",
    "NUL": lambda: "Token a\0b",
    "percent": lambda: "Token %s",
    "garbage as bearer": lambda: "Bearer 0000",
    "bearer twice": lambda: f"Bearer Bearer {_token()}",
    "no scheme": _token,
    "an unknown scheme": lambda: f"Tok {_token()}",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_valid_token_is_refused(kind: str) -> None:
    answer = _get(REFUSED[kind]())
    apis.refused(answer, 401, "authentication_failed")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", ["pools/", "blocks/", "schema/", "docs/"])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_wrong_token_never_gets_the_rights_of_a_session(kind: str, path: str) -> None:
    client = Client()
    client.force_login(apis.user())
    answer = client.get(f"{apis.ROOT}{path}", headers={"Authorization": REFUSED[kind]()})
    apis.refused(answer, 401, "authentication_failed")


@pytest.mark.parametrize("scheme", ["Basic", "Negotiate"])
def test_what_a_browser_sends_to_a_proxy_is_nobody(scheme: str) -> None:
    apis.refused(_get(f"{scheme} {_token()}"), 401, "not_authenticated")
    client = Client()
    client.force_login(apis.user())
    headers = {"Authorization": f"{scheme} dXNlcjpwYXNz"}
    assert client.get(f"{apis.ROOT}pools/", headers=headers).status_code == 200


def test_the_documentation_leads_a_stranger_to_the_login() -> None:
    answer = Client().get(f"{apis.ROOT}docs/?lang=en")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/admin/login/?next=/api/v1/docs/%3Flang%3Den"


def test_a_token_is_nowhere_but_in_its_header() -> None:
    token = _token()
    url = f"{apis.ROOT}pools/"
    assert Client().get(url, query_params={"token": token}).status_code == 401
    client = Client()
    client.cookies["token"] = token
    assert client.get(url).status_code == 401


def _session() -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(apis.user())
    return client


def test_the_admins_session_reads() -> None:
    assert _session().get(f"{apis.ROOT}pools/").status_code == 200


@pytest.mark.parametrize("csrf", ["", "x" * 32, "another"])
def test_a_session_changes_nothing_without_its_csrf_token(csrf: str) -> None:
    client = _session()
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post(
        f"{apis.ROOT}clusters/",
        {"name": "a"},
        content_type="application/json",
        headers={"X-CSRFToken": csrf} if csrf else {},
    )
    apis.refused(answer, 403, "permission_denied")
    assert client.get(f"{apis.ROOT}clusters/").json()["results"] == []


def test_a_session_with_its_csrf_token_changes() -> None:
    client = _session()
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post(
        f"{apis.ROOT}clusters/",
        {"name": "a"},
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 32},
    )
    assert answer.status_code == 201


def test_a_token_tells_when_it_was_last_used() -> None:
    api = apis.Api()
    token = AuthToken.objects.latest("created")
    assert not TokenUse.objects.exists()
    api("GET", "clusters/")
    first = TokenUse.objects.get().used_at
    api("GET", "clusters/")
    assert [(use.token_id, use.used_at) for use in TokenUse.objects.all()] == [(token.pk, first)]


@pytest.mark.parametrize(("minutes", "is_written"), [(9, False), (11, True)])
def test_a_use_that_another_process_recorded_is_not_recorded_again(
    minutes: int, is_written: bool
) -> None:
    api = apis.Api()
    api("GET", "clusters/")
    recorded = TokenUse.objects.get().used_at - timedelta(minutes=minutes)
    TokenUse.objects.update(used_at=recorded)
    authentication._last_recorded.clear()  # as in another process
    api("GET", "clusters/")
    assert (TokenUse.objects.get().used_at > recorded) is is_written


def test_a_refused_token_is_not_used() -> None:
    apis.Api()
    refused = Client(headers={"Authorization": "Token " + "a" * 64})
    assert refused.get("/api/v1/clusters/").status_code == 401
    assert not TokenUse.objects.exists()
