"""/metrics: who gets it, in which form, and what else it answers."""

import gzip
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from tests import people
from tests.edges import api as apis

TOKEN = "a token for scrapes only"


@pytest.fixture(autouse=True)
def _token(settings: LazySettings) -> None:
    settings.IPAM_METRICS_TOKEN = TOKEN


def scrape(authorization: str = f"Bearer {TOKEN}", method: str = "get", **headers: str) -> Any:
    all_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if authorization:
        all_headers["Authorization"] = authorization
    return getattr(Client(), method)("/metrics", headers=all_headers)


def test_a_scrape_with_the_token() -> None:
    answer = scrape()
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    names = {
        metric.name for metric in parser.text_string_to_metric_families(answer.content.decode())
    }
    assert "ipam_allocations" in names


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        "Token 0123456789abcdef",
        "Bearer \xff\xfe",
        "Token \xff",
        "Bearer " + "x" * 7000,
    ],
)
def test_without_it_there_is_nothing_to_see(authorization: str) -> None:
    answer = scrape(authorization)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert b"ipam_" not in answer.content
    assert answer.headers["Cache-Control"] == "no-store"


def test_without_a_token_in_the_settings_the_empty_one_opens_nothing(
    settings: LazySettings,
) -> None:
    settings.IPAM_METRICS_TOKEN = ""
    assert scrape("Bearer ").status_code == 401
    assert scrape("Bearer").status_code == 401


def test_a_session_that_has_ended_sees_nothing() -> None:
    browser = people.signed_in(apis.user("viewer"))
    get_user_model().objects.update(is_active=False)
    assert browser.get("/metrics").status_code == 401
    browser.cookies["sessionid"] = "forged"
    assert browser.get("/metrics").status_code == 401


@pytest.mark.parametrize("host", ["10.244.3.7:8000", "cadastre.example", "nonsense host"])
def test_a_scrape_of_a_pod_is_neither_redirected_nor_refused_for_its_host(
    settings: LazySettings, host: str
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["other.example"]
    assert scrape(Host=host).status_code == 200
    assert scrape("", Host=host).status_code == 401


def test_openmetrics_for_those_who_read_it() -> None:
    accept = (
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    )
    answer = scrape(Accept=accept)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = answer.content.decode()
    assert text.endswith("# EOF\n")
    names = {metric.name for metric in openmetrics.text_string_to_metric_families(text)}
    assert {"ipam_allocations", "ipam_build", "ipam_allocation_duration_seconds"} <= names


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/html", "text/plain;version=0.0.4", "a;b=,;;=q,\xff"]
)
def test_text_for_everybody_else(accept: str) -> None:
    answer = scrape(Accept=accept)
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_it_can_be_compressed() -> None:
    answer = scrape(Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content).startswith(b"# HELP ipam_")


def test_head_says_the_form_and_asks_nothing() -> None:
    answer = scrape(method="head")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert scrape("", "head").status_code == 401


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_nothing_else_can_be_done_with_it(method: str) -> None:
    answer = scrape(method=method)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert scrape("", method).status_code == 401


def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.edges import test_api_database_away as away

    with away._away(monkeypatch):
        answer = away._elsewhere(scrape)
        by_token = away._elsewhere(lambda: scrape("Token 0123456789abcdef"))
    for item in (answer, by_token):
        assert (item.status_code, item.headers["Retry-After"]) == (503, "2")
        assert b"127.0.0.1" not in item.content
    assert scrape().status_code == 200


def test_a_scrape_leaves_no_transaction_open() -> None:
    scrape()
    assert not connection.needs_rollback
