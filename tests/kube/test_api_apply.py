"""Server-side apply; and watch: events, versions, bookmarks, the end."""

from collections.abc import Iterator

import pytest

from tests.kube.api import CLAIMS, MERGE, OLD_POOLS, POOLS, Api, Cluster, claim, pool
from tests.kube.fake import FakeCluster


def test_the_applier_owns_what_it_lists_and_no_default(api: Api, name: str) -> None:
    stored = api.apply(POOLS, pool(name), "us").json
    (entry,) = stored["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("us", "Apply")
    assert entry["fieldsV1"] == {"f:spec": {"f:ipv4": {"f:cidrs": {}, "f:maskSize": {}}}}
    assert stored["spec"]["allowFirstIP"] is False


def test_an_update_owns_what_it_creates(api: Api, name: str) -> None:
    stored = api.call("POST", POOLS, pool(name), fieldManager="them").json
    (entry,) = stored["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("them", "Update")
    assert entry["fieldsV1"]["f:spec"]["f:ipv4"] == {".": {}, "f:cidrs": {}, "f:maskSize": {}}
    assert "f:allowFirstIP" in entry["fieldsV1"]["f:spec"]


def test_a_field_that_an_update_set_is_a_conflict_too(api: Api, name: str) -> None:
    api.call("POST", POOLS, pool(name), fieldManager="kubectl")
    refused = api.apply(POOLS, pool(name, "10.1.0.0/16"), "us")
    assert refused.status == 409
    assert refused.causes == {".spec.ipv4.cidrs": "FieldManagerConflict"}
    assert 'conflict with "kubectl" using cilium.io/v2' in refused.json["message"]


def test_an_update_takes_a_field_from_its_applier(api: Api, name: str) -> None:
    api.apply(POOLS, pool(name), "us")
    drift = {"spec": {"ipv4": {"maskSize": 25}}}
    path = f"{POOLS}/{name}"
    drifted = api.call("PATCH", path, drift, content_type=MERGE, fieldManager="kubectl").json
    owned = {
        managed_field["manager"]: managed_field["fieldsV1"]
        for managed_field in drifted["metadata"]["managedFields"]
    }
    assert owned["us"] == {"f:spec": {"f:ipv4": {"f:cidrs": {}}}}
    refused = api.apply(POOLS, pool(name), "us")
    assert (refused.status, list(refused.causes)) == (409, [".spec.ipv4.maskSize"])


def test_force_takes_the_field(api: Api, name: str) -> None:
    api.apply(POOLS, pool(name), "them")
    forced = api.apply(POOLS, pool(name, mask=25), "us", force="true")
    assert (forced.status, forced.json["spec"]["ipv4"]["maskSize"]) == (200, 25)
    owned = {
        managed_field["manager"]: managed_field["fieldsV1"]
        for managed_field in forced.json["metadata"]["managedFields"]
    }
    assert owned["them"] == {"f:spec": {"f:ipv4": {"f:cidrs": {}}}}
    assert api.apply(POOLS, pool(name, mask=24), "them").status == 409


def test_an_applier_has_one_entry_over_versions(api: Api, name: str) -> None:
    api.apply(OLD_POOLS, pool(name) | {"apiVersion": "cilium.io/v2alpha1"}, "us")
    changed = api.apply(POOLS, pool(name, mask=25), "us")
    assert changed.status == 200
    (entry,) = changed.json["metadata"]["managedFields"]
    assert entry["apiVersion"] == "cilium.io/v2"


def test_equal_values_are_owned_by_both_and_stay_when_one_leaves(api: Api, name: str) -> None:
    labelled = pool(name)
    labelled["metadata"]["labels"] = {"team": "a"}
    api.apply(POOLS, labelled, "them")
    assert api.apply(POOLS, labelled, "us").status == 200
    remaining = api.apply(POOLS, pool(name), "us").json
    assert remaining["metadata"]["labels"] == {"team": "a"}
    assert not api.apply(POOLS, pool(name), "them").json["metadata"].get("labels")


def test_a_field_that_is_no_longer_applied_is_removed(api: Api, name: str) -> None:
    both = pool(name)
    both["spec"]["allowLastIP"] = True
    both["metadata"]["annotations"] = {"ours": "1"}
    api.apply(POOLS, both, "us")
    changed = api.apply(POOLS, pool(name), "us").json
    assert changed["spec"]["allowLastIP"] is False
    assert not changed["metadata"].get("annotations")


def test_removing_all_of_an_inner_object_leaves_null_which_is_invalid(api: Api, name: str) -> None:
    """A family cannot be taken from a pool by applying without it; a merge patch can do that."""
    both = pool(name)
    both["spec"]["ipv6"] = {"cidrs": ["fd00::/48"], "maskSize": 64}
    api.apply(POOLS, both, "us")
    refused = api.apply(POOLS, pool(name), "us")
    if refused.status == 200:  # a newer release leaves the null out
        assert "ipv6" not in refused.json["spec"]
        return
    assert (refused.status, list(refused.causes)) == (422, ["spec.ipv6"])
    patched = api.call(
        "PATCH", f"{POOLS}/{name}", {"spec": {"ipv6": None}}, content_type=MERGE
    ).json
    assert "ipv6" not in patched["spec"]
    assert api.apply(POOLS, pool(name), "us").status == 200


def _with_ranges(name: str, *cidrs: str) -> dict[str, object]:
    ranges = [{"start": "10.0.0.1", "end": "10.0.0.9"}]
    return pool(name, pool=[{"cidr": cidr, "reservedRanges": ranges} for cidr in cidrs])


def test_a_list_of_items_with_keys_is_shared(api: Api, name: str) -> None:
    api.apply(POOLS, _with_ranges(name, "10.0.0.0/16"), "us")
    both = api.apply(POOLS, _with_ranges(name, "10.1.0.0/16"), "them").json
    assert {item["cidr"] for item in both["spec"]["ipv4"]["pool"]} == {"10.0.0.0/16", "10.1.0.0/16"}
    remaining = api.apply(POOLS, pool(name), "us").json
    assert [item["cidr"] for item in remaining["spec"]["ipv4"]["pool"]] == ["10.1.0.0/16"]


def test_the_conflict_names_the_item(api: Api, name: str) -> None:
    api.apply(POOLS, _with_ranges(name, "10.0.0.0/16"), "them")
    other = pool(name, pool=[{"cidr": "10.0.0.0/16", "reservedRanges": []}])
    refused = api.apply(POOLS, other, "us")
    assert list(refused.causes) == ['.spec.ipv4.pool[cidr="10.0.0.0/16"].reservedRanges']


@pytest.mark.parametrize(
    ("query", "status"), [({}, 200), ({"manager": "us"}, 409)], ids=["two names", "one name"]
)
def test_status_and_spec_of_one_manager(
    api: Api, cluster: Cluster, name: str, query: dict[str, str], status: int
) -> None:
    """Before 1.22 one manager name for both loses the ownership of the spec; two names do not."""
    api.apply(CLAIMS, claim(name), "us")
    manager = query.get("manager", "us-status")
    body = claim(name, status={"ips": ["10.0.0.1/24"]})
    body.pop("spec")
    assert api.apply(CLAIMS + "/status", body, manager).json["status"] == {"ips": ["10.0.0.1/24"]}
    other = claim(name, spec={"network": "tenant", "interface": "net2"})
    refused = api.apply(CLAIMS, other, "them")
    stored = cluster.minor >= 22 or status == 200
    assert refused.status == (409 if stored else 200)


def test_a_stale_resource_version_is_a_conflict(api: Api, name: str) -> None:
    first = api.apply(POOLS, pool(name), "us").version
    api.apply(POOLS, pool(name, mask=25), "us")
    stale = pool(name, mask=26)
    stale["metadata"]["resourceVersion"] = first
    refused = api.apply(POOLS, stale, "us")
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert "causes" not in refused.json.get("details", {})


@pytest.fixture
def other(cluster: Cluster) -> Iterator[Api]:
    """Another connection: one that watches does nothing else."""
    connected = Api(cluster)
    yield connected
    connected.close()


def _now(api: Api) -> str:
    return api.get(POOLS, limit=1).version


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
