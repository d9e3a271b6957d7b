"""Rule `foreign-text-is-redacted`: an API server that repeats the credential that it was sent."""

from __future__ import annotations

import dataclasses
import json
import re
import ssl
from typing import Any
from urllib import parse

import pytest

from pools.cluster_api import claims
from pools.clusters import other_writers
from pools.clusters.client import api_client
from pools.clusters.reconcile import apply, handler, sync_runs, writes
from pools.core.kubernetes.differences import FieldDifference
from pools.models import Cluster, Drift, Finding, ObservedObject
from pools.platform.outbound import faults
from tests.kube import gateways, raw_server
from tests.kube.gateways import POOLS

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
