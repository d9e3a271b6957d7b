"""Manifests of the kinds that use addresses."""

import json
from typing import Any

from tests.kube.manifests import Manifest, build


def service_cidr(*cidrs: str, name: str = "kubernetes") -> Manifest:
    return build("networking.k8s.io/v1", "ServiceCIDR", name, spec={"cidrs": list(cidrs)})


def node(name: str, *addresses: str, pod_cidrs: tuple[str, ...] = ()) -> Manifest:
    spec = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
    shown = [{"type": "InternalIP", "address": address} for address in addresses]
    return build("v1", "Node", name, spec=spec, status={"addresses": shown})


def cilium_node(name: str, *pod_cidrs: str, **pools: Any) -> Manifest:
    """In the mode cluster-pool; with `requested` or `allocated`, in multi-pool mode."""
    ipam = {"podCIDRs": list(pod_cidrs)} | ({"pools": pools} if pools else {})
    addresses = [{"type": "InternalIP", "ip": "192.168.1.10"}]
    return build("cilium.io/v2", "CiliumNode", name, spec={"addresses": addresses, "ipam": ipam})


def _config_map(name: str, **data: str) -> Manifest:
    return build("v1", "ConfigMap", name, "kube-system", data=data)


def kubeadm_config(services: str, pods: str) -> Manifest:
    text = f"networking:\n  podSubnet: {pods}\n  serviceSubnet: {services}\n"
    return _config_map("kubeadm-config", ClusterConfiguration=f"kind: ClusterConfiguration\n{text}")


def kube_proxy_config(pods: str) -> Manifest:
    text = f"kind: KubeProxyConfiguration\nclusterCIDR: {pods}\nmode: ''\n"
    return _config_map("kube-proxy", **{"config.conf": text, "kubeconfig.conf": "kind: Config\n"})


def eks_kube_proxy_config(pods: str) -> Manifest:
    text = f"kind: KubeProxyConfiguration\nclusterCIDR: '{pods}'\nmode: iptables\n"
    return _config_map("kube-proxy-config", config=text)


def whereabouts_pool(name: str, network: str, **pods: str) -> Manifest:
    """A pool of whereabouts; `pods` are those that have addresses, by `at_` and their distance: `at_1="a/b"`."""
    allocations = {
        key.removeprefix("at_"): {"id": "2f1c", "podref": pod, "ifname": "net1"}
        for key, pod in pods.items()
    }
    spec = {"range": network, "allocations": allocations}
    return build("whereabouts.cni.cncf.io/v1alpha1", "IPPool", name, "kube-system", spec=spec)


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
    return build("v1", "Pod", name, namespace, spec={"containers": [container]})


def service(
    name: str, *ingress: str, external_ips: tuple[str, ...] = (), namespace: str = "default"
) -> Manifest:
    """A Service with the addresses of its load balancer, or with the host name of one, and external IPs."""
    addresses = [{"hostname" if text[-1].isalpha() else "ip": text} for text in ingress]
    spec = {
        "type": "LoadBalancer" if ingress else "ClusterIP",
        "ports": [{"port": 80, "protocol": "TCP"}],
        "selector": {"app": name},
        **({"externalIPs": list(external_ips)} if external_ips else {}),
    }
    status = {"loadBalancer": {"ingress": addresses} if addresses else {}}
    metadata = {"annotations": {"secret": "x"}}
    return build("v1", "Service", name, namespace, metadata=metadata, spec=spec, status=status)


def load_balancer_pool(name: str, *blocks: dict[str, str], version: str = "v2") -> Manifest:
    kind = "CiliumLoadBalancerIPPool"
    return build(f"cilium.io/{version}", kind, name, spec={"blocks": list(blocks)})


def metallb_pool(name: str, *addresses: str, namespace: str = "default") -> Manifest:
    spec = {"addresses": list(addresses)}
    return build("metallb.io/v1beta1", "IPAddressPool", name, namespace, spec=spec)


def metallb_address_pool(name: str, *addresses: str, version: str = "v1beta1") -> Manifest:
    """A pool of MetalLB before 0.14."""
    spec = {"addresses": list(addresses), "protocol": "layer2"}
    return build(f"metallb.io/{version}", "AddressPool", name, "default", spec=spec)


def egress_ip(name: str, *addresses: str) -> Manifest:
    spec = {"egressIPs": list(addresses), "namespaceSelector": {}}
    return build("k8s.ovn.org/v1", "EgressIP", name, spec=spec)


def egress_gateway_policy(name: str, address: str) -> Manifest:
    spec = {
        "destinationCIDRs": ["0.0.0.0/0"],
        "selectors": [{"podSelector": {}}],
        "egressGateway": {"nodeSelector": {}, "egressIP": address},
    }
    return build("cilium.io/v2", "CiliumEgressGatewayPolicy", name, spec=spec)


def calico_pool(name: str, cidr: str, **spec: Any) -> Manifest:
    return build("crd.projectcalico.org/v1", "IPPool", name, spec={"cidr": cidr, **spec})


def calico_reservation(name: str, *cidrs: str) -> Manifest:
    spec = {"reservedCIDRs": list(cidrs)}
    return build("crd.projectcalico.org/v1", "IPReservation", name, spec=spec)


def nad(name: str, config: Any, namespace: str = "default") -> Manifest:
    text = config if isinstance(config, str) else json.dumps(config)
    kind = "NetworkAttachmentDefinition"
    return build("k8s.cni.cncf.io/v1", kind, name, namespace, spec={"config": text})
