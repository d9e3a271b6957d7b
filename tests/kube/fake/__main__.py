"""Fake clusters in a process of their own: `python -m tests.kube.fake --clusters 2 --nodes 10000`.

Prints one JSON line per cluster (url, ca, token, kubeconfig, kube_system_uid) and runs until its
standard input ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

from tests.kube.fake import FakeCluster

_CRDS = ("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes", "k8s.cni.cncf.io_ipamclaims")


def node(number: int) -> dict[str, object]:
    """A CiliumNode as an agent writes it, some 2 KiB, with one /24 of the pool `default`."""
    high, low = divmod(number, 256)
    base = f"{10 + high // 256}.{high % 256}.{low}"
    address = f"172.{16 + high // 256}.{high % 256}.{low}"
    name = f"node-{number:05}"
    pools = {
        "requested": [{"pool": "default", "needed": {"ipv4-addrs": 16}}],
        "allocated": [{"pool": "default", "cidrs": [f"{base}.0/24"]}],
    }
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/worker": "",
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": f"region-1-{number % 3}",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"{number:032x}"}
            ],
        },
        "spec": {
            "addresses": [
                {"ip": address, "type": "InternalIP"},
                {"ip": f"{base}.1", "type": "CiliumInternalIP"},
            ],
            "alibaba-cloud": {},
            "azure": {},
            "bootid": f"{number:08x}-0000-4000-8000-000000000000",
            "encryption": {},
            "eni": {},
            "health": {"ipv4": f"{base}.2"},
            "ingress": {},
            "ipam": {"pools": pools},
        },
        "status": {
            "alibaba-cloud": {},
            "azure": {},
            "eni": {},
            "ipam": {"operator-status": {}},
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kube.fake")
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=0, help="CiliumNodes in each of them")
    parser.add_argument("--minor", type=int, default=33, help="be like Kubernetes 1.MINOR")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        for _ in range(options.clusters):
            cluster = stack.enter_context(FakeCluster(minor=options.minor))
            cluster.crds(*_CRDS)
            for number in range(options.nodes):
                cluster.put(node(number), manager="cilium-operator")
            for stored in cluster.store.page(cluster.find_kind("ciliumnodes"), "").objects:
                stored.encoded("v2", listed=True)
            described = {
                "url": cluster.url,
                "ca": cluster.ca,
                "token": cluster.token,
                "kubeconfig": cluster.kubeconfig(),
                "kube_system_uid": cluster.kube_system_uid,
            }
            sys.stdout.write(json.dumps(described) + "\n")
            sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
