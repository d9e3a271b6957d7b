"""OVN-Kubernetes, which answers IPAMClaims where Cadastre does not (pools/clusters/other_writers.py)."""

from __future__ import annotations

from claims.core.resources import CLUSTER_UDN, IPAM_CLAIM, UDN
from pools.clusters.other_writers import OtherWriter, Trace
from pools.clusters.reconcile.handler import MANAGER, STATUS_MANAGER
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.resources import Manifest, lease
from pools.models.connections import ManagedResource


def _is_created(manifest: Manifest) -> bool:
    """Return True for a network of which OVN-Kubernetes says that it has created it."""
    status = manifest.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        condition.get("type") == "NetworkCreated" and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, dict)
    )


def _is_answered_by_another(manifest: Manifest) -> bool:
    return any(
        owner.owns_within(("status", "ips"))
        for owner in managed_fields.parse(manifest)
        if owner.manager not in {MANAGER, STATUS_MANAGER}
    )


_CREATED = "it has created the network {name}"
OVN_KUBERNETES = OtherWriter(
    ManagedResource.CLAIMS,
    "OVN-Kubernetes",
    lease("ovn-kubernetes-master"),
    (
        Trace(CLUSTER_UDN, _is_created, _CREATED),
        Trace(UDN, _is_created, _CREATED),
        Trace(
            IPAM_CLAIM,
            _is_answered_by_another,
            "another field manager writes the status of the IPAMClaim {name}",
        ),
    ),
    "Both answer IPAMClaims: Cadastre grants an address before a pod exists, OVN-Kubernetes does not know of it and"
    " may give it to another pod, so that two run with one address. Leave claims off where OVN-Kubernetes answers.",
)
