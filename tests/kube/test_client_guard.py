"""Rule `outbound-addresses-are-guarded` of the client: a canary listens and hears nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pools.clusters.client import api_client
from pools.core import errors
from pools.platform.outbound import faults
from pools.platform.outbound.credentials import Access
from tests.kube import gateways, raw_server
from tests.kube.fake import FakeCluster

NAME = "kubernetes.default.svc"  # is in the certificates of the tests


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def _heard(canary: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        canary.accept()[0].close()
        return True
    return False


def test_loopback_is_not_reached_unless_allowed(canary: socket.socket) -> None:
    access = Access(f"https://127.0.0.1:{canary.getsockname()[1]}", token="x")
    with api_client.ClusterClient(access) as gateway, pytest.raises(faults.AddressNotAllowed):
        gateway.version()
    assert not _heard(canary)


def test_a_name_that_leads_to_loopback_is_not_reached(canary: socket.socket) -> None:
    access = Access(f"https://{NAME}:{canary.getsockname()[1]}", token="x")
    with (
        api_client.ClusterClient(access, resolver=lambda *_: ["127.0.0.1"]) as gateway,
        pytest.raises(faults.AddressNotAllowed),
    ):
        gateway.version()
    assert not _heard(canary)


def test_a_url_that_is_not_allowed_opens_no_gateway() -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        api_client.ClusterClient(Access("http://10.0.0.1:6443", token="x"))
    assert refusal.value.code == "url_not_allowed"


def test_a_name_that_is_rebound_is_judged_again(fake: FakeCluster) -> None:
    """The address that was judged is the one that is dialled; a new connection is a new judgement."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    lookups: list[tuple[str, int]] = []

    def rebinding(host: str, port: int) -> list[str]:
        lookups.append((host, port))
        return answers[len(lookups) - 1]

    port = int(fake.url.rpartition(":")[2])
    access = Access(f"https://{NAME}:{port}", fake.ca, fake.token)
    with api_client.ClusterClient(access, allow_loopback=True, resolver=rebinding) as gateway:
        assert gateway.version()
        assert gateway.version()
        assert lookups == [(NAME, port)]
        gateway.close()
        with pytest.raises(faults.AddressNotAllowed, match=r"169\.254"):
            gateway.version()
    assert len(lookups) == 2


def test_the_name_is_sent_as_host() -> None:
    with raw_server.serving(raw_server.says(raw_server.ok(b'{"gitVersion":"v1"}'))) as served:
        access, requests = served
        port = access.server.rpartition(":")[2]
        by_name = dataclasses.replace(access, server=f"https://{NAME}:{port}/k8s/clusters/c-1")
        with api_client.ClusterClient(
            by_name, allow_loopback=True, resolver=lambda *_: ["127.0.0.1"]
        ) as gateway:
            assert gateway.version() == "v1"
    assert requests[0].startswith(b"GET /k8s/clusters/c-1/version HTTP/1.1\r\n")
    assert f"\r\nHost: {NAME}:{port}\r\n".encode() in requests[0]


def test_a_redirect_is_not_followed(canary: socket.socket) -> None:
    where = f"https://127.0.0.1:{canary.getsockname()[1]}/"
    for status in (301, 302, 303, 307, 308):
        answer = f"HTTP/1.1 {status} X\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()
        with (
            raw_server.serving(raw_server.says(answer)) as (access, _),
            api_client.ClusterClient(access, allow_loopback=True) as gateway,
            pytest.raises(faults.MalformedResponse, match="redirect"),
        ):
            gateway.version()
    assert not _heard(canary)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_of_the_environment_is_not_used(
    fake: FakeCluster, canary: socket.socket, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    proxy = f"{scheme}://127.0.0.1:{canary.getsockname()[1]}"
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with gateways.to(fake) as gateway:
        assert gateway.version()
    assert not _heard(canary)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "modules",
    ["ipam_site.urls, ipam_site.wsgi, ipam_site.celery", "pools.clusters.client.api_client"],
)
def test_the_client_is_not_imported_before_it_is_needed(modules: str) -> None:
    """It takes half a second and 40 MB, which a web process never needs."""
    code = (
        f"import django; django.setup(); import sys, {modules}; print('kubernetes' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ipam_site.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == "False"
