"""What passes saw, found and would change, through REST: filters, pages, shapes."""

from __future__ import annotations

from typing import Any

import pytest

from pools.api import cluster_schema
from pools.models import Cluster, Drift, Finding, ObservedObject, Run
from pools.models.fields import Now
from tests.edges import api as apis

pytestmark = pytest.mark.django_db


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
            Run.objects.create(
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
    found = _found(api, f"objects/{query}")
    assert [one["name"] for one in found] == names
    for one in found:
        assert "manifest" not in one
        expected = {"code": "cidr", "message": "10.0.0.1/24 has host bits"}
        assert one["problem"] == (expected if one["name"] == "node-b" else None)


def test_one_object_has_its_manifest_and_belongs_to_its_cluster(api: apis.Api) -> None:
    found = _found(api, "objects/?name=green")[0]
    one = api("GET", f"clusters/prod/objects/{found['id']}/").json()
    assert one == {**found, "manifest": {"kind": "CiliumPodIPPool"}}
    apis.refused(api("GET", f"clusters/other/objects/{found['id']}/"), 404, "not_found")


def test_pages_of_objects(api: apis.Api) -> None:
    first = api("GET", "clusters/prod/objects/?ordering=name&limit=2").json()
    second = api("GET", first["next"].partition("/api/v1/")[2]).json()
    names = [one["name"] for one in first["results"] + second["results"]]
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
    found = _found(api, f"runs/{query}")
    assert [one["trigger"] for one in found] == triggers
    for one in found:
        failed = one["trigger"] == "schedule"
        error = {"code": "crd_missing", "message": "no such kind"} if failed else None
        assert (one["seconds"], one["error"]) == (0.0, error)
        assert one["kinds"] == {"CiliumNode": {"seen": 2}}


def test_findings_and_differences(api: apis.Api) -> None:
    assert [one["code"] for one in _found(api, "findings/?severity=warning")] == ["leak"]
    assert _found(api, "findings/?severity=error") == []
    (drift,) = _found(api, "drift/?ignored=false&conflict=false")
    assert (drift["desired"], drift["observed"]) == (["10.0.0.0/16"], None)
    assert (drift["ignored_by"], drift["managers"]) == (None, ["kubectl"])
    Drift.objects.update(ignored_by=api.user, ignored_at=Now(), ignored_reason="known")
    assert _found(api, "drift/?ignored=false") == []
    assert _found(api, "drift/?kind=CiliumPodIPPool")[0]["ignored_by"] == api.user.username


@pytest.mark.parametrize("part", ["runs", "objects", "findings", "drift"])
def test_the_description_names_every_field(api: apis.Api, part: str) -> None:
    fields = {
        "runs": cluster_schema.RUN_FIELDS,
        "objects": cluster_schema.OBJECT_FIELDS,
        "findings": cluster_schema.FINDING_FIELDS,
        "drift": cluster_schema.DRIFT_FIELDS,
    }[part]
    assert set(_found(api, f"{part}/")[0]) == set(fields)
    apis.refused(api("GET", f"clusters/nobody/{part}/"), 404, "not_found")
    apis.refused(api("GET", f"clusters/prod/{part}/?who=1"), 400, "unknown_parameter")
