"""What each kind of object says of the addresses that it uses, and what is reported of odd values."""

import json
from typing import Any

import pytest

from pools.core.observed import cluster_networks, secondary_networks
from pools.core.observed.uses import MOST
from pools.observed.cidrs import parse_eks_kube_proxy_config, parse_kubeadm_config
from tests.observed import objects


def _nad(config: Any) -> dict[str, Any]:
    return {"spec": {"config": config if isinstance(config, str) else json.dumps(config)}}


def _macvlan(**ipam: Any) -> dict[str, Any]:
    return _nad({"type": "macvlan", "ipam": ipam})


def _pod(*arguments: str, key: str = "command") -> dict[str, Any]:
    return _spec(containers=[{"name": "c", key: list(arguments)}])


def _spec(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


HOST_LOCAL = {"type": "host-local", "subnet": "10.74.0.0/24"}
CASES = {
    "node": (
        cluster_networks.parse_node,
        _spec(podCIDR="10.244.1.0/24", podCIDRs=["10.244.1.0/24", "fd00:244:1::/64"])
        | {
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "192.168.1.10"},
                    {"type": "InternalIP", "address": "fd00:1::10"},
                    {"type": "ExternalIP", "address": "203.0.113.10"},
                    {"type": "Hostname", "address": "worker-1"},
                ]
            },
        },
        [
            "pods 10.244.1.0/24",
            "pods fd00:244:1::/64",
            "node-address 192.168.1.10/32 InternalIP",
            "node-address fd00:1::10/128 InternalIP",
            "node-address 203.0.113.10/32 ExternalIP",
        ],
    ),
    "kubeadm v1beta3: an argument of the control plane overrides a subnet": (
        cluster_networks.parse_kubeadm,
        {
            "networking": {"serviceSubnet": "10.96.0.0/12", "podSubnet": "10.244.0.0/16"},
            "apiServer": {"extraArgs": {"service-cluster-ip-range": "10.112.0.0/16", "v": "2"}},
            "controllerManager": {"extraArgs": {"node-cidr-mask-size": "25"}},
        },
        [
            "services 10.112.0.0/16 --service-cluster-ip-range in apiServer.extraArgs",
            "pods 10.244.0.0/16 podSubnet",
        ],
    ),
    "kubeadm v1beta4: a list, of which the last argument counts": (
        cluster_networks.parse_kubeadm,
        {
            "networking": {"serviceSubnet": "10.96.0.0/12"},
            "controllerManager": {
                "extraArgs": [
                    {"name": "cluster-cidr", "value": "10.240.0.0/16"},
                    {"name": "v", "value": "2"},
                    {"name": "cluster-cidr", "value": "10.250.0.0/16,fd00:250::/56"},
                ]
            },
        },
        [
            "services 10.96.0.0/12 serviceSubnet",
            "pods 10.250.0.0/16 --cluster-cidr in controllerManager.extraArgs",
            "pods fd00:250::/56 --cluster-cidr in controllerManager.extraArgs",
        ],
    ),
    "server of RKE2 without flags": (
        cluster_networks.parse_server_node,
        objects.server_node("a", "192.168.1.1", "--cni", "cilium", product="rke2"),
        ["services 10.43.0.0/16 default of --service-cidr", "pods 10.42.0.0/16 default of --cluster-cidr"],
    ),
    "server of k3s with IPv6 first": (
        cluster_networks.parse_server_node,
        objects.server_node("a", "fd00:1::1", "--service-cidr", "fd00:51::/112"),
        ["services fd00:51::/112 --service-cidr", "pods fd00:42::/56 default of --cluster-cidr"],
    ),
    "server of k3s with arguments of its components": (
        cluster_networks.parse_server_node,
        objects.server_node(
            "a", "192.168.1.1",
            "--service-cidr", "10.51.0.0/16",
            "--kube-apiserver-arg", "service-cluster-ip-range=10.60.0.0/16",
            "--kube-apiserver-arg=--service-cluster-ip-range=10.61.0.0/16,fd00:61::/112",
            "--kube-apiserver-arg", "v=2",
            "--kube-controller-manager-arg", "cluster-cidr=10.62.0.0/16",
            "--kube-controller-manager-arg", "node-cidr-mask-size=25",
        ),
        [
            "services 10.61.0.0/16 service-cluster-ip-range in --kube-apiserver-arg",
            "services fd00:61::/112 service-cluster-ip-range in --kube-apiserver-arg",
            "pods 10.62.0.0/16 cluster-cidr in --kube-controller-manager-arg",
        ],
    ),
    "kube-proxy of EKS without a CIDR": (
        parse_eks_kube_proxy_config,
        objects.eks_kube_proxy_config(""),
        [],
    ),
    "pool of whereabouts with IPv6, from the address of its range": (
        secondary_networks.parse_whereabouts_pool,
        objects.whereabouts_pool("p", "fd00:2::10/64", at_4294967300="shop/web-0"),
        ["secondary fd00:2::1:0:14/128 shop/web-0"],
    ),
    "arguments apart": (
        cluster_networks.parse_control_plane,
        _pod("--cluster-cidr", "10.244.0.0/16", key="args"),
        ["pods 10.244.0.0/16 --cluster-cidr"],
    ),
    "arguments of a shell": (
        cluster_networks.parse_control_plane,
        _pod("/bin/sh", "-c", "exec kube-apiserver --service-cluster-ip-range='10.0.0.0/16' 2>&1"),
        ["services 10.0.0.0/16 --service-cluster-ip-range"],
    ),
    "both families in the arguments of one container": (
        cluster_networks.parse_control_plane,
        _pod(
            "--allocate-node-cidrs=true",
            "--cluster-cidr=10.60.0.0/16,fd00:60::/56",
            "--service-cluster-ip-range=10.61.0.0/16,fd00:61::/108",
            "--node-cidr-mask-size-ipv6=64",
            key="args",
        ),
        [
            "pods 10.60.0.0/16 --cluster-cidr",
            "pods fd00:60::/56 --cluster-cidr",
            "services 10.61.0.0/16 --service-cluster-ip-range",
            "services fd00:61::/108 --service-cluster-ip-range",
        ],
    ),
    "an argument without its value": (
        cluster_networks.parse_control_plane,
        _pod("kube-controller-manager", "--cluster-cidr=", "--service-cluster-ip-range"),
        [],
    ),
    "OpenShift": (
        cluster_networks.parse_openshift,
        _spec(
            clusterNetwork=[{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            externalIP={
                "autoAssignCIDRs": ["192.168.40.0/29"], "policy": {"allowedCIDRs": ["192.168.0.0/16"]},
            },
        )
        | {"status": {"serviceNetwork": ["172.30.0.0/16"]}},
        [
            "pods 10.128.0.0/14",
            "load-balancer 192.168.40.0/29 autoAssignCIDRs",
            "services 172.30.0.0/16",
        ],
    ),
    "CiliumLoadBalancerIPPool": (
        cluster_networks.parse_cilium_load_balancer_pool,
        objects.load_balancer_pool(
            "p",
            {"cidr": "203.0.113.0/28"},
            {"start": "192.168.1.240", "stop": "192.168.1.250"},
            {"start": "192.168.2.1"},
        ),
        [
            "load-balancer 203.0.113.0/28",
            "load-balancer 192.168.1.240/29 192.168.1.240-192.168.1.250",
            "load-balancer 192.168.1.248/31 192.168.1.240-192.168.1.250",
            "load-balancer 192.168.1.250/32 192.168.1.240-192.168.1.250",
            "load-balancer 192.168.2.1/32",
        ],
    ),
    "CiliumLoadBalancerIPPool before 1.15, disabled": (
        cluster_networks.parse_cilium_load_balancer_pool,
        _spec(disabled=True, cidrs=[{"cidr": "203.0.113.0/28"}]),
        ["load-balancer 203.0.113.0/28 disabled"],
    ),
    "CiliumLoadBalancerIPPool as a Go program writes it": (
        cluster_networks.parse_cilium_load_balancer_pool,
        _spec(
            allowFirstLastIPs="No",
            blocks=[
                {"cidr": "", "start": "fd00:9::10", "stop": "fd00:9::13"},
                {"cidr": "", "start": "192.168.9.7", "stop": ""},
            ],
        ),
        ["load-balancer fd00:9::10/126", "load-balancer 192.168.9.7/32"],
    ),
    "MetalLB with host bits, and one that assigns on request only": (
        cluster_networks.parse_metallb_pool,
        _spec(
            addresses=["192.168.30.10/28", "192.168.31.5-192.168.31.5", "FD00:30:0ABC::/120"],
            autoAssign=False,
            avoidBuggyIPs=True,
            serviceAllocation={"priority": 50, "namespaces": ["shop"]},
        ),
        [
            "load-balancer 192.168.30.0/28",
            "load-balancer 192.168.31.5/32",
            "load-balancer fd00:30:abc::/120",
        ],
    ),
    "EgressIP of both families that no node has": (
        cluster_networks.parse_egress_ip,
        {"spec": {"egressIPs": ["192.168.1.120", "FD00:1::78"]}, "status": {"items": None}},
        ["egress 192.168.1.120/32", "egress fd00:1::78/128"],
    ),
    "CiliumEgressGatewayPolicy of an interface": (
        cluster_networks.parse_egress_gateway_policy,
        {"spec": {"egressGateway": {"nodeSelector": {}, "interface": "eth1"}}},
        [],
    ),
    "CiliumEgressGatewayPolicy": (
        cluster_networks.parse_egress_gateway_policy,
        _spec(
            egressGateway={"egressIP": "192.168.1.110"},
            egressGateways=[{"egressIP": "192.168.1.111"}, {"interface": "eth1"}],
        ),
        ["egress 192.168.1.110/32", "egress 192.168.1.111/32"],
    ),
    "Calico for load balancers": (
        cluster_networks.parse,
        {"spec": {"cidr": "203.0.113.0/28", "allowedUses": ["LoadBalancer"]}},
        ["load-balancer 203.0.113.0/28"],
    ),
    "whereabouts": (
        secondary_networks.parse,
        _macvlan(
            type="whereabouts",
            range="192.168.2.225/28",
            range_start="192.168.2.226",
            range_end="192.168.2.231",
            exclude=["192.168.2.229/32"],
        ),
        [
            "secondary 192.168.2.226/31 192.168.2.226-192.168.2.231",
            "secondary 192.168.2.228/32 192.168.2.226-192.168.2.231",
            "secondary 192.168.2.230/31 192.168.2.226-192.168.2.231",
        ],
    ),
    "whereabouts, each range without its own exclusions": (
        secondary_networks.parse,
        _macvlan(
            type="whereabouts",
            range="10.70.0.0/30",
            exclude=["10.70.0.1", "10.70.1.0/31"],
            ipRanges=[
                {"range": "10.70.1.5/30", "exclude": ["10.70.1.6/31"]},
                {"range": "fd00:70::/126", "range_start": "fd00:70::2"},
            ],
            gateway="10.70.0.2",
            node_slice_size="/31",
        ),
        [
            "secondary 10.70.0.0/32 10.70.0.0-10.70.0.3",
            "secondary 10.70.0.2/31 10.70.0.0-10.70.0.3",
            "secondary 10.70.1.4/31",
            "secondary fd00:70::2/127",
        ],
    ),
    "whereabouts with fixed addresses, its range in a file of the nodes": (
        secondary_networks.parse,
        _macvlan(type="whereabouts", range="", addresses=[{"address": "10.71.0.9/24"}]),
        ["secondary 10.71.0.9/32"],
    ),
    "whereabouts, whose range overrides its ends": (
        secondary_networks.parse,
        _macvlan(type="whereabouts", range="10.72.0.4-10.72.0.7/24", range_end="10.72.0.99"),
        ["secondary 10.72.0.4/30"],
    ),
    "whereabouts from-to/length": (
        secondary_networks.parse,
        _macvlan(type="whereabouts", range="192.168.2.8-192.168.2.15/24"),
        ["secondary 192.168.2.8/29"],
    ),
    "host-local": (
        secondary_networks.parse,
        _macvlan(
            type="host-local",
            ranges=[
                [{"subnet": "10.10.0.0/16", "rangeStart": "10.10.1.0", "rangeEnd": "10.10.1.255"}],
                [{"subnet": "3ffe:ffff:0:1ff::/64"}],
            ],
        ),
        ["secondary 10.10.1.0/24", "secondary 3ffe:ffff:0:1ff::/64"],
    ),
    "host-local of one network twice, with a gateway": (
        secondary_networks.parse,
        _macvlan(
            type="host-local",
            ranges=[
                [
                    {"subnet": "10.73.0.0/24", "rangeStart": "10.73.0.8", "rangeEnd": "10.73.0.9"},
                    {"subnet": "10.73.0.0/24", "rangeStart": "10.73.0.16", "rangeEnd": "10.73.0.17"},
                ],
                [{"subnet": "fd00:73::/64", "gateway": "fd00:73::1"}],
            ],
            routes=[{"dst": "0.0.0.0/0"}],
        ),
        ["secondary 10.73.0.8/31", "secondary 10.73.0.16/31", "secondary fd00:73::/64"],
    ),
    "host-local of the node's pod CIDRs": (
        secondary_networks.parse,
        _macvlan(type="host-local", ranges=[[{"subnet": "usePodCidr"}], [{"subnet": "usePodCidrIPv6"}]]),
        [],
    ),
    "a plugin that calls another": (
        secondary_networks.parse,
        _nad({"type": "flannel", "delegate": {"type": "bridge", "ipam": HOST_LOCAL}}),
        ["secondary 10.74.0.0/24"],
    ),
    "another IPAM": (secondary_networks.parse, _macvlan(type="dhcp"), []),
    "no config": (secondary_networks.parse, {"spec": {}}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_used(case: str) -> None:
    parser, manifest, expected = CASES[case]
    observed = parser(manifest)
    uses = [f"{use.role.value} {use.cidr} {use.detail}".strip() for use in observed.uses]
    assert uses == expected
    assert observed.problems == ()


ODD_KEYS = {
    "-1": "bad_number",
    "8": "range_outside_cidr",
    "x": "bad_number",
    "9" * 99: "bad_number",
    "\u0661": "bad_number",
}
ODD = {
    "no list": (
        cluster_networks.parse_service_cidr,
        {"spec": {"cidrs": "10.0.0.0/8"}},
        0,
        ["spec.cidrs wrong_type"],
    ),
    "families mixed": (
        cluster_networks.parse_cilium_load_balancer_pool,
        {"spec": {"blocks": [{"start": "10.0.0.1", "stop": "fd00::1"}]}},
        0,
        ["spec.blocks.0 mixed_family"],
    ),
    "a block of nothing": (
        cluster_networks.parse_cilium_load_balancer_pool,
        {"spec": {"blocks": [{}]}},
        0,
        ["spec.blocks.0.start required"],
    ),
    "whereabouts outside of its network": (
        secondary_networks.parse,
        _macvlan(
            type="whereabouts", range="10.75.0.0/24", range_start="10.76.0.4", range_end="fd00::"
        ),
        1,
        [
            "spec.config.ipam.range_start range_outside_cidr",
            "spec.config.ipam.range_end mixed_family",
        ],
    ),
    "whereabouts from-to outside of its length": (
        secondary_networks.parse,
        _macvlan(type="whereabouts", range="10.75.0.5-10.75.1.9/28"),
        0,
        ["spec.config.ipam.range range_outside_cidr"],
    ),
    "an exclusion that is no network": (
        secondary_networks.parse,
        _macvlan(type="whereabouts", ipRanges=[{"range": "10.75.0.0/24", "exclude": ["all"]}, 7]),
        1,
        [
            "spec.config.ipam.ipRanges.1 wrong_type",
            "spec.config.ipam.ipRanges.0.exclude.0 not_an_address",
        ],
    ),
    "an EgressIP that is a network": (
        cluster_networks.parse_egress_ip,
        {"spec": {"egressIPs": ["none", "10.0.0.1"]}},
        1,
        ["spec.egressIPs.0 not_an_address"],
    ),
    "no text in kubeadm's configuration": (
        parse_kubeadm_config,
        {"data": {"ClusterConfiguration": "# nothing\n"}},
        0,
        ["data.ClusterConfiguration object_expected"],
    ),
    "a list as kubeadm's configuration": (
        parse_kubeadm_config,
        {"data": {"ClusterConfiguration": "- 10.0.0.0/8\n"}},
        0,
        ["data.ClusterConfiguration object_expected"],
    ),
    "no subnet": (
        secondary_networks.parse,
        _macvlan(type="host-local", ranges=[["10.0.0.0/8"], 7]),
        0,
        ["spec.config.ipam.ranges.0.ranges.0 wrong_type", "spec.config.ipam.ranges.1 wrong_type"],
    ),
    "an IPAM that is a text": (
        secondary_networks.parse,
        _nad({"type": "macvlan", "ipam": "whereabouts"}),
        0,
        ["spec.config.ipam wrong_type"],
    ),
    "YAML of kubeadm": (
        parse_kubeadm_config,
        {"data": {"ClusterConfiguration": "networking: [\n"}},
        0,
        ["data.ClusterConfiguration yaml_syntax"],
    ),
    "last address before the first": (
        secondary_networks.parse,
        _macvlan(
            type="whereabouts", range="10.0.0.0/29", range_start="10.0.0.4", range_end="10.0.0.2"
        ),
        1,
        ["spec.config.ipam.range_end range_reversed"],
    ),
    "pool of whereabouts without a range": (
        secondary_networks.parse_whereabouts_pool,
        {"spec": {"allocations": {"1": {"podref": "a/b"}}}},
        0,
        ["spec.range wrong_type"],
    ),
    "allocations of whereabouts": (
        secondary_networks.parse_whereabouts_pool,
        _spec(
            range="10.0.0.0/29",
            allocations={**{key: {} for key in ODD_KEYS}, "2": {"podref": 7}, "3": 7},
        ),
        2,
        [
            *(f"spec.allocations.{key} {code}" for key, code in ODD_KEYS.items()),
            "spec.allocations.3 wrong_type",
        ],
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_values_are_reported_and_the_others_count(case: str) -> None:
    parser, manifest, count, expected = ODD[case]
    observed = parser(manifest)
    assert len(observed.uses) == count
    assert [f"{problem.field} {problem.code}" for problem in observed.problems] == expected


@pytest.mark.parametrize("odd", [{}, {"spec": 7}, {"spec": {"containers": [7]}}, {"data": 7}])
def test_no_manifest_raises(odd: dict[str, Any]) -> None:
    for parser, _, _ in CASES.values():
        parser(odd)
    assert not cluster_networks.has_flags(odd)


def test_what_is_kept_of_a_pod_has_no_other_argument() -> None:
    pod = _pod("kube-apiserver", "--token=secret", "--service-cluster-ip-range", "10.96.0.0/12")
    stored = cluster_networks.project_control_plane({"metadata": {"name": "a"}, **pod})
    assert "secret" not in json.dumps(stored)
    assert cluster_networks.parse_control_plane(stored).uses[0].cidr.prefixlen == 12


@pytest.mark.parametrize(
    "text", ['["agent"]', '"server"', "server", "[", "[[[", 7, None, "{}"], ids=str
)
def test_other_nodes_are_no_servers_of_k3s(text: object) -> None:
    manifest = objects.server_node("a", "192.168.1.1")
    manifest["metadata"]["annotations"] = {"k3s.io/node-args": text}
    assert not cluster_networks.has_server_arguments(manifest)


def test_a_very_full_pool_of_whereabouts_is_read_as_ranges() -> None:
    """10,000 rows are the most of one object; the pods are not named then."""
    pods = {f"at_{number}": "shop/web" for number in range(MOST + 2)}
    observed = secondary_networks.parse_whereabouts_pool(
        objects.whereabouts_pool("p", "10.0.0.0/16", **pods)
    )
    assert not observed.problems
    assert len(observed.uses) < 10
    assert sum(use.cidr.num_addresses for use in observed.uses) == MOST + 2
