"""What the client watches and writes."""

import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from pools.clusters.client import api_client
from pools.platform.outbound import faults
from tests.kube import gateways, raw_server
from tests.kube.api import Cluster
from tests.kube.fake import FakeCluster
from tests.kube.gateways import NODES, POOLS

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


@pytest.fixture
def gateway(fake: FakeCluster) -> Iterator[api_client.ClusterClient]:
    with gateways.to(fake) as opened:
        yield opened


def _line(kind: str, version: str, **metadata: str) -> bytes:
    subject = {"metadata": {"name": "a", "resourceVersion": version, **metadata}}
    return json.dumps({"type": kind, "object": subject}).encode() + b"\n"


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def _told(*parts: bytes) -> list[api_client.WatchEvent]:
    """What a watch yields of these bytes."""
    with (
        raw_server.serving(raw_server.says(CHUNKED, *parts)) as (access, _),
        api_client.ClusterClient(access, allow_loopback=True) as gateway,
    ):
        return list(gateway.watch(POOLS, "1", seconds=5))


def test_what_happens_is_told_in_order(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    since = gateway.list(POOLS).resource_version
    fake.put(gateways.pool("a"))
    fake.put(gateways.pool("a", "10.9.0.0/16"))
    fake.remove("ciliumpodippools", "a")
    events = list(gateway.watch(POOLS, since, seconds=1))
    changes = [event for event in events if event.type != "BOOKMARK"]
    assert [event.type for event in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert changes[-1].object["spec"]["ipv4"]["cidrs"] == ["10.9.0.0/16"]
    assert len({event.resource_version for event in changes}) == 3
    # Beginning again from any of them tells the rest.
    rest = gateway.watch(POOLS, changes[0].resource_version, seconds=1)
    assert [event.type for event in rest][:2] == ["MODIFIED", "DELETED"]


def test_bookmarks_are_asked_for_and_move_the_version(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    since = gateway.list(POOLS).resource_version
    watch = gateway.watch(POOLS, since, seconds=30)
    fake.later(0.3, fake.bookmark)
    event = next(watch)
    assert event.type == "BOOKMARK"
    assert event.resource_version
    (sent,) = fake.log.select("watch")
    assert sent.query["allowWatchBookmarks"] == "true"
    assert sent.query["timeoutSeconds"] == "30"


def test_a_version_that_is_too_old_as_http(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    """Rule `expired-list-begins-again`."""
    fake.faults.add(verb="watch", status=410)
    with pytest.raises(faults.Gone):
        list(gateway.watch(POOLS, "1", seconds=1))


@pytest.mark.parametrize(
    ("status", "expected"),
    [(410, faults.Gone), (500, faults.ServerFault), (429, faults.TooBusy), (403, faults.Forbidden)],
)
def test_an_error_event(
    fake: FakeCluster,
    gateway: api_client.ClusterClient,
    status: int,
    expected: type[faults.ClusterFault],
) -> None:
    fake.faults.add(verb="watch", status=status, effect="event")
    since = gateway.list(POOLS).resource_version
    with pytest.raises(expected):
        list(gateway.watch(POOLS, since, seconds=1))
    assert gateway.list(POOLS).items == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, faults.Unauthorized), (404, faults.KindNotServed), (503, faults.ServerFault)],
)
def test_a_watch_that_is_refused(
    fake: FakeCluster,
    gateway: api_client.ClusterClient,
    status: int,
    expected: type[faults.ClusterFault],
) -> None:
    fake.faults.add(verb="watch", status=status)
    with pytest.raises(expected):
        list(gateway.watch(POOLS, "1", seconds=1))


def test_a_cut_is_told_after_what_came_before(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    since = gateway.list(POOLS).resource_version
    fake.put(gateways.pool("a"))
    watch = gateway.watch(POOLS, since, seconds=30)
    assert next(watch).type == "ADDED"
    fake.cut()
    with pytest.raises(faults.Unreachable):
        next(watch)
    assert len(gateway.list(POOLS).items) == 1


def test_a_watch_that_is_left_ends_its_connection() -> None:
    remaining: list[bytes] = []

    def answer(connection: ssl.SSLSocket) -> None:
        connection.sendall(CHUNKED + _chunk(_line("ADDED", "2")))
        connection.settimeout(10)
        remaining.append(connection.recv(1))

    with raw_server.serving(answer) as (access, _):
        gateway = api_client.ClusterClient(access, allow_loopback=True)
        for event in gateway.watch(POOLS, "1", seconds=60):
            assert event.type == "ADDED"
            break
    assert remaining == [b""]


def test_half_a_line_at_the_end_is_dropped() -> None:
    whole, half = _line("ADDED", "2"), _line("DELETED", "3")[:-20]
    assert [event.type for event in _told(_chunk(whole + half), END)] == ["ADDED"]
    assert _told(_chunk(half), END) == []


def test_lines_do_not_keep_to_chunks() -> None:
    lines = _line("ADDED", "2") + _line("MODIFIED", "3") + _line("DELETED", "4")
    pieces = [_chunk(lines[item : item + 7]) for item in range(0, len(lines), 7)]
    assert [event.resource_version for event in _told(*pieces, END)] == ["2", "3", "4"]


def test_a_line_may_be_large() -> None:
    line = _line("ADDED", "2", annotation="x" * 3_000_000)
    (event,) = _told(_chunk(line), END)
    assert len(event.object["metadata"]["annotation"]) == 3_000_000


@pytest.mark.parametrize(
    "line",
    [
        b"no json\n",
        b"[]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"NEW","object":{"metadata":{}}}\n',
        b"\n",
    ],
)
def test_what_is_no_event_is_garbled(line: bytes) -> None:
    with pytest.raises(faults.MalformedResponse):
        _told(_chunk(line), END)


def test_a_line_without_end_is_cut_off() -> None:
    with pytest.raises(faults.MalformedResponse):
        _told(*[_chunk(b"x" * 0x100000)] * 40)


# --- Writing through the gateway: nothing is forced, and what is stored is what is answered -------
def _apply(
    gateway: api_client.ClusterClient, manifest: dict[str, Any], **how: Any
) -> dict[str, Any]:
    return gateway.apply(POOLS, manifest, **{"manager": "cadastre", **how})


def test_apply_makes_and_changes(gateway: api_client.ClusterClient, name: str) -> None:
    created = _apply(gateway, gateways.pool(name))
    assert created["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/16"]
    changed = _apply(gateway, gateways.pool(name, "10.9.0.0/16"))
    assert changed["spec"]["ipv4"]["cidrs"] == ["10.9.0.0/16"]
    assert changed["metadata"]["uid"] == created["metadata"]["uid"]


def test_the_same_again_changes_nothing(gateway: api_client.ClusterClient, name: str) -> None:
    created = _apply(gateway, gateways.pool(name))
    again = _apply(gateway, gateways.pool(name))
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_a_dry_run_stores_nothing(gateway: api_client.ClusterClient, name: str) -> None:
    answer = _apply(gateway, gateways.pool(name), dry_run=True)
    assert answer["spec"]["ipv4"]["maskSize"] == 24
    with pytest.raises(faults.NotFound):
        gateway.get(POOLS, name)


def test_anothers_fields_are_a_conflict_that_names_them(
    gateway: api_client.ClusterClient, name: str
) -> None:
    _apply(gateway, gateways.pool(name), manager="kubectl")
    with pytest.raises(faults.FieldConflict) as conflict:
        _apply(gateway, gateways.pool(name, "10.9.0.0/16"))
    (cause,) = conflict.value.causes
    assert cause.field == ".spec.ipv4.cidrs"
    assert "kubectl" in cause.message
    assert gateway.get(POOLS, name)["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/16"]


def test_what_is_not_valid_is_rejected_with_causes(
    gateway: api_client.ClusterClient, name: str
) -> None:
    wrong = gateways.pool(name)
    wrong["spec"]["ipv4"]["maskSize"] = 99
    with pytest.raises(faults.Rejected) as rejected:
        _apply(gateway, wrong)
    assert [cause.field for cause in rejected.value.causes] == ["spec.ipv4.maskSize"]


@pytest.mark.parametrize(
    "text", ["é 😀", "a\u2028b\u2029c\x85d", "\x7f \t \n \\ \"'", "\ufeff{[:,#"]
)
def test_a_text_arrives_as_it_was(gateway: api_client.ClusterClient, name: str, text: str) -> None:
    manifest = gateways.pool(name, annotations={"text": text})
    assert _apply(gateway, manifest)["metadata"]["annotations"]["text"] == text


def test_create_refuses_what_exists(gateway: api_client.ClusterClient, name: str) -> None:
    gateway.create(POOLS, gateways.pool(name), manager="cadastre")
    with pytest.raises(faults.AlreadyExists):
        gateway.create(POOLS, gateways.pool(name), manager="cadastre")


def test_replace_is_of_a_version(
    cluster: Cluster, gateway: api_client.ClusterClient, name: str
) -> None:
    """Rule `conflict-is-recomputed`."""
    read = gateway.create(POOLS, gateways.pool(name), manager="cadastre")
    cluster.put(gateways.pool(name, labels={"changed": "meanwhile"}))
    with pytest.raises(faults.StaleVersion):
        gateway.replace(POOLS, read, manager="cadastre")
    fresh = gateway.get(POOLS, name)
    fresh["metadata"]["labels"]["ours"] = "yes"
    replaced = gateway.replace(POOLS, fresh, manager="cadastre")
    assert set(replaced["metadata"]["labels"]) == {"changed", "ours"}
    with pytest.raises(ValueError, match="resourceVersion"):
        gateway.replace(POOLS, gateways.pool(name), manager="cadastre")


def test_delete_is_of_one_object_not_of_a_name(
    gateway: api_client.ClusterClient, name: str
) -> None:
    first = gateway.create(POOLS, gateways.pool(name), manager="cadastre")["metadata"]
    with pytest.raises(faults.StaleVersion):
        gateway.delete(POOLS, name, uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(faults.StaleVersion):
        gateway.delete(POOLS, name, uid=first["uid"], resource_version="1")
    gateway.delete(POOLS, name, uid=first["uid"], dry_run=True)
    gateway.delete(POOLS, name, uid=first["uid"], resource_version=first["resourceVersion"])
    with pytest.raises(faults.NotFound):
        gateway.delete(POOLS, name, uid=first["uid"])


def test_status_is_apart_from_the_spec(
    cluster: Cluster, gateway: api_client.ClusterClient, name: str
) -> None:
    node: dict[str, Any] = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}
    node["metadata"] = {"name": name}
    cluster.put({**node, "spec": {"ipam": {}}})
    applied = {**node, "status": {"ipam": {"operator-status": {"error": "full"}}}}
    stored = gateway.apply(NODES, applied, manager="cadastre-status", subresource="status")
    assert stored["status"]["ipam"]["operator-status"]["error"] == "full"


def test_an_absent_kind_and_an_absent_object_of_a_status(
    gateway: api_client.ClusterClient, name: str
) -> None:
    with pytest.raises(faults.KindNotServed):
        gateway.apply(
            gateways.NOWHERE, gateways.pool(name, namespace="default"), manager="cadastre"
        )
    node = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}}
    with pytest.raises(faults.NotFound):
        gateway.apply(NODES, {**node, "status": {}}, manager="s", subresource="status")


def test_a_namespace_that_is_not_there(gateway: api_client.ClusterClient, name: str) -> None:
    kind = {"apiVersion": "k8s.cni.cncf.io/v1alpha1", "kind": "IPAMClaim"}
    spec = {"interface": "net1", "network": "a"}
    claim = {**kind, "metadata": {"name": name, "namespace": "nowhere"}, "spec": spec}
    with pytest.raises(faults.NotFound, match="nowhere"):
        gateway.create(gateways.CLAIMS, claim, manager="cadastre")


def test_how_an_apply_is_sent(fake: FakeCluster) -> None:
    with gateways.to(fake) as gateway:
        _apply(gateway, gateways.pool("a"))
        _apply(gateway, gateways.pool("b"), dry_run=True)
    (sent,) = fake.log.writes
    assert sent.content_type == "application/apply-patch+yaml"
    assert sent.query == {"fieldManager": "cadastre"}


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a?x=1", "../nodes/n"])
def test_a_name_stays_inside_its_collection(fake: FakeCluster, name: str) -> None:
    with gateways.to(fake) as gateway, pytest.raises(faults.ClusterFault):
        gateway.get(POOLS, name)
    prefix = "/apis/cilium.io/v2/ciliumpodippools/"
    assert all(item.path.startswith(prefix) for item in fake.log)
    assert all("/" not in item.path.removeprefix(prefix) for item in fake.log) or "/" in name
