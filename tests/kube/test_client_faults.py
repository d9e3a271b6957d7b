"""Rule `unknown-is-not-absent`: each thing that goes wrong is a fault, and no empty list.

The same for reading a list and for applying, because callers act alike on both. What only a list, a
watch or a write can meet is tested with them.
"""

import contextlib
import dataclasses
import datetime
import os
import pathlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pools.clusters.client import api_client, kubeconfig
from pools.platform.outbound import faults, transport
from pools.platform.outbound.credentials import Access
from tests.kube import certificates, gateways, kubeconfigs, raw_server
from tests.kube.fake import FakeCluster
from tests.kube.gateways import POOLS

MATRIX: list[tuple[str, dict[str, Any], type[faults.ClusterFault]]] = [
    ("400", {"status": 400}, faults.Rejected),
    ("401", {"status": 401}, faults.Unauthorized),
    ("403", {"status": 403}, faults.Forbidden),
    ("404", {"status": 404}, faults.KindNotServed),
    ("409", {"status": 409}, faults.StaleVersion),
    ("410", {"status": 410, "times": 3}, faults.Gone),
    ("422", {"status": 422}, faults.Rejected),
    ("429", {"status": 429, "retry_after": 7}, faults.TooBusy),
    ("429-without-a-time", {"status": 429}, faults.TooBusy),
    ("500", {"status": 500}, faults.ServerFault),
    ("503", {"status": 503}, faults.ServerFault),
    ("503-with-a-time", {"status": 503, "retry_after": 7}, faults.TooBusy),
    ("504", {"status": 504}, faults.ServerFault),
    ("cut", {"effect": "cut"}, faults.Unreachable),
    ("lost", {"effect": "lost"}, faults.Unreachable),
    ("cut-after-the-headers", {"effect": "cut-headers"}, faults.Unreachable),
    ("cut-in-the-body", {"effect": "cut-body"}, faults.Unreachable),
    ("truncated-json", {"effect": "truncate"}, faults.MalformedResponse),
    ("page", {"effect": "html"}, faults.MalformedResponse),
    ("gzip-garbage", {"effect": "gzip"}, faults.MalformedResponse),
    ("slow", {"delay": 2}, faults.Unreachable),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("verb", ["list", "patch"])
@pytest.mark.parametrize(
    ("rule", "expected"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX]
)
def test_what_goes_wrong_has_a_name(
    fake: FakeCluster, rule: dict[str, Any], expected: type[faults.ClusterFault], verb: str
) -> None:
    fake.put(gateways.pool("a"))
    fake.log.clear()
    fake.faults.add(verb=verb, **rule)
    with gateways.to(fake, timeouts=(30, 1 if "delay" in rule else 30)) as gateway:
        calls: dict[str, Callable[[], object]] = {
            "list": lambda: gateway.list(POOLS),
            "patch": lambda: gateway.apply(POOLS, gateways.pool("b"), manager="cadastre"),
        }
        with pytest.raises(faults.ClusterFault) as fault:
            calls[verb]()
        assert type(fault.value) is expected
        # No retry is hidden anywhere; a list begins again after 410, and only then.
        assert len(fake.log) == (3 if expected is faults.Gone and verb == "list" else 1)
        if expected is faults.TooBusy:
            assert getattr(fault.value, "retry_after", None) == rule.get("retry_after", 0)
        fake.faults.clear()
        # The connection is usable again, or another is opened.
        assert [item["metadata"]["name"] for item in gateway.list(POOLS).items][:1] == ["a"]


def test_a_token_that_ended(fake: FakeCluster) -> None:
    token = fake.user("short-lived")
    with gateways.to(fake, token=token) as gateway:
        with pytest.raises(faults.Forbidden):
            gateway.list(POOLS)
        fake.revoke(token)
        with pytest.raises(faults.Unauthorized):
            gateway.list(POOLS)


def test_a_server_that_is_gone() -> None:
    with FakeCluster() as cluster:
        gateway = gateways.to(cluster, timeouts=(1, 1))
    with gateway, pytest.raises(faults.Unreachable):
        gateway.version()


LIST = b'"kind":"CiliumPodIPPoolList","metadata":{"resourceVersion":"1"}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"{" + LIST,
        b"{" + LIST + b',"items":{}}',
        b"{" + LIST + b',"items":[1]}',
        b"{" + LIST + b"}",
        b'{"kind":"Status","status":"Success","metadata":{}}',
        b'{"kind":"CiliumPodIPPool","metadata":{"resourceVersion":"1"},"items":[]}',
        b'{"kind":"CiliumPodIPPoolList","metadata":{},"items":[]}',
        b'{"kind":"XList","metadata":{"resourceVersion":"1","continue":"x"},"items":[]}',
        b'{"a":"\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' + b"1" * 5000 + b"}",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_no_list_is_never_an_empty_one(body: bytes) -> None:
    with raw_server.serving(raw_server.says(raw_server.ok(body))) as (access, _):
        _refused(access, faults.MalformedResponse)


def test_no_items_are_null_in_go() -> None:
    body = b"{" + LIST + b',"items":null}'
    with (
        raw_server.serving(raw_server.says(raw_server.ok(body))) as (access, _),
        api_client.ClusterClient(access, allow_loopback=True) as gateway,
    ):
        assert gateway.list(POOLS).items == []


def _refused(access: Access, expected: type[faults.ClusterFault], **how: Any) -> None:
    with (
        api_client.ClusterClient(access, allow_loopback=True, **how) as gateway,
        pytest.raises(expected) as fault,
    ):
        gateway.list(POOLS)
    assert type(fault.value) is expected
    assert "canary" not in str(fault.value)


def _not_found(body: bytes) -> bytes:
    return b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body) + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWERS: dict[str, tuple[bytes, type[faults.ClusterFault]]] = {
    "page-404": (_not_found(b"<html></html>"), faults.MalformedResponse),
    "redirect": (
        b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        faults.MalformedResponse,
    ),
    "endless-length": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{",
        faults.MalformedResponse,
    ),
    "without-end": (
        CHUNKED + (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 40,
        faults.MalformedResponse,
    ),
    "compressed": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        faults.MalformedResponse,
    ),
    "teapot": (
        b"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n",
        faults.MalformedResponse,
    ),
    "nothing": (b"", faults.Unreachable),
    "zeros": (b"\0\0\0\0", faults.Unreachable),
    "ssh": (b"SSH-2.0-x\r\n", faults.Unreachable),
    "chunk-cut": (CHUNKED + b"5\r\n", faults.Unreachable),
    "no-such-kind": (_not_found(b"404 page not found\n"), faults.KindNotServed),
    "no-such-kind-paths": (_not_found(b'{"paths":["/apis","/version"]}'), faults.KindNotServed),
    "no-such-kind-status": (_not_found(b'{"kind":"Status","code":404}'), faults.KindNotServed),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_no_api_server_says(name: str) -> None:
    answer, expected = ANSWERS[name]
    with raw_server.serving(raw_server.says(answer)) as (access, requests):
        _refused(access, expected)
    assert len(requests) == 1


def test_an_answer_that_drips_is_cut_off() -> None:
    """Rule `slow-cluster-delays-only-itself`: each byte comes in time, the whole never would."""

    def drip(connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(0.05)

    with raw_server.serving(drip) as (access, _):
        _refused(access, faults.Unreachable, timeouts=(1, 0.2))


def test_a_webhooks_key_in_a_servers_message_is_hidden() -> None:
    text = (
        'failed calling webhook "x": Post "https://c/webhooks/v1/prod/cadw_0123456789abcdefXYZ/v"'
    )
    assert "0123456789" not in faults.printable_message(text)
    assert faults.printable_message(text).startswith("failed calling webhook")


NOW = datetime.datetime.now(datetime.UTC)


def _version(access: Access) -> str:
    with api_client.ClusterClient(access, allow_loopback=True, timeouts=(2, 2)) as gateway:
        return gateway.version()


@pytest.fixture
def access(fake: FakeCluster) -> Access:
    return kubeconfig.read(fake.kubeconfig(), now=NOW).access


@pytest.mark.parametrize("ca", ["", certificates.Authority().pem], ids=["system", "another"])
def test_no_other_is(fake: FakeCluster, access: Access, ca: str) -> None:
    with pytest.raises(faults.TLSRefused, match="certificate"):
        _version(dataclasses.replace(access, ca=ca))
    assert len(fake.log) == 0


def test_the_name_must_be_in_the_certificate(fake: FakeCluster, access: Access) -> None:
    def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    server = access.server.replace("127.0.0.1", "api.example.org")
    wrong = dataclasses.replace(access, server=server)
    with (
        api_client.ClusterClient(wrong, allow_loopback=True, resolver=resolver) as gateway,
        pytest.raises(faults.TLSRefused, match=r"api\.example\.org"),
    ):
        gateway.version()
    by_server_name = dataclasses.replace(wrong, tls_server_name="kubernetes.default.svc")
    with api_client.ClusterClient(
        by_server_name, allow_loopback=True, resolver=resolver
    ) as gateway:
        assert gateway.version()
    with pytest.raises(faults.TLSRefused):
        _version(dataclasses.replace(access, tls_server_name="other.example.org"))


def test_a_client_certificate_is_an_identity(fake: FakeCluster) -> None:
    pair = fake.certificate("cadastre", ("system:masters",))
    text = kubeconfigs.text(fake.url, fake.ca, pair=pair)
    assert _version(kubeconfig.read(text, now=NOW).access)
    (request,) = fake.log
    assert request.user == "cadastre"


def test_a_private_key_leaves_no_file(
    fake: FakeCluster, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = fake.certificate("cadastre")
    access = Access(fake.url, fake.ca, certificate=pair.certificate, key=pair.key)
    for attempt in ("in memory", "by a file"):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        open_before = _open()
        assert isinstance(transport.tls_context(access), ssl.SSLContext), attempt
        assert _open() - open_before == set(), attempt
        assert list(tmp_path.iterdir()) == []
        monkeypatch.delattr(os, "memfd_create", raising=False)


def _open() -> set[tuple[str, str]]:
    """Each descriptor and what it is of: others, closed meanwhile by threads, may lend their numbers."""
    result = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            result.add((name, os.readlink(f"/proc/self/fd/{name}")))
    return result


def test_certificates_that_do_not_load_are_said_so(access: Access) -> None:
    for change in ({"ca": "x"}, {"certificate": "x", "key": "y"}):
        with pytest.raises(faults.TLSRefused, match="cannot be loaded"):
            _version(dataclasses.replace(access, **change))


@pytest.mark.parametrize(
    ("version", "fault"), [("TLSv1_1", True), ("TLSv1_2", False), ("TLSv1_3", False)]
)
def test_old_tls_is_not_spoken(version: str, fault: bool) -> None:
    context = transport.tls_context(Access("https://a", raw_server.AUTHORITY.pem))
    assert (context.minimum_version > ssl.TLSVersion[version]) == fault
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_server_without_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(ConnectionError):
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(faults.TLSRefused):
            _version(Access(url, raw_server.AUTHORITY.pem, token="canary"))
        thread.join(10)
