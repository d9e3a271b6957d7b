"""Manifests of the kinds that use addresses."""

import json
from typing import Any

Manifest = dict[str, Any]


def service_cidr(*cidrs: str, name: str = "kubernetes") -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": list(cidrs)},
    }


def node(name: str, *addresses: str, pod_cidrs: tuple[str, ...] = ()) -> Manifest:
    shown = [{"type": "InternalIP", "address": address} for address in addresses]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {},
        "status": {"addresses": shown},
    }


def cilium_node(name: str, *pod_cidrs: str, **pools: Any) -> Manifest:
    """In the mode cluster-pool; with `requested` or `allocated`, in multi-pool mode."""
    ipam = {"podCIDRs": list(pod_cidrs)} | ({"pools": pools} if pools else {})
    addresses = [{"type": "InternalIP", "ip": "192.168.1.10"}]
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": name},
        "spec": {"addresses": addresses, "ipam": ipam},
    }


def kubeadm_config(services: str, pods: str) -> Manifest:
    text = f"networking:\n  podSubnet: {pods}\n  serviceSubnet: {services}\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": f"kind: ClusterConfiguration\n{text}"},
    }


def kube_proxy_config(pods: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "data": {
            "config.conf": f"kind: KubeProxyConfiguration\nclusterCIDR: {pods}\nmode: ''\n",
            "kubeconfig.conf": "kind: Config\n",
        },
    }


def eks_kube_proxy_config(pods: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-proxy-config", "namespace": "kube-system"},
        "data": {
            "config": f"kind: KubeProxyConfiguration\nclusterCIDR: '{pods}'\nmode: iptables\n"
        },
    }


def whereabouts_pool(name: str, network: str, **pods: str) -> Manifest:
    """A pool of whereabouts; `pods` are those that have addresses, by `at_` and their distance: `at_1="a/b"`."""
    allocations = {
        key.removeprefix("at_"): {"id": "2f1c", "podref": pod, "ifname": "net1"}
        for key, pod in pods.items()
    }
    return {
        "apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"range": network, "allocations": allocations},
    }


def server_node(name: str, address: str, *arguments: str, product: str = "k3s") -> Manifest:
    """The node of a server of k3s or RKE2."""
    manifest = node(name, address)
    manifest["metadata"] |= {
        "labels": {"node-role.kubernetes.io/control-plane": "true"},
        "annotations": {
            f"{product}.io/node-args": json.dumps(["server", *arguments]),
            f"{product}.io/node-env": '{"K3S_TOKEN":"********"}',
        },
    }
    return manifest


def control_plane_pod(name: str, *arguments: str, namespace: str = "kube-system") -> Manifest:
    container = {"name": "c", "image": "registry.k8s.io/pause", "command": list(arguments)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container]},
    }


def service(
    name: str, *ingress: str, external_ips: tuple[str, ...] = (), namespace: str = "default"
) -> Manifest:
    """A Service with the addresses of its load balancer, or with the host name of one, and external IPs."""
    addresses = [{"hostname" if text[-1].isalpha() else "ip": text} for text in ingress]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"secret": "x"}},
        "spec": {
            "type": "LoadBalancer" if ingress else "ClusterIP",
            "ports": [{"port": 80, "protocol": "TCP"}],
            "selector": {"app": name},
            **({"externalIPs": list(external_ips)} if external_ips else {}),
        },
        "status": {"loadBalancer": {"ingress": addresses} if addresses else {}},
    }


def load_balancer_pool(name: str, *blocks: dict[str, str], version: str = "v2") -> Manifest:
    return {
        "apiVersion": f"cilium.io/{version}",
        "kind": "CiliumLoadBalancerIPPool",
        "metadata": {"name": name},
        "spec": {"blocks": list(blocks)},
    }


def metallb_pool(name: str, *addresses: str, namespace: str = "default") -> Manifest:
    return {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"addresses": list(addresses)},
    }


def metallb_address_pool(name: str, *addresses: str, version: str = "v1beta1") -> Manifest:
    """A pool of MetalLB before 0.14."""
    manifest = metallb_pool(name, *addresses)
    return manifest | {
        "apiVersion": f"metallb.io/{version}",
        "kind": "AddressPool",
        "spec": {**manifest["spec"], "protocol": "layer2"},
    }


def egress_ip(name: str, *addresses: str) -> Manifest:
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": list(addresses), "namespaceSelector": {}},
    }


def egress_gateway_policy(name: str, address: str) -> Manifest:
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumEgressGatewayPolicy",
        "metadata": {"name": name},
        "spec": {
            "destinationCIDRs": ["0.0.0.0/0"],
            "selectors": [{"podSelector": {}}],
            "egressGateway": {"nodeSelector": {}, "egressIP": address},
        },
    }


def calico_pool(name: str, cidr: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPPool",
        "metadata": {"name": name},
        "spec": {"cidr": cidr, **spec},
    }


def calico_reservation(name: str, *cidrs: str) -> Manifest:
    return {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPReservation",
        "metadata": {"name": name},
        "spec": {"reservedCIDRs": list(cidrs)},
    }


def nad(name: str, config: Any, namespace: str = "default") -> Manifest:
    text = config if isinstance(config, str) else json.dumps(config)
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"config": text},
    }
