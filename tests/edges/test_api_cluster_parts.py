"""What passes saw, found and would change, through REST: filters, pages, shapes."""

from typing import Any

import pytest
from django.urls import reverse

from pools.api.clusters import clusters, drift
from pools.models import Cluster, Connection, Drift, Finding, Now, ObservedObject, SyncRun
from tests import people
from tests.edges import api as apis


@pytest.fixture
def api() -> apis.Api:
    """Three objects, one with a problem; a finding, a difference, two passes; another cluster."""
    api = apis.Api()
    for name in ("prod", "other"):
        api.cluster(name)
        cluster = Cluster.objects.get(name=name)
        for kind, subject, code in (
            ("CiliumNode", "node-a", ""),
            ("CiliumNode", "node-b", "cidr"),
            ("CiliumPodIPPool", "green", ""),
        ):
            ObservedObject.objects.create(
                cluster=cluster, kind=kind, api_version="cilium.io/v2", name=subject,
                uid=f"{name}-{subject}", resource_version="7", manifest={"kind": kind},
                problem_code=code, problem=code and "10.0.0.1/24 has host bits", pending=bool(code),
                first_seen_at=Now(), changed_at=Now(),
            )  # fmt: skip
        Finding.objects.create(
            cluster=cluster, kind="CiliumNode", code="leak", subject="node-a", message="held",
            since=Now(),
        )  # fmt: skip
        Drift.objects.create(
            cluster=cluster, kind="CiliumPodIPPool", name="green", path="spec.ipv4.cidrs",
            desired=["10.0.0.0/16"], observed=None, managers=["kubectl"], since=Now(),
        )  # fmt: skip
        for trigger in ("schedule", "watch"):
            SyncRun.objects.create(
                cluster=cluster, trigger=trigger, started_at=Now(), ended_at=Now(),
                succeeded=trigger == "watch", kinds={"CiliumNode": {"seen": 2}},
                error_code="" if trigger == "watch" else "crd_missing", error="no such kind",
            )  # fmt: skip
    return api


def _found(api: apis.Api, path: str) -> list[dict[str, Any]]:
    answer = api("GET", f"clusters/prod/{path}")
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["node-a", "node-b", "green"]),
        ("?kind=CiliumNode", ["node-a", "node-b"]),
        ("?problem=true", ["node-b"]),
        ("?problem=false", ["node-a", "green"]),
        ("?name=green", ["green"]),
        ("?namespace=x", []),
        ("?ordering=-name&limit=1", ["green"]),
    ],
)
def test_objects(api: apis.Api, query: str, names: list[str]) -> None:
    result = _found(api, f"objects/{query}")
    assert [row["name"] for row in result] == names
    for item in result:
        assert "manifest" not in item
        expected = {"code": "cidr", "message": "10.0.0.1/24 has host bits"}
        assert item["problem"] == (expected if item["name"] == "node-b" else None)


def test_one_object_has_its_manifest_and_belongs_to_its_cluster(api: apis.Api) -> None:
    result = _found(api, "objects/?name=green")[0]
    answer = api("GET", f"clusters/prod/objects/{result['id']}/").json()
    assert answer == {**result, "manifest": {"kind": "CiliumPodIPPool"}}
    apis.refused(api("GET", f"clusters/other/objects/{result['id']}/"), 404, "not_found")


def test_an_object_is_shown_without_secrets(api: apis.Api) -> None:
    row = ObservedObject.objects.filter(cluster__name="prod", name="green").get()
    row.manifest = {
        "metadata": {"annotations": {"note": "password: hunter2-of-the-team"}},
        "status": {"failures": ["token=abcdef0123456789"]},
    }
    row.save()
    rest = api("GET", f"clusters/prod/objects/{row.pk}/").json()["manifest"]
    assert rest == {
        "metadata": {"annotations": {"note": "password: [redacted]"}},
        "status": {"failures": ["token=[redacted]"]},
    }
    browser = people.browser()
    page = browser.get(reverse("admin:pools_observedobject_change", args=[row.pk]))
    assert page.status_code == 200
    shown = page.content.decode()
    assert "hunter2" not in shown
    assert "abcdef0123456789" not in shown
    row.refresh_from_db()
    assert "hunter2" in str(row.manifest)  # what is written back is what was read


def test_pages_of_objects(api: apis.Api) -> None:
    first = api("GET", "clusters/prod/objects/?ordering=name&limit=2").json()
    second = api("GET", first["next"].partition("/api/v1/")[2]).json()
    names = [row["name"] for row in first["results"] + second["results"]]
    assert names == ["node-a", "node-b", "green"]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("query", "triggers"),
    [
        ("", ["watch", "schedule"]),
        ("?succeeded=false", ["schedule"]),
        ("?trigger=watch", ["watch"]),
        ("?ordering=id", ["schedule", "watch"]),
    ],
)
def test_passes(api: apis.Api, query: str, triggers: list[str]) -> None:
    result = _found(api, f"runs/{query}")
    assert [row["trigger"] for row in result] == triggers
    for item in result:
        failed = item["trigger"] == "schedule"
        error = {"code": "crd_missing", "message": "no such kind"} if failed else None
        assert (item["seconds"], item["error"]) == (0.0, error)
        assert item["kinds"] == {"CiliumNode": {"seen": 2}}


def test_findings_and_differences(api: apis.Api) -> None:
    assert [item["code"] for item in _found(api, "findings/?severity=warning")] == ["leak"]
    assert _found(api, "findings/?severity=error") == []
    (drift,) = _found(api, "drift/?ignored=false&conflict=false")
    assert (drift["desired"], drift["observed"]) == (["10.0.0.0/16"], None)
    assert (drift["ignored_by"], drift["managers"]) == (None, ["kubectl"])
    Drift.objects.update(ignored_by=api.user, ignored_at=Now(), ignored_reason="known")
    assert _found(api, "drift/?ignored=false") == []
    assert _found(api, "drift/?kind=CiliumPodIPPool")[0]["ignored_by"] == api.user.username


@pytest.mark.parametrize("part", ["runs", "objects", "findings", "drift"])
def test_the_description_names_every_field(api: apis.Api, part: str) -> None:
    serializer: Any = {
        "runs": clusters.RunSerializer,
        "objects": clusters.ObservedObjectSerializer,
        "findings": clusters.FindingSerializer,
        "drift": drift.DriftSerializer,
    }[part]
    assert set(_found(api, f"{part}/")[0]) == set(serializer().fields)
    apis.refused(api("GET", f"clusters/nobody/{part}/"), 404, "not_found")
    apis.refused(api("GET", f"clusters/prod/{part}/?who=1"), 400, "unknown_parameter")


def _decide(api: apis.Api, decision: str, body: Any = None) -> Any:
    (drift,) = _found(api, "drift/")
    return api("POST", f"clusters/prod/drift/{drift['id']}/{decision}/", body)


def test_a_difference_is_ignored_with_a_reason_and_unignored(api: apis.Api) -> None:
    apis.refused(_decide(api, "ignore", {}), 400, "object_expected")
    (difference,) = _decide(api, "ignore", {"reason": "known"}).json()["differences"]
    assert (difference["ignored_by"], difference["ignored_reason"]) == (api.user.username, "known")
    (difference,) = _decide(api, "unignore").json()["differences"]
    assert difference["ignored_at"] is None


def test_a_difference_is_applied_and_adopted(api: apis.Api) -> None:
    apis.refused(_decide(api, "apply"), 404, "not_found")  # it is not connected
    cluster = Cluster.objects.get(name="prod")
    Connection.objects.create(
        cluster=cluster,
        server="https://10.1.2.3",
        mode="managed",
        managed_resources=["pools"],
        due_at=Now(),
    )
    assert _decide(api, "apply").json() == {"pool_id": None, "differences": []}
    ObservedObject.objects.filter(cluster=cluster, name="green").update(manifest=GREEN)
    document = _decide(api, "adopt").json()
    assert document["differences"] == []
    pool = api("GET", f"pools/{document['pool_id']}/").json()
    assert pool["ipv4"]["cidrs"][0]["cidr"] == "10.9.0.0/16"
    assert _found(api, "drift/") == []  # adopted: nothing differs any more
    assert api("POST", "clusters/prod/drift/1/forget/").status_code == 404


GREEN = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumPodIPPool",
    "metadata": {"name": "green", "uid": "u"},
    "spec": {"ipv4": {"cidrs": ["10.9.0.0/16"], "maskSize": 24}},
}
NODE = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNode",
    "spec": {
        "ipam": {
            "pools": {
                "requested": [{"pool": "green", "needed": {"ipv4-addrs": 16}}],
                "allocated": [{"pool": "green", "cidrs": ["10.9.1.0/24"]}],
            }
        }
    },
}


def test_nodes_in_pages(api: apis.Api) -> None:
    rows = ObservedObject.objects.filter(cluster__name="prod", kind="CiliumNode")
    for row in rows:
        manifest = {**NODE, "metadata": {"name": row.name, "uid": row.uid}}
        ObservedObject.objects.filter(pk=row.pk).update(manifest=manifest)
    first = api("GET", "clusters/prod/nodes/?limit=1").json()
    second = api("GET", first["next"].partition("/api/v1/")[2]).json()
    back = api("GET", second["previous"].partition("/api/v1/")[2]).json()
    assert [item["name"] for item in first["results"] + second["results"]] == ["node-a", "node-b"]
    assert back["results"] == first["results"]
    (node,) = first["results"]
    (pool,) = node["pools"]
    assert (pool["needed"], pool["cidrs"]) == ({"ipv4": 16, "ipv6": 0}, ["10.9.1.0/24"])
    assert set(node) == set(drift.NodeSerializer().fields)
    assert [item["name"] for item in _found(api, "nodes/?name=node-b&ordering=-name")] == ["node-b"]
    assert _found(api, "nodes/?name=nobody") == []
