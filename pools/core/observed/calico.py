"""Parsers of Calico (crd.projectcalico.org/v1, projectcalico.org/v3): pools of its IPAM, and what it leaves out."""

from __future__ import annotations

from pools.core.observed.uses import Json, ObservedUses, Role, UseReader, texts


def parse(manifest: Json) -> ObservedUses:
    """Return the CIDR of an IPPool; one that only serves load balancers has that role."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    role = Role.LOAD_BALANCER if spec.data.get("allowedUses") == ["LoadBalancer"] else Role.POD_POOL
    details = [f"blocks of /{spec.data['blockSize']}"] if spec.has("blockSize") else []
    details += ["disabled"] if spec.data.get("disabled") is True else []
    reader.add_network(role, spec.data.get("cidr"), spec.path("cidr"), ", ".join(details))
    return reader.result()


def parse_reservation(manifest: Json) -> ObservedUses:
    """Return the CIDRs of an IPReservation, out of which Calico hands out nothing."""
    reader = UseReader(manifest)
    for path, cidr in texts(reader.fields.section("spec"), "reservedCIDRs"):
        reader.add_network(Role.POD_POOL, cidr, path, "reserved")
    return reader.result()
