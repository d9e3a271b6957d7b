"""Manifests are shown with a result for each object first, then imported all or not at all."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import Cluster, Pool
from pools.register.demo import demo
from tests import factories, people

GREEN = demo.GREEN_POOL_V2.decode()
OVERLAPPING = GREEN.replace("green-pool", "red-pool")


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster()


def post(cluster: Cluster, **data: Any) -> Any:
    return people.browser().post(reverse("admin:import"), {"cluster": cluster.pk, **data})


def test_the_preview_changes_nothing_and_the_second_step_does(cluster: Cluster) -> None:
    answer = post(cluster, text=GREEN)
    assert [report.result for report in answer.context["reports"]] == ["created"]
    assert not Pool.objects.exists()
    assert GREEN.splitlines()[-1] in answer.context["text"]
    done = post(cluster, text=answer.context["text"], _commit="1")
    assert done.status_code == 302
    assert Pool.objects.get().name == "green-pool"
    again = post(cluster, text=GREEN)
    assert [report.result for report in again.context["reports"]] == ["unchanged"]


def test_one_refused_object_stops_all(cluster: Cluster) -> None:
    answer = post(cluster, text=f"{GREEN}---\n{OVERLAPPING}", _commit="1")
    reports = answer.context["reports"]
    assert [(report.name, report.result) for report in reports] == [
        ("green-pool", "created"),
        ("red-pool", "refused"),
    ]
    assert "overlaps" in answer.content.decode()
    assert "Not imported" in answer.content.decode()
    assert not Pool.objects.exists()
