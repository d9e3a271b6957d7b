"""Eight attackers send what is meant to cost time or memory; a ninth client goes on being answered.

Each attack is also refused by its own limit: no answer says 5xx, and those that must be refused are.
"""

import gzip
import http.client
import io
import json
import re
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests import running_site
from tests.security import crowd

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def site() -> Iterator[running_site.Web]:
    with running_site.web() as running:
        yield running


@pytest.fixture(scope="module")
def token(site: running_site.Site) -> str:
    """Of an administrator: strangers are refused before anything is read."""
    code = (
        "from knox.models import AuthToken; from django.contrib.auth import get_user_model;"
        "print('token', AuthToken.objects.create(get_user_model().objects.create(username='admin', is_superuser=True))[1])"
    )
    result = re.search(r"token (\S+)", site.command("shell", "-c", code))
    assert result
    return result[1]


def send(site: running_site.Site, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    try:
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent_headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def upload(name: str, content: bytes) -> tuple[bytes, dict[str, str]]:
    start = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return start.encode() + content + b"\r\n--x--\r\n", {
        "Content-Type": "multipart/form-data; boundary=x"
    }


def bomb(name: str = "xl/worksheets/sheet1.xml") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr(name, b"0" * (100 * MIB))
    return packed.getvalue()


POOLS, IMPORTS = "/api/v1/pools/", "/api/v1/imports/"
DEEP = b"[" * 100_000 + b"]" * 100_000
ROWS = json.dumps({"name": "x", "cidrs": [f"10.{n // 256}.{n % 256}.0/24" for n in range(60_000)]})
SPACES = urllib.parse.quote("1." * 1500 + "!")
ATTACKS: dict[str, tuple[str, str, bytes, dict[str, str], set[int]]] = {
    "bodies above every limit": ("POST", POOLS, b" " * (34 * MIB), JSON, {413}),
    "bodies above their endpoint's": ("POST", POOLS, b" " * (3 * MIB), JSON, {413}),
    "deep JSON": ("POST", POOLS, DEEP, JSON, {400}),
    "deep YAML": ("POST", "/api/v1/pools/import/", DEEP, {"Content-Type": "application/yaml"}, {400, 415}),
    "many rows in a body": ("POST", POOLS, ROWS.encode(), JSON, {400, 413}),
    "many rows in an answer": ("GET", f"{POOLS}?limit=1000000000", b"", {}, {400}),
    "a gzip bomb": ("POST", POOLS, gzip.compress(b" " * (100 * MIB)), {**JSON, "Content-Encoding": "gzip"}, {400, 415}),
    "a text for regular expressions": ("GET", f"/api/v1/history/?q={SPACES}", b"", {}, {200, 400, 414}),
    "passwords": ("POST", "/admin/login/", b"username=admin&password=wrong", {"Content-Type": "application/x-www-form-urlencoded"}, {403}),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_delays_nobody(
    site: running_site.Site, token: str, attack: str
) -> None:
    method, path, body, headers, expected = ATTACKS[attack]
    sent = {**headers, "Authorization": f"Token {token}"}
    observed: set[int] = set()

    def run(_: int, _stop: threading.Event) -> None:
        observed.add(send(site, method, path, body, **sent))

    crowd.assert_answers_in_time(site.port, run)
    assert observed <= expected, observed
    assert observed


def test_archives_that_unpack_to_much_are_refused_and_delay_nobody(
    site: running_site.Site, token: str
) -> None:
    body, headers = upload("vms.xlsx", bomb())
    sent: dict[str, Any] = {**headers, "Authorization": f"Token {token}"}
    observed: set[int] = set()

    def run(_: int, _stop: threading.Event) -> None:
        observed.add(send(site, "POST", IMPORTS, body, **sent))

    crowd.assert_answers_in_time(site.port, run)
    assert observed
    assert max(observed) < 500
    assert min(observed) >= 400, observed
