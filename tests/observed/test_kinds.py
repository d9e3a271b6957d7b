"""Each kind is read where it is served, followed as it changes, and never written."""

from typing import Any

import pytest
from django.core.management import call_command

from pools.models import Connection, Finding, ObservedCIDR, ObservedObject
from tests.edges.api import Api
from tests.kube.fake import FakeCluster
from tests.kube.real import SERVICE_CIDR
from tests.observed import objects
from tests.observed.conftest import Prod

DEFINITIONS = (
    "cilium.io_ciliumnodes",
    "cilium.io_ciliumloadbalancerippools",
    "cilium.io_ciliumegressgatewaypolicies",
    "metallb.io_ipaddresspools",
    "k8s.ovn.org_egressips",
    "crd.projectcalico.org_ippools",
)
BUILT_IN = (
    objects.kubeadm_config("10.96.0.0/12", "10.244.0.0/16"),
    objects.control_plane_pod("kube-apiserver-a", "--service-cluster-ip-range=10.96.0.0/12"),
    objects.control_plane_pod("elsewhere", "--cluster-cidr=10.1.0.0/16", namespace="default"),
    objects.node("worker-1", "192.168.1.10", "fd00:1::10", pod_cidrs=("10.244.1.0/24",)),
)
CUSTOM = (
    objects.cilium_node("worker-1", "10.0.1.0/24", "fd00:10::/112"),
    objects.load_balancer_pool("blue", {"start": "192.168.1.240", "stop": "192.168.1.242"}),
    objects.metallb_pool("green", "192.168.2.0/28"),
    objects.egress_ip("out", "192.168.1.100"),
    objects.egress_gateway_policy("gate", "192.168.1.10"),
    objects.calico_pool("default-ipv4-ippool", "10.48.0.0/16", blockSize=26),
)
BUILT_IN_USES = [
    "10.96.0.0/12 services ConfigMap.kubeadm-config kube-system/kubeadm-config",
    "10.96.0.0/12 services Pod.kube-system kube-system/kube-apiserver-a",
    "10.244.0.0/16 pods ConfigMap.kubeadm-config kube-system/kubeadm-config",
    "10.244.1.0/24 pods Node worker-1",
    "192.168.1.10/32 node-address Node worker-1",
    "fd00:1::10/128 node-address Node worker-1",
]
CUSTOM_USES = [
    "10.0.1.0/24 pods CiliumNode worker-1",
    "fd00:10::/112 pods CiliumNode worker-1",
    "10.48.0.0/16 pod-pool IPPool.projectcalico.org default-ipv4-ippool",
    "192.168.1.10/32 egress CiliumEgressGatewayPolicy gate",
    "192.168.1.100/32 egress EgressIP out",
    "192.168.1.240/31 load-balancer CiliumLoadBalancerIPPool blue",
    "192.168.1.242/32 load-balancer CiliumLoadBalancerIPPool blue",
    "192.168.2.0/28 load-balancer IPAddressPool default/green",
]


def _uses() -> list[str]:
    rows = ObservedCIDR.objects.order_by("cidr", "kind")
    rows = rows.exclude(cidr=SERVICE_CIDR)  # a real API server since 1.33 makes it a ServiceCIDR
    return [f"{row.cidr} {row.role} {row.kind} {row.object_name}" for row in rows]


def _sorted(*uses: str) -> list[str]:
    order = ObservedCIDR.objects.order_by("cidr", "kind").values_list("cidr", flat=True)
    position = {str(cidr): number for number, cidr in enumerate(order)}
    return sorted(uses, key=lambda use: (position.get(use.split()[0], -1), use.split()[2]))


def test_a_cluster_without_their_definitions(prod: Prod, api: Api) -> None:
    for manifest in BUILT_IN:
        prod.server.put(manifest)
    prod.reconcile()
    assert _uses() == _sorted(*BUILT_IN_USES)
    assert not Finding.objects.exists()
    assert api("GET", "clusters/prod/connection/").json()["state"] == "healthy"


def test_all_are_read_followed_and_removed(prod: Prod, api: Api) -> None:
    prod.server.crds(*DEFINITIONS)
    for manifest in (*BUILT_IN, *CUSTOM):
        prod.server.put(manifest)
    prod.reconcile()
    assert _uses() == _sorted(*BUILT_IN_USES, *CUSTOM_USES)
    before = list(ObservedCIDR.objects.order_by("pk").values())
    prod.reconcile()
    assert list(ObservedCIDR.objects.order_by("pk").values()) == before

    prod.server.put(objects.metallb_pool("green", "192.168.2.0/28", "192.168.3.0/30"))
    prod.server.put(objects.egress_ip("out", "192.168.1.101"))
    prod.reconcile()
    assert "192.168.3.0/30 load-balancer IPAddressPool default/green" in _uses()
    assert "192.168.1.101/32 egress EgressIP out" in _uses()
    assert "192.168.1.100/32 egress EgressIP out" not in _uses()
    unchanged = {row["id"] for row in before} & {
        row.pk for row in ObservedCIDR.objects.filter(cidr="192.168.2.0/28")
    }
    assert unchanged

    prod.server.remove("ipaddresspools.metallb.io", "green", "default")
    prod.reconcile()
    assert any("IPAddressPool" in use for use in _uses())  # one list without it proves nothing
    prod.reconcile_until_gone()
    assert not any("IPAddressPool" in use for use in _uses())


@pytest.mark.exhaustive
def test_settings_of_kube_proxy_and_of_servers_of_k3s(prod: Prod) -> None:
    """Nodes have parts of the setting of each server, which all servers have."""
    prod.server.put(objects.kube_proxy_config("10.42.0.0/16,fd00:42::/56"))
    flags = ("--cluster-cidr", "10.42.0.0/16", "--token", "********", "--service-cidr=10.44.0.0/16")
    prod.server.put(objects.server_node("server-1", "192.168.1.1", *flags))
    prod.server.put(objects.server_node("server-2", "192.168.1.2", *flags))
    agent = objects.node("agent-1", "192.168.1.3", pod_cidrs=("10.42.1.0/24",))
    agent["metadata"]["annotations"] = {
        "k3s.io/node-args": '["agent","--cluster-cidr","10.1.0.0/16"]'
    }
    prod.follow(agent)
    settings = [use for use in _uses() if "node-address" not in use]
    assert sorted(settings) == sorted(
        [
            "10.42.0.0/16 pods ConfigMap.kube-proxy kube-system/kube-proxy",
            "10.42.0.0/16 pods Node.node-args server-1",
            "10.42.0.0/16 pods Node.node-args server-2",
            "10.42.1.0/24 pods Node agent-1",
            "10.44.0.0/16 services Node.node-args server-1",
            "10.44.0.0/16 services Node.node-args server-2",
            "fd00:42::/56 pods ConfigMap.kube-proxy kube-system/kube-proxy",
        ]
    )
    assert not Finding.objects.exists()
    for row in ObservedObject.objects.filter(kind="Node.node-args"):
        assert row.manifest["metadata"]["annotations"] == {
            "k3s.io/node-args": '["server", "--cluster-cidr", "10.42.0.0/16", "--service-cidr", "10.44.0.0/16"]'
        }
    prod.server.remove("nodes", "server-2")
    prod.reconcile_until_gone()
    assert "10.44.0.0/16 services Node.node-args server-2" not in _uses()


def test_a_service_cidr_that_k3s_hands_to_kube_apiserver(prod: Prod) -> None:
    """It overrides the flag of the server; EKS has its own ConfigMap of kube-proxy."""
    arguments = ("--service-cidr", "10.44.0.0/16", "--kube-apiserver-arg")
    arguments += ("service-cluster-ip-range=10.45.0.0/16", "--kube-apiserver-arg", "secret-key=x")
    prod.server.put(objects.server_node("server-1", "192.168.1.1", *arguments))
    prod.server.put(objects.eks_kube_proxy_config("10.42.0.0/16"))
    prod.reconcile()
    assert [use for use in _uses() if "node-address" not in use] == [
        "10.42.0.0/16 pods ConfigMap.kube-proxy-config kube-system/kube-proxy-config",
        "10.42.0.0/16 pods Node.node-args server-1",
        "10.45.0.0/16 services Node.node-args server-1",
    ]
    assert not Finding.objects.exists()
    stored = ObservedObject.objects.get(kind="Node.node-args").manifest
    assert "secret-key" not in str(stored)


def test_one_that_is_made_anew_is_another_object(prod: Prod) -> None:
    prod.follow(objects.node("worker-1", "192.168.1.10"))
    prod.server.remove("nodes", "worker-1")
    prod.follow(objects.node("worker-1", "192.168.1.11"))
    assert _uses() == ["192.168.1.11/32 node-address Node worker-1"]


@pytest.mark.exhaustive
def test_cilium_nodes_of_multi_pool_mode_use_blocks_of_pools(prod: Prod) -> None:
    """Cilium leaves `podCIDRs` in the node when its mode changes."""
    prod.server.crds("cilium.io_ciliumnodes")
    prod.server.put(objects.cilium_node("worker-1", "10.0.1.0/24"))
    prod.server.put(objects.cilium_node("worker-2", "10.0.2.0/24"))
    prod.reconcile()
    assert len(_uses()) == 2
    requested = [{"pool": "default", "needed": {"ipv4-addrs": 8}}]
    prod.follow(objects.cilium_node("worker-1", "10.0.1.0/24", requested=requested))
    assert _uses() == ["10.0.2.0/24 pods CiliumNode worker-2"]
    prod.server.remove("ciliumnodes.cilium.io", "worker-2")
    prod.reconcile_until_gone()
    assert _uses() == []


@pytest.mark.exhaustive
def test_two_cilium_nodes_with_one_pod_cidr_clash(prod: Prod) -> None:
    """A CiliumNode may repeat its Node, and the settings."""
    prod.server.crds("cilium.io_ciliumnodes")
    prod.server.put(objects.kubeadm_config("10.96.0.0/12", "10.0.0.0/16"))
    prod.server.put(objects.node("worker-1", "192.168.1.10", pod_cidrs=("10.0.1.0/24",)))
    prod.server.put(objects.cilium_node("worker-1", "10.0.1.0/24"))
    prod.reconcile()
    assert not Finding.objects.exists()
    prod.follow(objects.cilium_node("worker-2", "10.0.1.0/24"))
    finding = Finding.objects.get()
    assert (finding.kind, finding.code) == ("CiliumNode", "address_clash")


@pytest.mark.exhaustive
def test_what_calico_reserves_is_free_for_others(prod: Prod) -> None:
    prod.server.crds("crd.projectcalico.org_ippools", "crd.projectcalico.org_ipreservations")
    prod.server.put(objects.calico_pool("default", "10.48.0.0/16"))
    prod.server.put(objects.calico_reservation("routers", "10.48.7.0/29"))
    prod.server.put(objects.node("worker-1", "10.48.7.3"))
    prod.reconcile()
    assert "10.48.7.0/29 pod-pool IPReservation.projectcalico.org routers" in _uses()
    assert not Finding.objects.exists()
    prod.follow(objects.node("worker-2", "10.48.7.9"))
    finding = Finding.objects.get()
    assert (finding.kind, finding.code) == ("Node", "address_clash")
    assert "10.48.7.9/32 of Node worker-2" in finding.message
    prod.follow(objects.calico_reservation("routers", "10.48.7.0/28"))
    assert not Finding.objects.exists()


@pytest.mark.exhaustive
def test_a_definition_that_goes_removes_nothing(prod: Prod) -> None:
    prod.server.crds("metallb.io_ipaddresspools")
    prod.follow(objects.metallb_pool("green", "192.168.2.0/28"))
    if isinstance(prod.server, FakeCluster):
        prod.server.remove("customresourcedefinitions", "ipaddresspools.metallb.io")
    else:
        prod.server.undefine("ipaddresspools.metallb.io")
        prod.server.await_unserved("metallb.io", "ipaddresspools")
    for _ in range(3):
        prod.reconcile()
    assert _uses() == ["192.168.2.0/28 load-balancer IPAddressPool default/green"]
    assert Finding.objects.get().code == "kind_not_served"


def test_service_cidrs(prod: Prod) -> None:
    if not isinstance(prod.server, FakeCluster):
        pytest.skip("the built-in group is in the way: see tests/real/test_service_cidrs.py")
    prod.server.crds("networking.k8s.io_servicecidrs")
    prod.server.put(objects.service_cidr("10.96.0.0/12", "fd00:96::/112"))
    prod.server.put(objects.service_cidr("10.112.0.0/16", name="more"))
    prod.reconcile()
    assert _uses() == [
        "10.96.0.0/12 services ServiceCIDR kubernetes",
        "10.112.0.0/16 services ServiceCIDR more",
        "fd00:96::/112 services ServiceCIDR kubernetes",
    ]


BLOCK = {"cidr": "192.168.9.0/28"}
VERSIONS = {
    **{version: objects.load_balancer_pool("blue", BLOCK, version=version) for version in ("v2", "v2alpha1")},
    **{  # of an older MetalLB
        version: objects.metallb_address_pool("old", "192.168.9.0-192.168.9.15", version=version)
        for version in ("v1beta1", "v1alpha1")
    },
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
def test_either_version_is_read(prod: Prod, version: str) -> None:
    prod.server.crds("cilium.io_ciliumloadbalancerippools", "metallb.io_addresspools")
    prod.follow(VERSIONS[version])
    assert [use.partition(" ")[0] for use in _uses()] == ["192.168.9.0/28"]


@pytest.mark.exhaustive
def test_a_value_that_cannot_be_read_is_a_finding_and_no_failed_run(prod: Prod, api: Api) -> None:
    prod.server.crds("metallb.io_ipaddresspools")
    prod.server.put(objects.metallb_pool("odd", "everything", "192.168.2.0/28"))
    prod.server.put(objects.kubeadm_config("10.96.0.0/99", "10.244.0.0/16"))
    prod.reconcile()
    assert len(_uses()) == 2
    findings = dict(Finding.objects.values_list("subject", "message"))
    assert "spec.addresses.0: not an IPv4 or IPv6 address" in findings["default/odd"]
    assert "networking.serviceSubnet" in findings["kube-system/kubeadm-config"]
    assert api("GET", "clusters/prod/connection/").json()["state"] == "healthy"
    prod.follow(objects.metallb_pool("odd", "192.168.3.0/28", "192.168.2.0/28"))
    assert Finding.objects.get().subject == "kube-system/kubeadm-config"


@pytest.mark.exhaustive
def test_an_object_that_cannot_be_read_stops_no_other_of_any_kind(prod: Prod) -> None:
    prod.server.crds(
        *DEFINITIONS, "metallb.io_addresspools", "k8s.cni.cncf.io_network-attachment-definitions"
    )
    whereabouts = {"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.9.0.0/24"}}
    pairs = [  # one that can be read, and one that cannot
        (objects.node("good", "192.168.1.10"), objects.node("odd", "here")),
        (
            objects.control_plane_pod("good", "--cluster-cidr=10.1.0.0/16"),
            objects.control_plane_pod("odd", "--cluster-cidr", "everything"),
        ),
        (
            objects.load_balancer_pool("good", {"cidr": "192.168.3.0/28"}),
            objects.load_balancer_pool("odd", {"start": "192.168.4.9", "stop": "192.168.4.1"}),
        ),
        (objects.metallb_pool("good", "192.168.5.0/28"), objects.metallb_pool("odd", "1-2")),
        (
            objects.metallb_address_pool("good", "192.168.6.0/28"),
            objects.metallb_address_pool("odd", "192.168.6.16/99"),
        ),
        (objects.egress_ip("good", "192.168.1.100"), objects.egress_ip("odd", "any")),
        (
            objects.egress_gateway_policy("good", "192.168.1.10"),
            objects.egress_gateway_policy("odd", "eth0"),
        ),
        (objects.calico_pool("good", "10.48.0.0/16"), objects.calico_pool("odd", "0.0.0.0/0")),
        (objects.nad("good", whereabouts), objects.nad("odd", "{")),
    ]
    for manifest in [manifest for pair in pairs for manifest in pair]:
        prod.server.put(manifest)
    prod.reconcile()
    good = {use.split()[-2] for use in _uses() if use.endswith("good")}
    odd = Finding.objects.filter(code="object_not_readable", subject__endswith="odd")
    assert len(good) == len(pairs)
    assert good == set(odd.values_list("kind", flat=True))


def test_without_a_right_it_is_a_finding(server: Any, connect: Any, api: Api) -> None:
    """The rights of pods and nodes only: other kinds stay unread, and the run succeeds."""
    server.put(objects.node("worker-1", "192.168.1.10"))
    server.put(objects.kubeadm_config("10.96.0.0/12", "10.244.0.0/16"))
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
    ]
    connect(server.user("reader", rules))
    call_command("reconcile", "prod")
    assert _uses() == ["192.168.1.10/32 node-address Node worker-1"]
    codes = set(Finding.objects.exclude(kind="ServiceCIDR").values_list("kind", "code"))
    assert codes == {
        ("ConfigMap.kubeadm-config", "not_permitted"),
        ("ConfigMap.kube-proxy", "not_permitted"),
        ("ConfigMap.kube-proxy-config", "not_permitted"),
        ("Service", "not_permitted"),
        ("Lease.cilium-operator-resource-lock", "not_permitted"),
        ("Lease.ovn-kubernetes-master", "not_permitted"),
    }
    assert api("GET", "clusters/prod/connection/").json()["state"] == "healthy"


def test_one_config_map_is_all_that_is_asked_for(server: Any, connect: Any) -> None:
    server.put(objects.kubeadm_config("10.96.0.0/12", "10.244.0.0/16"))
    name = ["kubeadm-config"]
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {
            "apiGroups": [""], "resources": ["configmaps"], "resourceNames": name,
            "verbs": ["get", "list", "watch"],
        },
    ]  # fmt: skip
    connect(server.user("named", rules))
    call_command("reconcile", "prod")
    assert len(_uses()) == 2


def test_nothing_is_written(prod: Prod) -> None:
    prod.server.crds(*DEFINITIONS)
    for manifest in (*BUILT_IN, *CUSTOM):
        prod.server.put(manifest)
    Connection.objects.update(mode="managed", managed_resources=["pools"])
    with pytest.raises(Exception, match="does not serve CiliumPodIPPool"):
        prod.reconcile()
    kinds = {
        "nodes", "pods", "configmaps", "ciliumnodes.cilium.io", "ipaddresspools.metallb.io",
        "egressips.k8s.ovn.org",
    }  # fmt: skip
    for plural in kinds:
        for stored in prod.server.objects(plural):
            managers = {entry["manager"] for entry in stored["metadata"].get("managedFields", ())}
            assert not managers & {"cadastre", "cadastre-status"}
    rows = ObservedObject.objects.exclude(kind="ServiceCIDR", name="kubernetes")
    assert rows.filter(problem_code="").count() == 9
