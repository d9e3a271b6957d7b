"""Cilium's operator, which writes PodCIDRs of CiliumNodes where Cadastre does not (pools/clusters/other_writers.py)."""

from __future__ import annotations

from pools.clusters.other_writers import OtherWriter, Trace
from pools.clusters.reconcile.handler import MANAGER
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.resources import CILIUM_NODE, Manifest, lease
from pools.models.connections import ManagedResource

_ALLOCATED = ("spec", "ipam", "pools", "allocated")


def _is_written_by_operator(manifest: Manifest) -> bool:
    return any(
        owner.manager.startswith("cilium-operator") and owner.owns_within(_ALLOCATED)
        for owner in managed_fields.parse(manifest)
        if owner.manager != MANAGER
    )


CILIUM_OPERATOR = OtherWriter(
    ManagedResource.POD_CIDRS,
    "Cilium's operator",
    lease("cilium-operator-resource-lock"),
    (
        Trace(
            CILIUM_NODE,
            _is_written_by_operator,
            "it is the field manager of spec.ipam.pools.allocated of the CiliumNode {name}",
            live_only=True,
        ),
    ),
    "Both allocate PodCIDRs: the operator is faster, keeps no cooldown, and takes Cadastre's blocks for its own."
    " Scale it down, or leave pod-cidrs off.",
)
