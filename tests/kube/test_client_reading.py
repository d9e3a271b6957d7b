"""What the client reads and watches of a cluster."""

import json
import ssl
from collections.abc import Iterator

import pytest

from pools.clusters.client import api_client
from pools.platform.outbound import faults
from tests.kube import gateways, raw_server
from tests.kube.fake import FakeCluster
from tests.kube.gateways import CLAIMS, NAMESPACES, NODES, OLD_POOLS, POOLS


@pytest.fixture
def gateway(fake: FakeCluster) -> Iterator[api_client.ClusterClient]:
    with gateways.to(fake) as opened:
        yield opened


def test_we_say_who_we_are(fake: FakeCluster, gateway: api_client.ClusterClient) -> None:
    gateway.version()
    (request,) = fake.log
    assert request.user_agent.startswith("cadastre/")


@pytest.mark.parametrize(
    ("definitions", "served"),
    [
        ([], {NAMESPACES}),
        (["cilium.io_ciliumpodippools.v2"], {NAMESPACES, POOLS, OLD_POOLS}),
        (["cilium.io_ciliumpodippools.v2alpha1"], {NAMESPACES, OLD_POOLS}),
    ],
    ids=["none", "both", "v2alpha1"],
)
def test_what_is_served(definitions: list[str], served: set[object]) -> None:
    with FakeCluster() as cluster, gateways.to(cluster) as gateway:
        cluster.crds(*definitions)
        assert gateway.served([POOLS, OLD_POOLS, NODES, CLAIMS, NAMESPACES]) == served


@pytest.mark.parametrize("path", ["^/apis$", "^/apis/cilium.io/v2$"])
def test_discovery_that_fails_is_not_absence(
    fake: FakeCluster, gateway: api_client.ClusterClient, path: str
) -> None:
    for status in (403, 404, 500):
        fake.faults.add(path=path, status=status)
        with pytest.raises(faults.ClusterFault):
            gateway.served([POOLS])


@pytest.mark.sample(3)
@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1201])
def test_a_list_is_complete(
    fake: FakeCluster, gateway: api_client.ClusterClient, count: int
) -> None:
    for number in range(count):
        fake.put(gateways.pool(f"p{number:05}"))
    fake.log.clear()
    listing = gateway.list(POOLS)
    assert [item["metadata"]["name"] for item in listing.items] == [
        f"p{number:05}" for number in range(count)
    ]
    assert listing.resource_version
    assert [item.query["limit"] for item in fake.log] == ["500"] * max(1, -(-count // 500))


def test_what_looks_like_the_next_page_is_none() -> None:
    pages = {
        b"true": b'{"items": [{"continue": "x"}], "kind": "XList", "metadata": {"resourceVersion": "2"}}',
        b"": b'{"items": [{"continue": "decoy"}], "kind": "XList", "metadata": {"continue": "true"}}',
    }
    served: list[bytes] = []

    def answer(connection: ssl.SSLSocket) -> None:
        name = next(name for name in pages if name in requests[-1])
        served.append(name)
        connection.sendall(raw_server.ok(pages[name], b"Connection: close"))

    with (
        raw_server.serving(answer) as (access, requests),
        api_client.ClusterClient(access, allow_loopback=True) as gateway,
    ):
        listing = gateway.list(POOLS)
    assert listing == api_client.Listing([{"continue": "decoy"}, {"continue": "x"}], "2")
    assert served == [b"", b"true"]


def test_a_list_that_expires_begins_again(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    for number in range(501):
        fake.put(gateways.pool(f"p{number:05}"))
    fake.faults.add(verb="list", skip=1, times=1, status=410)
    assert len(gateway.list(POOLS).items) == 501
    assert [bool(item.query.get("continue")) for item in fake.log] == [False, True, False, True]


def test_a_list_that_always_expires_is_given_up(
    fake: FakeCluster, gateway: api_client.ClusterClient
) -> None:
    fake.faults.add(verb="list", times=None, status=410)
    with pytest.raises(faults.Gone):
        gateway.list(POOLS)
    assert len(fake.log) == 3


def test_half_a_list_is_none(fake: FakeCluster, gateway: api_client.ClusterClient) -> None:
    for number in range(501):
        fake.put(gateways.pool(f"p{number:05}"))
    fake.faults.add(verb="list", skip=1, status=503)
    with pytest.raises(faults.ServerFault):
        gateway.list(POOLS)


# --- Watching through the gateway: kubernetes.md 6.2 ----------------------------------------------
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


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
