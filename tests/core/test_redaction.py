"""Rule `foreign-text-is-redacted`: what a secret looks like, in which encodings, and what is left alone."""

import base64
import json
import time
from urllib import parse

import pytest

from pools.core import redaction

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzM2NyZXQifQ.c2lnbmF0dXJl-s3cret_"
HEX = "cad_s3cret0123456789abcdef0123456789abcdef"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcs3cret\nx==\n-----END EC PRIVATE KEY-----"
TEXTS = [
    "authorization: Bearer s3cret-abc is not valid", "Authorization: Basic dXM6czNjcmV0s3cret",
    "AUTHORIZATION=Token s3cret", "proxy-authorization: Negotiate s3cret, retry", 'authorization: Bearer "s3cret"',
    "map[Authorization:[Bearer s3cret] Accept:[*/*]]", "{'Authorization': 'Digest username=\"u\", response=\"s3cret\"'}",
    "Authorization: Digest username=u, response=s3cret", "x-auth-token: s3cret", "X-API-Key: s3cret",
    "token: Bearer s3cret", "invalid bearer token s3cret", JWT, f"jwt {JWT[:60]}s3cret", HEX, f"GET /x/{HEX}/ HTTP/1.1",
    HEX.upper().replace("S3CRET", "s3cret"), "nbt_abc123.s3cret0123456789", "sha256~s3cretABCDEFGHIJKLMNOP",
    "https://user:s3cret@h/x", "postgresql://u:p@s3cret@h/n", "redis://:p/s3cret?#[@h/0", "https://s3cret-0123456789abc@git/x",
    "https://h/x?token=s3cret&a=1", "https://h/?a=1&X-Amz-Signature=s3cret", "?X-Amz-Credential=s3cret/20261126",
    "/x?sig=s3cret", "?access_token=s3cret", "&client_secret=s3cret", PEM, PEM[:45], PEM.replace("\n", "\\n"),
    '{"password": "s3cret"}', '{"token":"a\\"s3cret"}', "client-key-data: s3cret", "'secret':'s3cret'", '{"password":"s3cret',
    "password: |\n  s3cret\n  s3cret\n", "token: >-\n    s3cret", "token:\n  s3cret", "bindpw => s3cret", "userPassword: s3cret",
    'spec.password: Invalid value: "s3cret": too short', "Cookie: a=b; sessionid=s3cret", "set-cookie: sid=s3cret; Path=/",
]  # fmt: skip
ENCODINGS = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps({"message": text}),
    "json twice": lambda text: json.dumps(json.dumps({"message": text})),
    "percent": lambda text: parse.quote(text, safe=""),
    "percent, all": lambda text: "".join(f"%{octet:02x}" for octet in text.encode()),
    "form": parse.quote_plus,
    "html": lambda text: text.replace('"', "&quot;").replace("'", "&#x27;"),
    "unicode escapes": lambda text: "".join(
        char if char.isalnum() else f"\\u{ord(char):04x}" for char in text
    ),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_hidden_in_every_encoding(text: str, encoding: str) -> None:
    redacted = redaction.redact(ENCODINGS[encoding](text))
    assert "s3cret" not in parse.unquote(redacted)
    assert redaction.HIDDEN in redacted
    assert redaction.redact(redacted) == redacted


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_exact_secret_is_hidden_whatever_it_looks_like(encoding: str) -> None:
    secret = "correct-horse/battery+staple&more"
    encode = ENCODINGS[encoding]
    for form in (secret, base64.b64encode(secret.encode()).decode(), secret[:20]):
        redacted = redaction.redact(f"no {encode(form)} here", [secret, "", "abc"])
        assert redacted == f"no {redaction.HIDDEN} here" or "horse" not in redacted, form
        assert form not in redacted
    assert redaction.redact("abc is short", ["abc"]) == "abc is short"


@pytest.mark.parametrize(
    "text",
    [
        'ciliumpodippools.cilium.io "green" is forbidden: User "system:anonymous" cannot get resource',
        "spec.token: Required value", "the token expired, or the password is wrong", "100%25 of 10.0.0.0/8 &amp; more",
        'secrets "web" not found', "http://h:6443/a answered 502", "2001:db8::1 is held by a\\b", "basic authentication is off",
    ],
)  # fmt: skip
def test_the_rest_is_left_alone(text: str) -> None:
    assert redaction.redact(text) == text


def test_what_surrounds_a_secret_stays() -> None:
    text = 'pods is forbidden: {"authorization":"Bearer s3cret","user":"vera"}, token=s3cret&page=2'
    shown = redaction.redact(text)
    assert "pods is forbidden" in shown
    assert '"user":"vera"' in shown
    assert shown.endswith("&page=2")


def test_long_texts_take_little_time() -> None:
    for part in (
        "token",
        "a://b:",
        "Bearer ",
        "authorization=[",
        '"',
        "%25",
        "\\u005c",
        "eyJ.",
        "password: |\n ",
    ):
        started = time.process_time()
        redaction.redact((part * 8000)[:8000])
        assert time.process_time() - started < 1, part
