"""Watch: events, versions, bookmarks, the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kube.api import MERGE, OLD_POOLS, POOLS, Api, Cluster, pool
from tests.kube.fake import FakeCluster


@pytest.fixture
def other(cluster: Cluster) -> Iterator[Api]:
    """Another connection: one that watches does nothing else."""
    connected = Api(cluster)
    yield connected
    connected.close()


def _now(api: Api) -> str:
    return api.get(POOLS, limit=1).version


def test_events_come_in_order_with_whole_objects(api: Api, other: Api, name: str) -> None:
    since = _now(api)
    path = f"{POOLS}/{name}"
    created = api.call("POST", POOLS, pool(name)).json
    labels = {"metadata": {"labels": {"a": "b"}}}
    changed = api.call("PATCH", path, labels, content_type=MERGE).json
    api.call("DELETE", path)
    events = other.watch(POOLS, resourceVersion=since, timeoutSeconds=10)
    first, second, third = next(events), next(events), next(events)
    assert (first["type"], first["object"]) == ("ADDED", created)
    assert (second["type"], second["object"]) == ("MODIFIED", changed)
    assert (third["type"], third["object"]["spec"]) == ("DELETED", created["spec"])
    deleted = third["object"]["metadata"]
    assert deleted["uid"] == created["metadata"]["uid"]
    assert int(deleted["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


def test_an_event_arrives_while_it_watches(api: Api, other: Api, name: str) -> None:
    events = other.watch(POOLS, resourceVersion=_now(api), timeoutSeconds=10)
    api.call("POST", POOLS, pool(name))
    assert next(events)["object"]["metadata"]["name"] == name


def test_without_a_version_it_begins_with_everything(api: Api, other: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name))
    events = other.watch(POOLS, fieldSelector=f"metadata.name={name}", timeoutSeconds=10)
    first = next(events)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", name)


def test_the_time_is_over(api: Api, other: Api) -> None:
    query = {"resourceVersion": _now(api), "timeoutSeconds": 1}
    assert list(other.watch(POOLS, **query)) == []
    assert other.get(POOLS).status == 200


def test_a_bookmark_has_only_a_version(api: Api, other: Api, cluster: Cluster, name: str) -> None:
    """None is promised: 1.20 sends one a minute, so that there may be none in this time."""
    since = _now(api)
    api.call("POST", POOLS, pool(name))
    query = {"resourceVersion": since, "timeoutSeconds": 1, "fieldSelector": "metadata.name=none"}
    events = list(other.watch(POOLS, allowWatchBookmarks="true", **query))
    assert events or not isinstance(cluster, FakeCluster)
    for event in events:
        assert event["type"] == "BOOKMARK"
        assert int(event["object"]["metadata"]["resourceVersion"]) >= int(since)
        assert "spec" not in event["object"]


def test_a_forgotten_version_is_an_error_event(api: Api, other: Api, cluster: Cluster) -> None:
    cluster.forget()
    events = list(other.watch(POOLS, resourceVersion="1", timeoutSeconds=5))
    (error,) = events
    assert error["type"] == "ERROR"
    status = error["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")


def test_entering_and_leaving_a_selection(api: Api, other: Api, name: str) -> None:
    since, path = _now(api), f"{POOLS}/{name}"
    api.call("POST", POOLS, pool(name))
    for value in (name, "other"):
        patch = {"metadata": {"labels": {"of": value}}}
        answer = api.call("PATCH", path, patch, content_type=MERGE)
    query = {"labelSelector": f"of={name}", "resourceVersion": since, "timeoutSeconds": 10}
    events = other.watch(POOLS, **query)
    entered, gone = next(events), next(events)
    assert (entered["type"], gone["type"]) == ("ADDED", "DELETED")
    assert gone["object"]["metadata"]["resourceVersion"] == answer.version
    assert gone["object"]["metadata"]["labels"] == {"of": name}


def test_events_are_in_the_version_that_is_watched(api: Api, other: Api, name: str) -> None:
    since = _now(api)
    ranges = [{"cidr": "10.0.0.0/16"}]
    api.call("POST", POOLS, pool(name, pool=ranges))
    event = next(other.watch(OLD_POOLS, resourceVersion=since, timeoutSeconds=10))
    assert event["object"]["apiVersion"] == "cilium.io/v2alpha1"
    assert "pool" not in event["object"]["spec"]["ipv4"]


def test_a_finalizer_is_seen_as_a_change_then_a_deletion(api: Api, other: Api, name: str) -> None:
    item = pool(name)
    item["metadata"]["finalizers"] = ["example.org/a"]
    since = api.call("POST", POOLS, item).version
    api.call("DELETE", f"{POOLS}/{name}")
    free = {"metadata": {"finalizers": None}}
    api.call("PATCH", f"{POOLS}/{name}", free, content_type=MERGE)
    events = other.watch(POOLS, resourceVersion=since, timeoutSeconds=10)
    marked, gone = next(events), next(events)
    assert (marked["type"], gone["type"]) == ("MODIFIED", "DELETED")
    assert marked["object"]["metadata"]["deletionTimestamp"]


def test_a_write_without_a_change_makes_no_event(api: Api, other: Api, name: str) -> None:
    since = api.apply(POOLS, pool(name), "us").version
    api.apply(POOLS, pool(name), "us")
    api.call("POST", POOLS, pool(f"{name}-b"))
    event = next(other.watch(POOLS, resourceVersion=since, timeoutSeconds=10))
    assert event["object"]["metadata"]["name"] == f"{name}-b"
