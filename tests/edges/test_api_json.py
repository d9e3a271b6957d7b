"""Odd bodies and headers: one problem each, never a 5xx, never half done."""

from typing import Any

import pytest

from pools.models import Cluster
from tests.edges import api as apis

MIB = 1024 * 1024

BODIES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "object_expected"),
    "an empty object": (b" {} ", 400, "object_expected"),
    "blanks": (b"  ", 400, "object_expected"),
    "not JSON": (b"name=a", 400, "json_syntax"),
    "cut off": (b'{"name": "a"', 400, "json_syntax"),
    "trailing data": (b'{"name": "a"} {}', 400, "json_syntax"),
    "a remark": (b'{"name": "a"} // a', 400, "json_syntax"),
    "null": (b"null", 400, "object_expected"),
    "a list": (b'[{"name": "a"}]', 400, "object_expected"),
    "a text": (b'"a"', 400, "object_expected"),
    "a number": (b"1", 400, "object_expected"),
    "a key twice": (b'{"name": "a", "name": "b"}', 400, "duplicate_key"),
    "a key twice, escaped": (b'{"name": "a", "n\\u0061me": "b"}', 400, "duplicate_key"),
    "a key twice, inside": (b'{"name": {"a": 1, "a": 1}}', 400, "duplicate_key"),
    "NaN": (b'{"name": NaN}', 400, "not_finite"),
    "infinity": (b'{"name": -Infinity}', 400, "not_finite"),
    "1e999": (b'{"name": 1e999}', 400, "not_finite"),
    "5000 digits": (b'{"name": ' + b"9" * 5000 + b"}", 400, "bad_number"),
    "deep lists": (b"[" * 100_000, 400, "too_deep"),
    "deep objects": (b'{"name":' * 50_000 + b"1" + b"}" * 50_000, 400, "too_deep"),
    "33 levels": (b'{"name":' * 33 + b"1" + b"}" * 33, 400, "too_deep"),
    "BOM": (b'\xef\xbb\xbf{"name": "a"}', 400, "encoding"),
    "UTF-16": ('{"name": "a"}'.encode("utf-16"), 400, "encoding"),
    "Latin-1": (b'{"name": "\xe9"}', 400, "encoding"),
    "raw surrogate": (b'{"name": "\xed\xa0\x80"}', 400, "encoding"),
    "lone surrogate": (b'{"name": "\\ud800"}', 400, "encoding"),
    "lone surrogate in a key": (b'{"\\udfff": "a"}', 400, "encoding"),
    "NUL": (b'{"name": "a\0b"}', 400, "encoding"),
    "escaped NUL": (b'{"name": "a\\u0000b"}', 400, "encoding"),
    "3 MiB": (b'{"name": "' + b"a" * 3 * MIB + b'"}', 413, "too_large"),
    "unknown field": (b'{"name": "a", "x": 1}', 400, "unknown_field"),
    "read-only field": (b'{"name": "a", "id": 1}', 400, "unknown_field"),
    "two problems": (b'{"name": 1, "x": 1}', 400, "invalid"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(("body", "status", "code"), BODIES.values(), ids=BODIES)
def test_an_odd_body_is_one_problem(body: bytes, status: int, code: str) -> None:
    api = apis.Api()
    apis.refused(api("POST", "clusters/", body), status, code)
    assert not Cluster.objects.exists()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "path",
    ["pools/", "pools/1/allocations/", "pools/1/cidrs/", "pools/1/cidrs/1/reserved-ranges/",
     "blocks/1/release/", "blocks/1/end-cooldown/", "pools/import/"],
)  # fmt: skip
@pytest.mark.parametrize(
    "case",
    ["a key twice", "1e999", "deep lists", "lone surrogate", "3 MiB", "null", "an empty object"],
)
def test_every_endpoint_reads_as_strictly(path: str, case: str) -> None:
    body, status, code = BODIES[case]
    apis.refused(apis.Api()("POST", path, body), status, code)


@pytest.mark.parametrize("case", ["nothing", "an empty object", "a list"])
def test_a_change_says_what_shall_be_different(case: str) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/29")
    body, status, code = BODIES[case]
    for path in ("clusters/prod/", f"pools/{pool}/"):
        apis.refused(api("PATCH", path, body), status, code)
    assert api("GET", f"pools/{pool}/").headers["ETag"] == '"1"'


TYPES: dict[str, tuple[str, dict[str, str]]] = {
    "XML": ("application/xml", {}),
    "a form": ("application/x-www-form-urlencoded", {}),
    "multipart": ("multipart/form-data; boundary=x", {}),
    "no type": ("", {}),
    "plain": ("text/plain", {}),
    "UTF-7": ("application/json; charset=utf-7", {}),
    "UTF-16": ("application/json; charset=utf-16", {}),
    "gzip": ("application/json", {"Content-Encoding": "gzip"}),
    "JSON patch": ("application/json-patch+json", {}),
}


@pytest.mark.parametrize(("media_type", "headers"), TYPES.values(), ids=TYPES)
def test_only_plain_json_is_read(media_type: str, headers: dict[str, str]) -> None:
    api = apis.Api()
    url = f"{apis.ROOT}clusters/"
    answer = api.client.post(url, b'{"name": "a"}', content_type=media_type, headers=headers)
    apis.refused(answer, 415, "unsupported_media_type")
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"],
)
def test_spellings_of_json(media_type: str) -> None:
    url = f"{apis.ROOT}clusters/"
    assert apis.Api().client.post(url, b'{"name": "a"}', content_type=media_type).status_code == 201


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*;q=0", "nonsense"])
def test_answers_are_json_whatever_is_accepted(accept: str) -> None:
    answer = apis.Api()("GET", "clusters/", Accept=accept)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("PUT", "pools/1/", 405, "method_not_allowed"),
        ("PUT", "blocks/1/", 405, "method_not_allowed"),
        ("DELETE", "blocks/1/", 405, "method_not_allowed"),
        ("POST", "events/", 405, "method_not_allowed"),
        ("GET", "nowhere/", 404, "not_found"),
        ("GET", "pools/abc/", 404, "not_found"),
        ("GET", "pools/-1/", 404, "not_found"),
        ("GET", f"pools/{10**30}/", 404, "not_found"),
        ("POST", f"blocks/{10**30}/release/", 404, "not_found"),
        ("POST", f"pools/{2**63}/allocations/", 404, "not_found"),
        ("POST", f"pools/{2**31}/allocations/", 404, "not_found"),
        ("GET", "clusters/%00/", 404, "not_found"),
        ("GET", "instances/%00/network/", 404, "not_found"),
    ],
)
def test_what_is_not_there(method: str, path: str, status: int, code: str) -> None:
    body: Any = apis.holder("a") if method == "POST" else None
    apis.refused(apis.Api()(method, path, body), status, code)


@pytest.mark.parametrize("path", ["pools", "clusters"])
def test_a_forgotten_slash_keeps_method_and_body(path: str) -> None:
    answer = apis.Api()("POST", path, {"name": "a"})
    assert (answer.status_code, answer.headers["Location"]) == (308, f"{apis.ROOT}{path}/")
