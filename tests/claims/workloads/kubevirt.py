"""A cluster with OVN-Kubernetes and KubeVirt, and the objects that a VM consists of."""

import json
from typing import Any

from claims.models import Workload
from claims.networks.handlers import NetworkAttachmentDefinitions
from claims.workloads.handlers import Pods, VirtualMachineInstances, VirtualMachines
from pools.models import ObservedObject, SyncRun
from tests.claims.networks.ovn import Ovn
from tests.kube.manifests import Manifest, build, owner_reference

CRDS = (
    "k8s.cni.cncf.io_network-attachment-definitions",
    "kubevirt.io_virtualmachines",
    "kubevirt.io_virtualmachineinstances",
)
MAC = "02:00:00:00:00:0a"
NAMESPACE = "default"


def handlers() -> list[Any]:
    return [NetworkAttachmentDefinitions(), VirtualMachines(), VirtualMachineInstances(), Pods()]


class KubeVirt(Ovn):
    def passed(self, without: str = "") -> SyncRun:
        """A full pass, as a worker makes it; `without` a kind of which nothing is known yet."""
        run = self.sync(*(handler for handler in handlers() if handler.kind != without))
        assert not run.error_code, (run.error_code, run.error)
        return run

    def twice(self) -> None:
        """Two passes, so far apart that what both lack is gone."""
        self.passed()
        ObservedObject.objects.filter(missed_at__isnull=False).update(missed_at="2026-01-01T00:00Z")
        self.passed()

    def remove(self, plural: str, name: str, namespace: str = NAMESPACE) -> None:
        super().remove(plural, name, namespace)

    def rows(self) -> list[Workload]:
        """Those that run; templates of VMs do not."""
        rows = Workload.objects.filter(network__cluster=self.cluster).exclude(kind="vm")
        return list(rows.order_by("name", "interface"))

    def running(self) -> list[tuple[str, str, str | None, list[str], list[str]]]:
        """Kind, name, MAC, addresses and pods of all that runs."""
        return [(row.kind, row.name, row.mac, row.ips, row.pods) for row in self.rows()]

    def stored_manifests(self, kind: str) -> dict[str, Manifest]:
        rows = ObservedObject.objects.filter(cluster=self.cluster, kind=kind)
        return dict(rows.values_list("name", "manifest"))

    def vm(
        self, name: str, status: str = "Running", *, namespace: str = NAMESPACE, mac: str = MAC
    ) -> Manifest:
        spec = {"runStrategy": "Always", "template": {"spec": _spec(mac)}}
        parts: Manifest = {"spec": spec, "status": {"printableStatus": status}}
        return self.put(build("kubevirt.io/v1", "VirtualMachine", name, namespace, **parts))

    def vmi(self, vm: Manifest, *ips: str, phase: str = "Running", node: str = "n1") -> Manifest:
        spec = vm["spec"]["template"]["spec"]
        mac = spec["domain"]["devices"]["interfaces"][0]["macAddress"]
        interface = {"name": "default", "mac": mac, "infoSource": "domain, guest-agent",
                     "ipAddress": ips[0] if ips else None, "ipAddresses": list(ips)}  # fmt: skip
        parts: Manifest = {
            "metadata": {"ownerReferences": [owner(vm)]},
            "spec": spec,
            "status": {"phase": phase, "nodeName": node, "interfaces": [interface]},
        }
        names = vm["metadata"]["name"], vm["metadata"]["namespace"]
        return self.put(build("kubevirt.io/v1", "VirtualMachineInstance", *names, **parts))

    def pod(self, name: str, networks: Any = None, **more: Any) -> Manifest:
        annotations = more.pop("annotations", {})
        if networks is not None:
            text = networks if isinstance(networks, str) else json.dumps(networks)
            annotations = annotations | {"k8s.ovn.org/pod-networks": text}
        metadata = {"annotations": annotations} | more.pop("metadata", {})
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]} | more.pop(
            "spec", {}
        )
        parts: Manifest = {
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Running"} | more,
        }
        return self.put(build("v1", "Pod", name, NAMESPACE, **parts))

    def launcher(self, name: str, vmi: Manifest, *ips: str, node: str = "n1", **more: Any) -> Manifest:  # fmt: skip
        metadata = {"labels": {"kubevirt.io": "virt-launcher"}, "ownerReferences": [owner(vmi)]}
        annotations = {"kubevirt.io/domain": vmi["metadata"]["name"]}
        networks = attachment(*ips) if ips else None
        return self.pod(
            name, networks, metadata=metadata | _with(annotations, networks),
            spec={"nodeName": node}, **more,
        )  # fmt: skip


def _with(annotations: Manifest, networks: Any) -> Manifest:
    if networks is not None:
        annotations = annotations | {"k8s.ovn.org/pod-networks": json.dumps(networks)}
    return {"annotations": annotations}


def attachment(*ips: str, mac: str = MAC, nad: str = "default/prod") -> Manifest:
    """As OVN-Kubernetes annotates a pod of a namespace with a primary network."""
    default = {"ip_addresses": ["10.244.0.9/24"], "mac_address": "0a:58:0a:f4:00:09", "role": "infrastructure-locked"}  # fmt: skip
    return {
        "default": default,
        nad: {"ip_addresses": list(ips), "mac_address": mac, "role": "primary"},
    }


def owner(manifest: Manifest) -> Manifest:
    return owner_reference(manifest, controller=True)


def _spec(mac: str) -> Manifest:
    interfaces = [{"name": "default", "macAddress": mac, "binding": {"name": "l2bridge"}}]
    return {
        "networks": [{"name": "default", "pod": {}}],
        "domain": {"devices": {"interfaces": interfaces}},
    }
