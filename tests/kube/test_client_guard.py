"""Rule `outbound-addresses-are-guarded` of the client: a canary listens and hears nothing."""

import dataclasses
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from typing import Any
from urllib import parse

import pytest

from pools.cluster_api import claims
from pools.clusters import other_writers
from pools.clusters.client import api_client
from pools.clusters.reconcile import apply, handler, sync_runs, writes
from pools.core import errors
from pools.core.kubernetes.differences import FieldDifference
from pools.models import Cluster, Drift, Finding, ObservedObject
from pools.platform.outbound import faults
from pools.platform.outbound.credentials import Access
from tests import servers
from tests.kube import gateways, raw_server
from tests.kube.fake import FakeCluster
from tests.kube.gateways import POOLS

NAME = "kubernetes.default.svc"  # is in the certificates of the tests


def test_loopback_is_not_reached_unless_allowed(canary: socket.socket) -> None:
    access = Access(f"https://127.0.0.1:{canary.getsockname()[1]}", token="x")
    with api_client.ClusterClient(access) as gateway, pytest.raises(faults.AddressNotAllowed):
        gateway.version()
    assert not servers.heard(canary)


def test_a_name_that_leads_to_loopback_is_not_reached(canary: socket.socket) -> None:
    access = Access(f"https://{NAME}:{canary.getsockname()[1]}", token="x")
    with (
        api_client.ClusterClient(access, resolver=lambda *_: ["127.0.0.1"]) as gateway,
        pytest.raises(faults.AddressNotAllowed),
    ):
        gateway.version()
    assert not servers.heard(canary)


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
    assert not servers.heard(canary)


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
    assert not servers.heard(canary)


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


OPAQUE = "a-plain-word-of-this-site"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYWRhc3RyZSJ9.c2lnbmF0dXJl"


def _repeating(status: int, write: Any, sent: list[str]) -> raw_server.Answer:
    """Answers with a Status that repeats the header of the request in its message, reason and causes."""

    def answer(connection: ssl.SSLSocket) -> None:
        text = write(f"authorization: Bearer {sent[0]}") + f" rejected {write(sent[0])}"
        causes = [{"field": sent[0], "message": text, "reason": text}]
        body = {
            "kind": "Status",
            "message": f"pools are forbidden: {text}",
            "reason": text,
            "details": {"causes": causes},
        }
        encoded = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(encoded)}\r\n\r\n"
        connection.sendall(head.encode() + encoded)

    return answer


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "write", [str, json.dumps, parse.quote, str.encode], ids=["plain", "json", "percent", "repr"]
)
@pytest.mark.parametrize("token", [OPAQUE, JWT])
@pytest.mark.parametrize("status", [400, 401, 403, 409, 422, 429, 500])
def test_the_fault_does_not_have_it(status: int, token: str, write: Any) -> None:
    responder = _repeating(status, lambda text: str(write(text)), [token])
    with raw_server.serving(responder) as (access, requests):
        mine = dataclasses.replace(access, token=token)
        with (
            api_client.ClusterClient(mine, allow_loopback=True) as client,
            pytest.raises(faults.ClusterFault) as fault,
        ):
            client.list(POOLS)
    assert token.encode() in requests[0]
    shown = f"{fault.value.message} {fault.value.causes}"
    assert token not in parse.unquote(shown)
    assert not re.search(r"eyJ\w|plain-word", shown)
    assert "pools are forbidden" in shown


def test_an_error_event_of_a_watch_and_a_version() -> None:
    status = {"kind": "Status", "code": 410, "message": f"too old for {OPAQUE}"}
    event = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    version = json.dumps({"gitVersion": f"v1.36.0 {OPAQUE}"}).encode()
    for body, ask in (
        (event, lambda client: list(client.watch(POOLS, "1", seconds=5))),
        (version, lambda client: client.version()),
    ):
        with raw_server.serving(raw_server.says(raw_server.ok(body))) as (access, _):
            mine = dataclasses.replace(access, token=OPAQUE)
            with api_client.ClusterClient(mine, allow_loopback=True) as client:
                try:
                    shown = ask(client)
                except faults.Gone as gone:
                    shown = gone.message
        assert OPAQUE not in str(shown)
        assert "[redacted]" in str(shown)


def test_conditions_and_findings_are_stored_without_it(db: None) -> None:
    class Pools(handler.Handler):
        kind, resources = POOLS.kind, (POOLS,)

        def parse(self, manifest: Any) -> Any:
            return manifest

    manifest = gateways.pool("a") | {
        "status": {"conditions": [{"type": "X", "message": f"Bearer {JWT}"}]}
    }
    stored = handler.projection_for(Pools())(manifest)
    assert stored is not None
    assert stored["status"]["conditions"][0] == {"type": "X", "message": "Bearer [redacted]"}
    assert JWT in str(manifest)
    cluster = Cluster.objects.create(name="east")
    finding = handler.ReconcileFinding(
        "code", "a", f"token={JWT}", details={"message": f"token={JWT}"}
    )
    apply.store_findings(cluster.pk, POOLS.kind, [finding])
    row = Finding.objects.get()
    assert JWT not in f"{row.message} {row.details}"


def test_a_difference_is_stored_and_planned_without_it(db: None) -> None:
    error = FieldDifference("status.error", None, {"text": f"token={JWT}"}, ("operator",))
    cluster = Cluster.objects.create(name="east")
    drifted = apply.DriftedField(("", "a"), error, "", "")
    apply.store_drift(cluster.pk, POOLS.kind, [drifted], None)
    row = Drift.objects.get()
    assert row.observed == {"text": "token=[redacted]"}
    counts = sync_runs.KindCounts()
    write = handler.Write(POOLS, "a", lambda current: current)
    apply._count(counts, writes.WriteResult(write, field_differences=(error,)), dry_run=True)
    assert JWT not in str(counts.plan)
    assert "token=[redacted]" in str(counts.plan)


def test_the_holder_of_a_lease_is_shown_without_it() -> None:
    lease = {
        "metadata": {"namespace": "kube-system", "name": "operator"},
        "spec": {"holderIdentity": f"operator token={JWT}"},
    }
    (writer, *_) = other_writers.WRITERS
    report = other_writers.report(writer, lambda _: [lease], live=True)
    assert report.evidence.endswith("is held by operator token=[redacted]")
    stored = handler.projection_for(other_writers.Leases(writer))(lease)
    assert stored is not None
    assert JWT not in str(stored)


def test_the_condition_of_a_claim_of_cluster_api_is_shown_without_it(db: None) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "No", "message": f"Bearer {JWT}"}
    row = ObservedObject(
        namespace="blue", name="a", manifest={"status": {"v1beta2": {"conditions": [condition]}}}
    )
    (shown,) = claims.describe([row])
    assert (shown.reason, shown.message) == ("No", "Bearer [redacted]")
