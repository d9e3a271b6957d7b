"""ServiceCIDRs that somebody applied to a real API server are read, found and never written."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import call_command

from tests.edges import api as apis
from tests.kube.real import RealCluster
from tests.observed import objects

pytestmark = pytest.mark.django_db
BUILT_IN_SINCE = 33


class _WithoutNetworking(RealCluster):
    """A server without its built-in group networking.k8s.io, of which a definition can be added then."""

    def _arguments(self, folder: pathlib.Path, etcd: int, port: int) -> list[str]:
        return [
            *super()._arguments(folder, etcd, port),
            "--runtime-config=networking.k8s.io/v1=false,networking.k8s.io/v1beta1=false",
            "--disable-admission-plugins=ServiceAccount,DefaultIngressClass",
        ]


@pytest.fixture
def kube(started_kube: RealCluster) -> Iterator[RealCluster]:
    """A server that has ServiceCIDRs: built in, or in older releases by a definition."""
    if started_kube.minor >= BUILT_IN_SINCE:
        yield started_kube
        return
    with _WithoutNetworking() as running:
        running.crds("networking.k8s.io_servicecidrs")
        yield running


def test_service_cidrs_are_read_and_never_written(
    kube: RealCluster, kubectl: Callable[..., str]
) -> None:
    api = apis.Api()
    api.cluster()
    body = {"kubeconfig": kube.kubeconfig()}
    assert api("PUT", "clusters/prod/connection/", body).status_code == 201

    def read() -> list[str]:
        call_command("reconcile", "prod")
        rows = api("GET", "observed-cidrs/?ordering=cidr&kind=ServiceCIDR&name=more").json()
        return [f"{row['cidr']} {row['role']}" for row in rows["results"]]

    kubectl("apply", "-f", "-", manifest=objects.service_cidr("10.112.0.0/16", name="more"))
    assert read() == ["10.112.0.0/16 services"]
    stored: dict[str, Any] = kube.object("servicecidrs.networking.k8s.io", "more")
    managers = {entry["manager"] for entry in stored["metadata"]["managedFields"]}
    assert managers == {"kubectl-client-side-apply"}
    observed = api("GET", "addresses/10.112.0.10/").json()["observed_cidrs"]
    assert [(row["cluster"], row["kind"], row["name"]) for row in observed] == [
        ("prod", "ServiceCIDR", "more")
    ]
    kubectl("delete", "servicecidr", "more")
    kubectl("apply", "-f", "-", manifest=objects.service_cidr("10.113.0.0/16", name="more"))
    assert read() == ["10.113.0.0/16 services"]
    assert read() == ["10.113.0.0/16 services"]
