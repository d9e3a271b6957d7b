"""Texts of JSON and YAML, and what is left out of those that are shown."""

import base64
import json
import time
from typing import Any
from urllib import parse

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import errors, redaction
from pools.platform import documents
from tests import effort


def test_brackets_in_texts_are_not_depth() -> None:
    text = '{"a": "' + "[" * 100 + '", "b": "\\"' + "{" * 100 + '"}'
    assert documents.load_json(text)["a"] == "[" * 100


def test_all_problems_are_reported_with_their_paths() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_json(
            '{"a": [{"b": 1, "b": 2, "b": 3}, NaN], "c": -Infinity, "d": 1e999,'
            f' "e": {"9" * 41}, "f": "\\ud800", "\\u0000": 1}}'
        )
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [
        ("a.0.b", "duplicate_key"),
        ("a.1", "not_finite"),
        ("c", "not_finite"),
        ("d", "not_finite"),
        ("e", "bad_number"),
        ("f", "encoding"),
        ("", "encoding"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{"a": 1}\n{}', "line 2, column 1"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": 1,}', "line 1, column"),
        ('{"a": "tab\t"}', "line 1, column"),
        ('{"a": 01}', "line 1, column"),
    ],
)
def test_syntax_errors_have_a_place(text: str, place: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_json(text)
    assert caught.value.code == "json_syntax"
    assert place in caught.value.message


@pytest.mark.exhaustive
def test_two_megabytes_are_read_in_time() -> None:
    text = '{"a": [' + '{"cidr": "10.0.0.0/8", "n": [1, 2, {"b": 1.5}]}, ' * 40_000 + "1]}"
    with effort.at_most(5_000):
        assert len(documents.load_json(text)["a"]) == 40_001


# --- YAML texts: what they mean. What is refused: test_bad_input ----------------------------------
def _one(text: str) -> dict[str, Any]:
    (document,) = documents.load_yaml(text)
    return document.data


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("24", 24),
        ("-5", -5),
        ("+7", 7),
        ("0", 0),
        ("010", "010"),
        ("0x10", "0x10"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("10.20", 10.2),
        ("10.20.0.0", "10.20.0.0"),
        ("11:22:33:44:55:06", "11:22:33:44:55:06"),
        ("2026-01-01", "2026-01-01"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"24"', "24"),
        ("'true'", "true"),
        ("|\n  text\n", "text\n"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(scalar: str, value: object) -> None:
    a = _one(f"a: {scalar}")["a"]
    assert a == value
    assert type(a) is type(value)


def test_keys_are_texts_as_they_are_written() -> None:
    assert _one("1: a\nno: b\n~: c\n11:22:33:44:55:06: d\n") == {
        "1": "a",
        "no": "b",
        "~": "c",
        "11:22:33:44:55:06": "d",
    }


def test_documents_know_their_number_and_line() -> None:
    yaml = documents.load_yaml(b"# remark\n---\n---\na: 1\n---\n\nb: 2\n")
    assert yaml == [documents.Document(0, 4, {"a": 1}), documents.Document(1, 7, {"b": 2})]


def test_all_problems_of_all_documents_are_reported() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: 1\na: 2\n---\nb: [{c: &x .nan}, *x]\n---\n- 1\n")
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [
        ("documents.0.a", "duplicate_key"),
        ("documents.1.b.0.c", "anchors_not_allowed"),
        ("documents.1.b.1", "anchors_not_allowed"),
        ("documents.2", "object_expected"),
    ]


@pytest.mark.parametrize(("depth", "passes"), [(32, True), (33, False)])
def test_thirty_two_levels_are_the_limit(depth: int, passes: bool) -> None:
    text = "a: " + "[" * (depth - 1) + "]" * (depth - 1)
    if passes:
        assert _one(text)
        return
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml(text)
    assert caught.value.code == "too_deep"


def test_a_text_with_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: \ud800")
    assert caught.value.code == "encoding"


def test_thousands_of_problems_are_cut() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.load_yaml("a: [" + "*x, " * 5000 + "1]")
    assert len(caught.value.problems) == documents.MOST_PROBLEMS


@pytest.mark.exhaustive
def test_a_megabyte_is_read_in_time() -> None:
    pool = "p{}:\n  ipv4:\n    cidrs: [10.{}.0.0/16, fd00::/104]\n    maskSize: 24\n"
    text = "".join(pool.format(number, number % 256) for number in range(14_000))
    assert len(text) > 900_000
    with effort.at_most(5_000):
        assert len(_one(text)) == 14_000


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.exhaustive
@hypothesis.given(st.dictionaries(TEXTS.filter(lambda key: key != "<<"), VALUES))
def test_a_json_text_means_the_same_in_both_readers(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    hypothesis.assume('"<<"' not in text)
    assert _one(text) == value
    assert documents.load_json(text) == value


# --- Rule `foreign-text-is-redacted`: what a secret looks like, in which encodings, and what is
# left alone
JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJzM2NyZXQifQ.c2lnbmF0dXJl-s3cret_"
HEX = "cad_s3cret0123456789abcdef0123456789abcdef"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcs3cret\nx==\n-----END EC PRIVATE KEY-----"
SECRET_TEXTS = [
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
@pytest.mark.parametrize("text", SECRET_TEXTS)
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
