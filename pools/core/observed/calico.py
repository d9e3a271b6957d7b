"""Parser of Calico's IPPool (crd.projectcalico.org/v1, projectcalico.org/v3), from which Calico's IPAM hands out."""

from __future__ import annotations

from pools.core.observed.uses import Json, ObservedUses, Role, UseReader


def parse(manifest: Json) -> ObservedUses:
    """Return the CIDR of an IPPool; one that only serves load balancers has that role."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    role = Role.LOAD_BALANCER if spec.data.get("allowedUses") == ["LoadBalancer"] else Role.POD_POOL
    details = [f"blocks of /{spec.data['blockSize']}"] if spec.has("blockSize") else []
    details += ["disabled"] if spec.data.get("disabled") is True else []
    reader.add_network(role, spec.data.get("cidr"), spec.path("cidr"), ", ".join(details))
    return reader.result()
