"""A network's page and REST say which RouteAdvertisements of the cluster select it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from claims.models import Network
from pools.models import ObservedObject
from tests import people
from tests.claims.networks.ovn import cudn
from tests.edges import api as apis
from tests.kube.real import RealCluster

pytestmark = pytest.mark.django_db
DEFINITIONS = (
    "cilium.io_ciliumpodippools.v2",
    "cilium.io_ciliumnodes",
    "k8s.ovn.org_clusteruserdefinednetworks",
    "k8s.ovn.org_userdefinednetworks",
    "k8s.cni.cncf.io_network-attachment-definitions",
)
SERVED = "k8s.ovn.org_routeadvertisements"


def _advertisements(
    name: str, selector: dict[str, Any], *advertised: str, kind: str = "ClusterUserDefinedNetworks"
) -> dict[str, Any]:
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {},
            "frrConfigurationSelector": {},
            "advertisements": list(advertised or ("PodNetwork",)),
            "networkSelectors": [
                {
                    "networkSelectionType": kind,
                    "clusterUserDefinedNetworkSelector": {"networkSelector": selector},
                }
            ],
        },
    }


def _network(name: str, subnet: str, **labels: str) -> dict[str, Any]:
    manifest = copy.deepcopy(cudn(name, subnet))
    manifest["metadata"]["labels"] = labels
    return manifest


def _announced(name: str) -> Any:
    networks = apis.Api()("GET", "networks/").json()["results"]
    network = next(item for item in networks if item["name"] == f"cluster_udn_{name}")
    detail = apis.Api()("GET", f"networks/{network['id']}/").json()
    assert detail["route_advertisements"] == network["route_advertisements"]
    return detail["route_advertisements"]


def _page(name: str) -> str:
    network = Network.objects.get(name=f"cluster_udn_{name}")
    answer = people.browser().get(reverse("admin:claims_network_change", args=[network.pk]))
    return str(answer.content.decode())


def _reconcile() -> None:
    call_command("reconcile", "prod")


@pytest.fixture(autouse=True)
def _networks(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    """Two networks in an observed cluster; only `prod` has the label `advertise`."""
    kube.anew(*DEFINITIONS)
    kubectl("apply", "-f", "-", manifest=_network("prod", "10.128.0.0/16", advertise="true"))
    kubectl("apply", "-f", "-", manifest=_network("test", "10.129.0.0/16"))
    api = apis.Api()
    api.cluster()
    body = {"kubeconfig": kube.kubeconfig()}
    assert api("PUT", "clusters/prod/connection/", body).status_code == 201


def test_a_cluster_that_serves_none() -> None:
    _reconcile()
    assert _announced("prod") is None
    assert "RouteAdvertisements cannot be read from the cluster" in _page("prod")


def test_networks_are_selected_by_label(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    kube.crds(SERVED)
    only = {"matchLabels": {"advertise": "true"}}
    for manifest in (
        _advertisements("cudns", only),
        _advertisements("egress", {}, "EgressIP"),
        _advertisements("default", {}, kind="DefaultNetwork"),
    ):
        kubectl("apply", "-f", "-", manifest=manifest)
    _reconcile()
    assert _announced("prod") == [{"name": "cudns", "accepted": None}]
    assert _announced("test") == []
    assert "status unknown" in _page("prod")
    assert "no RouteAdvertisements selects this network" in _page("test")


def test_acceptance_labels_and_deletion_are_followed(
    kube: RealCluster, kubectl: Callable[..., str]
) -> None:
    kube.crds(SERVED)
    condition = {
        "type": "Accepted", "status": "False", "reason": "ConfigurationError",
        "message": "no FRRConfiguration selected", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    kube.put(_advertisements("all", {}) | {"status": {"conditions": [condition]}})
    _reconcile()
    assert _announced("test") == [{"name": "all", "accepted": False}]
    assert "no FRRConfiguration selected" in _page("test")
    kube.put(
        _advertisements("all", {}) | {"status": {"conditions": [condition | {"status": "True"}]}}
    )
    _reconcile()
    assert _announced("test") == [{"name": "all", "accepted": True}]
    kube.put(_advertisements("all", {"matchLabels": {"advertise": "true"}}))
    _reconcile()
    assert _announced("test") == []
    assert [item["name"] for item in _announced("prod")] == ["all"]


def test_one_that_cannot_be_read_hides_no_other(
    kube: RealCluster, kubectl: Callable[..., str]
) -> None:
    kube.crds(SERVED)
    broken = _advertisements("broken", {})
    broken["spec"]["networkSelectors"][0]["clusterUserDefinedNetworkSelector"] = "all"
    for manifest in (broken, _advertisements("good", {})):
        kubectl("apply", "-f", "-", manifest=manifest)
    with pytest.raises(CommandError):
        _reconcile()
    assert [item["name"] for item in _announced("prod")] == ["good"]
    broken_objects = ObservedObject.objects.exclude(problem_code="")
    assert list(broken_objects.values_list("name", flat=True)) == ["broken"]
