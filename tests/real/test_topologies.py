"""Every kind of cluster is healthy: with Cilium in each of its versions or without, with
OVN-Kubernetes and KubeVirt or without, with the groups of OpenShift or without, observed and managed.

A second full pass writes nothing, neither to the cluster nor to the register.
"""

import itertools
from typing import Any

import pytest
from django.urls import reverse

from pools.clusters.reconcile import registry
from pools.models import Block, Connection, Event, Finding, ObservedObject
from tests import commands, eventually, people
from tests.claims.networks.ovn import cudn
from tests.edges import api as apis
from tests.kube import gateways
from tests.kube.real import RealCluster
from tests.real import sites
from tests.reconcile import small

pytestmark = pytest.mark.django_db
CILIUM = {
    "v2": ("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes"),
    "v2alpha1": ("cilium.io_ciliumpodippools.v2alpha1", "cilium.io_ciliumnodes"),
    "proposal": ("cilium.io_ciliumpodippools.v2-proposal", "cilium.io_ciliumnodes"),
    "no-cilium": (),
}
OVN = {"ovn": (*sites.OVN, *sites.KUBEVIRT), "no-ovn": ()}
OPENSHIFT = {"openshift": ("user.openshift.io_groups",), "no-openshift": ()}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOPOLOGIES = list(itertools.product(CILIUM, OVN, OPENSHIFT))


def _objects(kube: RealCluster, definitions: tuple[str, ...]) -> None:
    """What such a cluster holds: a pool and a node, a network and its NAD, a group."""
    if any("ciliumpodippools" in name for name in definitions):
        version = "v2alpha1" if any(name.endswith("v2alpha1") for name in definitions) else "v2"
        pool = gateways.pool("green", "10.20.0.0/16")
        if any(name.endswith("proposal") for name in definitions):
            pool["spec"]["ipv4"]["cidrs"] = [{"cidr": "10.20.0.0/16"}]
        kube.put(pool | {"apiVersion": f"cilium.io/{version}"})
        kube.put(
            {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumNode",
                "metadata": {"name": "worker-1"},
                "spec": {"ipam": {"pools": {"requested": []}}},
            }
        )
    if set(sites.OVN) <= {*definitions}:
        kube.put(cudn("prod", "10.128.0.0/16"))
    if "user.openshift.io_groups" in definitions:
        group = {"kind": "Group", "metadata": {"name": "team"}, "users": ["ada"]}
        kube.put({"apiVersion": "user.openshift.io/v1", **group})


def _versions(kube: RealCluster) -> dict[str, str]:
    """The resourceVersion of each custom object, by kind and name."""
    versions = {}
    for definition in kube.objects("customresourcedefinitions"):
        names = definition["spec"]["names"]
        for stored in kube.objects(f"{names['plural']}.{definition['spec']['group']}"):
            metadata = stored["metadata"]
            versions[f"{names['kind']} {metadata['name']}"] = metadata["resourceVersion"]
    return versions


def _reconcile() -> str:
    """Exit status 0, or CommandError."""
    return commands.output("reconcile", "prod")


def _connect(kube: RealCluster, *managed_resources: str) -> None:
    api = apis.Api()
    api.cluster()
    body: dict[str, Any] = {"kubeconfig": kube.kubeconfig(), "mode": "observed"}
    if managed_resources:
        body |= {"mode": "managed", "managed_resources": list(managed_resources)}
    answer = api("PUT", "clusters/prod/connection/", body)
    assert answer.status_code == 201, answer.content


def _state() -> tuple[str, str]:
    answer = apis.Api()("GET", "clusters/prod/connection/").json()
    return answer["state"], answer["message"]


@pytest.mark.parametrize("mode", ["observed", "managed"])
@pytest.mark.parametrize(
    ("cilium", "ovn", "openshift"), TOPOLOGIES, ids=["-".join(topology) for topology in TOPOLOGIES]
)
def test_a_cluster_of_any_kind_is_healthy(
    kube: RealCluster, cilium: str, ovn: str, openshift: str, mode: str
) -> None:
    definitions = (*CILIUM[cilium], *OVN[ovn], *OPENSHIFT[openshift])
    kube.anew(*definitions)
    _objects(kube, definitions)
    managed_resources = [
        *(["pools", "pod-cidrs"] if CILIUM[cilium] else []),
        *(["claims"] if OVN[ovn] else []),
    ]
    _connect(kube, *(managed_resources if mode == "managed" else []))

    tested = apis.Api()("POST", "clusters/prod/connection/test/", {}).json()
    assert tested["succeeded"], tested
    _reconcile()
    _reconcile()
    before = _versions(kube), Event.objects.count(), Connection.objects.values("served").get()
    _reconcile()
    after = _versions(kube), Event.objects.count(), Connection.objects.values("served").get()
    assert after == before
    assert _state() == ("healthy", "The last full sync succeeded.")
    assert not Finding.objects.filter(code="kind_not_served").exists()

    shows = apis.Api()("GET", "clusters/prod/connection/").json()["shows"]
    page = people.browser().get(reverse("admin:pools_cluster_change", args=[_cluster()]))
    assert shows in page.content.decode()
    for subject, is_shown in (
        ("pod pools", bool(CILIUM[cilium])),
        ("VM networks", bool(OVN[ovn])),
        ("VM owners", bool(OVN[ovn])),
    ):
        assert (f"{subject} (" in shows) == is_shown, shows
    if not definitions or definitions == OPENSHIFT["openshift"]:
        # A release that has ServiceCIDRs itself always serves one.
        starts = ("The cluster serves none of the kinds", "Shown: Service CIDRs (")
        assert shows.startswith(starts)


def _cluster() -> int:
    return Connection.objects.get().cluster_id


@pytest.mark.parametrize(
    ("managed_resource", "kind"),
    [
        ("pools", "CiliumPodIPPool"),
        ("pod-cidrs", "CiliumNode"),
        ("claims", "IPAMClaim"),
        ("ippool-status", "IPPool"),
        ("conversion", "CiliumPodIPPool"),
    ],
)
def test_a_kind_that_a_switch_needs_is_a_fault(
    kube: RealCluster, managed_resource: str, kind: str
) -> None:
    kube.anew()
    _connect(kube, managed_resource)
    with pytest.raises(Exception, match=f'does not serve {kind}, but "{managed_resource}"'):
        _reconcile()
    state, message = _state()
    assert state == "crd-missing"
    assert f"install the CRD of {kind}, or switch it off" in message
    tested = apis.Api()("POST", "clusters/prod/connection/test/", {}).json()
    assert not tested["succeeded"]
    assert (
        apis.Api()("PATCH", "clusters/prod/connection/", {"managed_resources": []}).status_code
        == 200
    )
    _reconcile()
    assert _state()[0] == "healthy"


HALVES = {
    "only NADs": ("k8s.cni.cncf.io_network-attachment-definitions",),
    "only claims": ("k8s.cni.cncf.io_ipamclaims",),
    "KubeVirt without networks": sites.KUBEVIRT,
    "pools without nodes": ("cilium.io_ciliumpodippools.v2",),
    "nodes without pools": ("cilium.io_ciliumnodes",),
    "UDNs without NADs": sites.OVN[:2],
}


@pytest.mark.parametrize("half", HALVES)
def test_half_of_a_project_is_healthy_too(kube: RealCluster, half: str) -> None:
    kube.anew(*HALVES[half])
    _connect(kube)
    _reconcile()
    assert _state() == ("healthy", "The last full sync succeeded.")


def test_a_kind_that_is_gone_is_a_finding_and_releases_nothing(kube: RealCluster) -> None:
    kube.anew(*CILIUM["v2"])
    _objects(kube, CILIUM["v2"])
    _connect(kube)
    _reconcile()
    kube.undefine("ciliumpodippools.cilium.io")
    # Until then the server lists a version that it does not answer for, which is a fault.
    kube.await_unserved("cilium.io", "ciliumpodippools")
    for _ in range(3):
        _reconcile()
    finding = Finding.objects.get(code="kind_not_served")
    assert (
        "no longer serves CiliumPodIPPool. The observed objects stay (1 object)" in finding.message
    )
    assert ObservedObject.objects.get(kind="CiliumPodIPPool").missed_at is None
    assert apis.Api()("GET", "pools/?cluster=prod").json()["results"][0]["name"] == "green"
    assert _state()[0] == "healthy"
    kube.crds(*CILIUM["v2"])
    _objects(kube, CILIUM["v2"])
    _reconcile()
    assert not Finding.objects.filter(code="kind_not_served").exists()
    assert "pod pools (" in apis.Api()("GET", "clusters/prod/connection/").json()["shows"]


def test_what_goes_with_its_definition_is_not_released(kube: RealCluster) -> None:
    """A watch reports each node as deleted while the server deletes the definition; the nodes go on with their blocks."""
    kube.anew(*CILIUM["v2"])
    kube.put(gateways.pool("green", "10.20.0.0/16"))
    blocks = {"pools": {"allocated": [{"pool": "green", "cidrs": ["10.20.0.0/24"]}]}}
    node = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "spec": {"ipam": blocks}}
    deleted = kube.put(node | {"metadata": {"name": "worker-1"}})
    # One that stays for a while keeps the server at it.
    kube.put(
        node | {"metadata": {"name": "worker-2", "finalizers": ["example.org/slow"]}, "spec": {}}
    )
    connection = sites.connect(kube)
    assert sites.reconcile(connection, kube).succeeded
    kube.request("DELETE", f"{DEFINITIONS}/ciliumnodes.cilium.io")
    with gateways.to(kube) as gateway:
        eventually.until(lambda: not gateway.can_create(gateways.NODES))
    run = small.ingest(
        connection,
        "CiliumNode",
        registry.HANDLERS,
        ("DELETED", deleted),
        open_client=lambda _: gateways.to(kube),
    )
    assert run.kinds["CiliumNode"]["code"] == "crd_missing"
    eventually.until(lambda: len(kube.objects("ciliumnodes.cilium.io")) == 1)
    assert sites.reconcile(connection, kube).kinds["CiliumNode"]["code"] == "crd_missing"
    assert not ObservedObject.objects.exclude(missed_at=None).exists()
    assert Block.objects.get(state="held").holder_id == "worker-1"
    kube.remove("ciliumnodes.cilium.io", "worker-2")
    kube.await_unserved("cilium.io", "ciliumnodes")
    assert not sites.reconcile(connection, kube).error_code
    assert Finding.objects.get(code="kind_not_served").subject == "CiliumNode"
    assert Block.objects.get(state="held").holder_id == "worker-1"


def test_a_definition_that_comes_later_is_read(kube: RealCluster) -> None:
    kube.anew()
    _connect(kube)
    _reconcile()
    kube.crds(*CILIUM["v2"])
    _objects(kube, CILIUM["v2"])
    _reconcile()
    assert apis.Api()("GET", "pools/?cluster=prod").json()["results"][0]["name"] == "green"


def test_an_aggregated_api_that_is_down_hides_no_other_kind(kube: RealCluster) -> None:
    """OpenShift's groups are served by a server of their own; unknown is not absent."""
    kube.anew(*CILIUM["v2"], *sites.OVN)
    _objects(kube, CILIUM["v2"])
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.user.openshift.io"},
        "spec": {
            "group": "user.openshift.io", "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "insecureSkipTLSVerify": True,
            "service": {"name": "nobody", "namespace": "default"},
        },
    }  # fmt: skip
    kube.put(service)
    try:
        _connect(kube)
        with pytest.raises(Exception, match="cluster_server_error"):
            _reconcile()
        assert _state()[0] == "failing"
        assert apis.Api()("GET", "pools/?cluster=prod").json()["results"][0]["name"] == "green"
    finally:
        kube.remove("apiservices", "v1.user.openshift.io")


def test_healthy_is_not_said_while_runs_fail(kube: RealCluster) -> None:
    """One object that cannot be taken in: all others are, and each run says that it failed."""
    kube.anew(*CILIUM["v2"])
    _objects(kube, CILIUM["v2"])
    _connect(kube)
    _reconcile()
    overlapping = gateways.pool("red", "10.20.7.0/24")
    kube.put(overlapping)
    for _ in range(2):
        with pytest.raises(Exception, match="objects failed: CiliumPodIPPool 1"):
            _reconcile()
    state, message = _state()
    assert state == "incomplete"
    assert "succeeded" not in message
    kube.remove("ciliumpodippools.cilium.io", "red")
    _reconcile()
    _reconcile()
    assert _state()[0] == "healthy"
