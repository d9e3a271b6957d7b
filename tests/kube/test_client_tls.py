"""Rule `tls-is-verified`, and client certificates leave nothing behind."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import pathlib
import socket
import ssl
import threading

import pytest

from pools.clusters.client import api_client, kubeconfig
from pools.platform.outbound import faults, transport
from pools.platform.outbound.credentials import Access
from tests.kube import certificates, kubeconfigs, raw_server
from tests.kube.fake import FakeCluster

NOW = datetime.datetime.now(datetime.UTC)


def _version(access: Access) -> str:
    with api_client.ClusterClient(access, allow_loopback=True, timeouts=(2, 2)) as gateway:
        return gateway.version()


@pytest.fixture
def access(fake: FakeCluster) -> Access:
    return kubeconfig.read(fake.kubeconfig(), now=NOW).access


def test_the_clusters_own_authority_is_trusted(access: Access) -> None:
    assert _version(access)


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
