"""Names of IPAMClaims, for every entry point that creates claims: form, REST API and imports."""

from __future__ import annotations

from collections.abc import Mapping

from claims.core.ipamclaims import names as ipamclaim_names
from claims.core.networks import udn
from claims.core.workloads import vm_objects
from claims.models import NAD, Network
from pools.models import ObservedObject


def claim_name(network: Network, namespace: str, vm: str) -> str:
    """Return the name of a VM's claim: `<vm>.<network name in the VM's spec>`.

    For a VM that is not observed yet it is `<vm>.<network>`.
    """
    return ipamclaim_names.compose_key(
        vm, vm_networks(network, vm).get((namespace, vm), network.name)
    )


def vm_networks(network: Network, vm: str | None = None) -> Mapping[tuple[str, str], str]:
    """Return the name of the network in the spec of observed VMs, by (namespace, name).

    With `vm` only VMs of this name are read.
    """
    nads = NAD.objects.filter(network=network).values_list("namespace", "name", "role")
    names = {f"{namespace}/{name}" for namespace, name, _ in nads}
    primary_namespaces = {namespace for namespace, _, role in nads if role == udn.PRIMARY}
    rows = ObservedObject.objects.filter(
        cluster_id=network.cluster_id,
        kind__in=[vm_objects.VM, vm_objects.VMI],
        namespace__in={namespace for namespace, _, _ in nads},
        **({} if vm is None else {"name": vm}),
    )
    names_by_vm: dict[tuple[str, str], str] = {}
    for namespace, name, manifest in rows.order_by("-kind").values_list(
        "namespace", "name", "manifest"
    ):
        network_name = vm_objects.network_name(
            manifest, names, namespace=namespace, primary=namespace in primary_namespaces
        )
        if network_name:
            names_by_vm[namespace, name] = network_name  # the VirtualMachine comes last
    return names_by_vm
