"""What the fake API server applies, and the webhooks that it asks."""

import base64
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kube.api import CLAIMS, MERGE, OLD_POOLS, POOLS, Api, Cluster, claim, pool
from tests.kube.certificates import Authority
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


# --- Validating webhooks: by URL and CA, on every operation, with denials and warnings ------------
_NAME = "pools.test.example.org"
_KIND = "validatingwebhookconfigurations"


class Webhook:
    """Keeps the reviews that it was sent; `decide` gives a response."""

    def __init__(self) -> None:
        authority = Authority()
        self.ca = authority.pem
        self.reviews: list[dict[str, Any]] = []
        self.decide: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {"allowed": True}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = review["request"]
                outer.reviews.append(request)
                response = {"uid": request["uid"], **outer.decide(request)}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(review | {"response": response}).encode())

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.server().load_into(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/validate"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def configuration(self, policy: str = "Fail") -> dict[str, Any]:
        rule = {
            "apiGroups": ["cilium.io"],
            "apiVersions": ["v2"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["ciliumpodippools"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "test"},
            "webhooks": [
                {
                    "name": _NAME,
                    "clientConfig": {
                        "url": self.url,
                        "caBundle": base64.b64encode(self.ca.encode()).decode(),
                    },
                    "rules": [rule],
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": policy,
                    "timeoutSeconds": 5,
                }
            ],
        }


@pytest.fixture
def webhook(cluster: Cluster, api: Api) -> Iterator[Webhook]:
    started = Webhook()
    cluster.put(started.configuration())
    _until(lambda: _asked(api, started))
    started.reviews.clear()
    yield started
    cluster.remove(_KIND, "test")
    started.decide = lambda _: {"allowed": True}
    _until(lambda: not _asked(api, started))
    started.close()


def _until(condition: Callable[[], bool]) -> None:
    """A server learns of a configuration a moment after it was written."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until


def _asked(api: Api, webhook: Webhook) -> bool:
    webhook.reviews.clear()
    api.call("POST", POOLS, pool("probe"), dryRun="All")
    return bool(webhook.reviews)


def test_it_is_asked_with_both_objects(api: Api, webhook: Webhook, name: str) -> None:
    path = f"{POOLS}/{name}"
    api.apply(POOLS, pool(name), "us")
    api.apply(POOLS, pool(name, mask=25), "us")
    api.call("DELETE", path)
    create, update, delete = webhook.reviews
    assert [review["operation"] for review in webhook.reviews] == ["CREATE", "UPDATE", "DELETE"]
    assert create["oldObject"] is None
    assert create["object"]["spec"]["allowFirstIP"] is False
    assert update["oldObject"]["spec"]["ipv4"]["maskSize"] == 24
    assert update["object"]["spec"]["ipv4"]["maskSize"] == 25
    assert (delete["object"], delete["name"]) == (None, name)
    assert delete["oldObject"]["spec"]["ipv4"]["maskSize"] == 25
    assert create["kind"] == {"group": "cilium.io", "version": "v2", "kind": "CiliumPodIPPool"}
    assert create["userInfo"]["username"] == "admin"
    assert not create["dryRun"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_denial_tells_why(api: Api, webhook: Webhook, name: str, operation: str) -> None:
    if operation != "CREATE":
        api.apply(POOLS, pool(name), "us")
    status = {"code": 409, "message": "10.0.0.0/16 is in use by node n1"}
    webhook.decide = lambda _: {"allowed": False, "status": status}
    if operation == "DELETE":
        refused = api.call("DELETE", f"{POOLS}/{name}")
    else:
        refused = api.apply(POOLS, pool(name, mask=25), "us")
    assert refused.status == 409
    assert refused.json["message"] == (
        f'admission webhook "{_NAME}" denied the request: 10.0.0.0/16 is in use by node n1'
    )
    assert api.get(f"{POOLS}/{name}").status == (404 if operation == "CREATE" else 200)


def test_a_wrong_uid_is_a_failure(api: Api, webhook: Webhook, name: str) -> None:
    webhook.decide = lambda _: {"uid": "other", "allowed": True}
    refused = api.apply(POOLS, pool(name), "us")
    assert (refused.status, refused.reason) == (500, "InternalError")
    assert "failed calling webhook" in refused.json["message"]


def test_when_it_is_down_the_policy_decides(
    api: Api, cluster: Cluster, webhook: Webhook, name: str
) -> None:
    down = webhook.configuration()
    down["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:1/validate"
    cluster.put(down)
    _until(lambda: api.apply(POOLS, pool(name), "us", dryRun="All").status == 500)
    down["webhooks"][0]["failurePolicy"] = "Ignore"
    cluster.put(down)
    _until(lambda: api.apply(POOLS, pool(name), "us", dryRun="All").status == 201)
