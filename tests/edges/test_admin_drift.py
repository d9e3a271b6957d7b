"""Drift, objects, findings, sync runs and nodes in the admin: lists, filters, decisions."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import Cluster, Connection, Drift, Finding, Now, ObservedObject, SyncRun
from pools.platform.conditions import evaluation
from tests import factories, people

EVIL = '<img src=x onerror="alert(1)">'
LISTS = ("drift", "observedobject", "finding", "syncrun", "cluster")


@pytest.fixture
def cluster() -> Cluster:
    """Connected, with two differences of one pool, a node with a problem, findings, passes."""
    cluster = factories.cluster()
    Connection.objects.create(
        cluster=cluster, server="https://10.1.2.3:6443", sealed="", due_at=Now(),
        mode="managed", managed_resources=["pools"],
    )  # fmt: skip
    for path, observed in (("spec.ipv4.cidrs", ["10.0.0.0/16", EVIL]), ("spec.ipv4.maskSize", 25)):
        Drift.objects.create(
            cluster=cluster, kind="CiliumPodIPPool", name="green", path=path, desired=24,
            observed=observed, managers=[EVIL], conflict=EVIL, since=Now(),
        )  # fmt: skip
    ObservedObject.objects.create(
        cluster=cluster, kind="CiliumNode", name="node-a", uid="u", resource_version="1",
        manifest={"metadata": {"name": EVIL}}, problem_code="cidr", problem=EVIL,
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    Finding.objects.create(
        cluster=cluster, kind="CiliumNode", code="overlap", subject=EVIL, severity="error",
        message=EVIL, since=Now(),
    )  # fmt: skip
    for succeeded in (True, False):
        SyncRun.objects.create(
            cluster=cluster, trigger="schedule", started_at=Now(), ended_at=Now(),
            succeeded=succeeded, kinds={EVIL: {"seen": 3, "message": EVIL}},
            error_code="" if succeeded else "x", error=EVIL,
        )  # fmt: skip
    return cluster


def _pages(cluster: Cluster) -> list[str]:
    pages = [reverse(f"admin:pools_{name}_changelist") for name in LISTS]
    pages += [
        reverse(f"admin:pools_{row._meta.model_name}_change", args=[row.pk])
        for model in (Drift, ObservedObject, Finding, SyncRun, Cluster)
        for row in model.objects.all()
    ]
    ids = Drift.objects.values_list("pk", flat=True)
    for verb in ("apply", "adopt", "ignore", "unignore"):
        pages.append(reverse("admin:pools_drift_settle", query={"verb": verb, "id": list(ids)}))
    pages += [
        reverse("admin:nodes"),
        reverse("admin:nodes", query={"cluster": cluster.pk, "q": EVIL}),
    ]
    return [*pages, reverse("admin:index")]


@pytest.mark.exhaustive
def test_every_page_answers_and_escapes_what_clusters_say(cluster: Cluster) -> None:
    client = people.browser()
    for page in _pages(cluster):
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert EVIL not in answer.content.decode(), page


def test_the_plan_of_an_object_lists_its_differences_and_decisions(cluster: Cluster) -> None:
    first = Drift.objects.filter(cluster=cluster).earliest("pk")
    page = people.browser().get(reverse("admin:pools_drift_change", args=[first.pk]))
    text = page.content.decode()
    for part in ("spec.ipv4.cidrs", "spec.ipv4.maskSize", "2 fields differ", 'value="ignore"'):
        assert part in text


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "query", "count"),
    [
        ("drift", "state=conflict", 2), ("drift", "state=ignored", 0), ("drift", "q=maskSize", 1),
        ("observedobject", "state=problem", 1), ("observedobject", "state=missed", 0),
        ("observedobject", "q=node", 1), ("finding", "severity=error", 1),
        ("finding", "severity=warning", 0), ("syncrun", "outcome=failed", 1), ("syncrun", "cluster=0", 0),
    ],
)  # fmt: skip
def test_filters(cluster: Cluster, name: str, query: str, count: int) -> None:
    page = reverse(f"admin:pools_{name}_changelist") + f"?{query}"
    assert len(people.browser().get(page).context["cl"].result_list) == count


def _settle(verb: str, *, client: Any = None, **data: Any) -> Any:
    ids = list(Drift.objects.values_list("pk", flat=True))
    client = client or people.browser()
    return client.post(
        reverse("admin:pools_drift_settle"), {"verb": verb, "id": ids, **data}, follow=True
    )


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cluster")
def test_ignored_with_a_reason_and_heeded_again() -> None:
    answer = _settle("ignore")
    assert "cadastre/confirm.html" in [template.name for template in answer.templates]
    assert "reason" in answer.context["form"].errors
    evaluation.evaluate()
    front = people.browser().get(reverse("admin:index")).content.decode()
    assert "between the register and cluster" in front
    _settle("ignore", reason="known")
    assert set(Drift.objects.values_list("ignored_reason", flat=True)) == {"known"}
    evaluation.evaluate()
    front = people.browser().get(reverse("admin:index")).content.decode()
    assert "between the register and cluster" not in front
    _settle("unignore")
    assert not Drift.objects.exclude(ignored_at=None).exists()


@pytest.mark.usefixtures("cluster")
def test_applied_is_written_with_the_next_pass() -> None:
    Connection.objects.update(due_at="2099-01-01T00:00:00Z")
    page = _settle("apply").content.decode()
    assert "The next sync, which starts within seconds, writes" in page
    assert " is not written because " in page
    assert Connection.objects.get().due_at.year < 2099


@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_adopted_is_told() -> None:
    assert "The cluster has no CiliumPodIPPool green" in _settle("adopt").content.decode()
    assert Drift.objects.count() == 2


def test_settled_meanwhile() -> None:
    page = people.browser().post(
        reverse("admin:pools_drift_settle"), {"verb": "apply", "id": [1]}, follow=True
    )
    assert "These differences no longer exist" in page.content.decode()
    assert people.browser().get(reverse("admin:pools_drift_settle")).status_code == 404
