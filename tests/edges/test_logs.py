import logging
import sys

import pytest

from ipam_site import logs
from pools.core import redaction

_PEM = "-----BEGIN PRIVATE KEY-----\nMIIs3cret\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("Authorization: Token s3cret", id="header"),
        pytest.param("GET /api/v1/cad_s3cret0123456789abcdef/ HTTP/1.1", id="token-in-a-path"),
        pytest.param(
            "GET /x/%63ad%5Fs3cret0123456789abcdef HTTP/1.1", id="token-in-a-path-encoded"
        ),
        pytest.param("authorization=Bearer s3cret", id="header-lower"),
        pytest.param("{'Authorization': 'Token s3cret'}", id="header-in-dict"),
        pytest.param('{"token": "s3cret", "a": 1}', id="json-token"),
        pytest.param("https://h/x?token=s3cret&y=1", id="query"),
        pytest.param("Cookie: csrftoken=a; sessionid=s3cret", id="cookie"),
        pytest.param("password='s3cret and more'", id="password-quoted"),
        pytest.param("DB_PASSWORD=s3cret", id="password-variable"),
        pytest.param("client-key-data: s3cret", id="kubeconfig-key"),
        pytest.param("'client-certificate-data': 's3cret'", id="kubeconfig-certificate"),
        pytest.param("SECRET_KEY='s3cret'", id="django-key"),
        pytest.param("postgresql://u:s3cret@h/n is away", id="url"),
        pytest.param("redis://:s3cret@h/0 is away", id="url-without-user"),
        pytest.param(_PEM, id="pem"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----\nMIIs3cret", id="pem-cut-off"),
        pytest.param("sent Bearer eyJhbGciOi.s3crets3cret", id="bare-bearer"),
    ],
)
def test_a_secret_is_hidden(message: str) -> None:
    assert "s3cret" not in redaction.redact(message)
    assert "[redacted]" in redaction.redact(message)


@pytest.mark.parametrize(
    "message",
    [
        "allocated 10.20.3.7 from green-pool to instance i-1",
        "token of admin expired",
        "http://127.0.0.1:8000/ answered 200",
        "2001:db8::1 is held",
    ],
)
def test_the_rest_is_left_alone(message: str) -> None:
    assert redaction.redact(message) == message


def _record(message: str, *arguments: object, error: bool = False) -> str:
    record = logging.LogRecord(
        "ipam", logging.INFO, "f", 1, message, arguments, sys.exc_info() if error else None
    )
    return logs.LineFormatter().format(record)


def test_arguments_are_redacted_too() -> None:
    assert "s3cret" not in _record("failed: %s", {"password": "s3cret"})


def test_one_record_is_one_line_whatever_it_says() -> None:
    try:
        int("Authorization: Token s3cret")
    except ValueError:
        line = _record("name %s", "a\nINFO forged\r\x1b[31m\u2028", error=True)
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert r"a\nINFO forged\r\x1b[31m\u2028" in line
    assert "Traceback" in line
    assert "s3cret" not in line
