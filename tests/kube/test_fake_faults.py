"""What the fake does wrong on purpose, and what it remembers of its requests."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from tests.kube.api import POOLS, Api, pool
from tests.kube.fake import FakeCluster
from tests.kube.fake.faults import Effect

_GONE = (http.client.HTTPException, ConnectionError, ssl.SSLError)


@pytest.fixture
def api(fake: FakeCluster) -> Iterator[Api]:
    connected = Api(fake)
    yield connected
    connected.close()


@pytest.mark.parametrize("status", [401, 403, 404, 409, 410, 429, 500, 503])
def test_a_status_once(fake: FakeCluster, api: Api, status: int) -> None:
    fake.faults.add(verb="list", path="ciliumpodippools", status=status, retry_after=7)
    refused = api.get(POOLS)
    assert (refused.status, refused.json["code"], refused.json["kind"]) == (
        status,
        status,
        "Status",
    )
    assert refused.headers["Retry-After"] == "7"
    assert api.get(POOLS).status == 200


def test_only_what_matches_so_many_times_after_so_many(fake: FakeCluster, api: Api) -> None:
    fake.faults.add(verb="list", status=500, skip=1, times=2)
    assert api.get("/version").status == 200
    assert [api.get(POOLS).status for _ in range(4)] == [200, 500, 500, 200]
    fake.faults.add(status=503, times=None)
    assert {api.get(POOLS).status for _ in range(3)} == {503}
    fake.faults.clear()
    assert api.get(POOLS).status == 200


@pytest.mark.parametrize(
    ("effect", "stored"),
    [("cut", False), ("lost", True), ("cut-headers", True), ("cut-body", True)],
)
def test_a_cut(fake: FakeCluster, api: Api, effect: Effect, *, stored: bool) -> None:
    fake.faults.add(verb="create", effect=effect)
    with pytest.raises(_GONE):
        api.call("POST", POOLS, pool("a"))
    assert bool(fake.objects("ciliumpodippools")) is stored


def test_answers_that_are_none(fake: FakeCluster, api: Api) -> None:
    for effect in ("truncate", "html", "gzip"):
        fake.faults.add(verb="list", effect=effect)  # type: ignore[arg-type]
        reply = api.get(POOLS)
        assert reply.status == 200
        with pytest.raises(ValueError, match=r"\S"):
            json.loads(reply.content)


def test_any_body(fake: FakeCluster, api: Api) -> None:
    fake.faults.add(verb="list", body=b'{"items":["\xff"]}')
    reply = api.get(POOLS)
    assert (reply.status, reply.content) == (200, b'{"items":["\xff"]}')


@pytest.mark.parametrize("effect", ["hang", "stall"])
def test_a_silent_server_ends_when_it_closes(fake: FakeCluster, effect: Effect) -> None:
    fake.faults.add(verb="list", effect=effect)
    ends: list[Exception] = []

    def ask() -> None:
        api = Api(fake)
        try:
            api.get(POOLS)
        except _GONE as gone:
            ends.append(gone)
        finally:
            api.close()

    thread = threading.Thread(target=ask)
    thread.start()
    while not fake.log.select("list"):
        time.sleep(0.001)
    fake.ended.set()
    thread.join()
    assert ends


def test_something_happens_between_two_requests(fake: FakeCluster, api: Api) -> None:
    fake.faults.add(verb="list", skip=1, call=lambda: fake.put(pool("b")))
    assert api.get(POOLS).json["items"] == []
    assert [item["metadata"]["name"] for item in api.get(POOLS).json["items"]] == ["b"]


def test_faults_of_a_watch(fake: FakeCluster, api: Api) -> None:
    fake.faults.add(verb="watch", status=410)
    assert api.get(POOLS, watch="1").status == 410
    fake.faults.add(verb="watch", status=410, reason="Expired", effect="event")
    (event,) = api.watch(POOLS, resourceVersion="1")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    fake.put(pool("a"))
    fake.faults.add(verb="watch", effect="cut-body")
    with pytest.raises((*_GONE, ValueError)):
        list(api.watch(POOLS))


def test_a_streamed_list_ends_with_a_marked_bookmark(fake: FakeCluster, api: Api) -> None:
    fake.put(pool("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    events = api.watch(POOLS, allowWatchBookmarks="true", timeoutSeconds=30, **query)
    assert [next(events)["type"], (end := next(events))["type"]] == ["ADDED", "BOOKMARK"]
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_bookmark_on_demand(fake: FakeCluster, api: Api) -> None:
    version = fake.put(pool("a"))["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "timeoutSeconds": 30, "allowWatchBookmarks": "true"}
    events = api.watch(POOLS, **query)
    threading.Thread(target=_bookmark_when_watched, args=(fake,)).start()
    event = next(events)
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == version


def _bookmark_when_watched(fake: FakeCluster) -> None:
    while not any(item.status for item in fake.log.select("watch")):
        time.sleep(0.001)
    for _ in range(50):
        fake.bookmark()
        time.sleep(0.01)


def test_all_connections_are_cut(fake: FakeCluster, api: Api) -> None:
    assert api.get(POOLS).status == 200
    fake.cut()
    with pytest.raises(_GONE):
        api.get(POOLS)
    assert api.get(POOLS).status == 200


def test_the_journal_tells_writes(fake: FakeCluster, api: Api) -> None:
    api.get(POOLS, limit=5)
    api.apply(POOLS, pool("a"), "us", dryRun="All")
    assert not fake.log.writes
    api.apply(POOLS, pool("a"), "us")
    (write,) = fake.log.writes
    assert (write.verb, write.path, write.status, write.user) == (
        "patch",
        f"{POOLS}/a",
        201,
        "admin",
    )
    listed = fake.log.select("list")[0]
    assert (listed.query, listed.user_agent, listed.status) == ({"limit": "5"}, "tests/1", 200)


def test_a_token_may_be_revoked(fake: FakeCluster) -> None:
    token = fake.user("someone", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    api = Api(fake, token=token)
    assert api.get(POOLS).status == 200
    fake.revoke(token)
    assert api.get(POOLS).status == 401
    api.close()


def test_another_cluster_behind_the_same_address(fake: FakeCluster, api: Api) -> None:
    fake.kube_system_uid = "00000000-0000-0000-0000-000000000000"
    metadata = api.get("/api/v1/namespaces/kube-system").json["metadata"]
    assert metadata["uid"] == fake.kube_system_uid == "00000000-0000-0000-0000-000000000000"
