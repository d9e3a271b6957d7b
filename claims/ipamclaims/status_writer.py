"""Manifests to apply for IPAMClaims: their status, and the spec of claims created in the register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import Dialect
from claims.core.ipamclaims.ipamclaim import Claim
from claims.core.resources import IPAM_CLAIM
from claims.models import IPAMClaim
from pools.core import errors
from pools.core.kubernetes import managed_fields
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements


def claims_with_unwritten_status(cluster_id: int, manager: str) -> list[IPAMClaim]:
    """Return the claims whose status in the cluster differs from the register.

    The owner pod is compared only if `manager` wrote the status: other managers keep theirs.
    """
    values = {"cluster": cluster_id, "manager": f'[{{"manager": "{manager}"}}]'}
    ids = [pk for (pk,) in database.rows(_UNWRITTEN, values)]
    if not ids:
        return []
    return list(IPAMClaim.objects.filter(pk__in=ids).select_related("network").order_by("pk"))


_UNWRITTEN = statements.read("claims/claims_with_unwritten_status")


def status_manifest(
    claim: IPAMClaim,
    current: Mapping[str, Any] | None,
    dialect: Dialect,
    now: datetime,
    *,
    manager: str,
) -> Manifest | None:
    """Return the status that `manager` applies to the object, or None if the object has another uid.

    Existing addresses are never overwritten, and conditions of other types are kept.
    """
    if current is None or not claim.uid or current["metadata"].get("uid") != claim.uid:
        return None
    current_status = current.get("status") or {}
    ips = list(current_status.get("ips") or claim.ips)
    conditions = [
        condition
        for condition in current_status.get("conditions") or ()
        if isinstance(condition, dict)
    ]
    ours = dialects.allocation_condition(claim.conditions)
    if ours is not None and not dialects.matches(dialects.allocation_condition(conditions), ours):
        conditions = dialects.merge_conditions(conditions, ours, now=now)
    rendered_status = dialects.render_status(ips, claim.owner_pod, conditions, dialect)
    if "ownerPod" not in rendered_status and _owns_pod(current, manager):
        # API servers before 1.22 set an omitted field to null, which the CRD's schema refuses.
        rendered_status["ownerPod"] = {"name": ""} if dialect.pod_is_object else ""
    return _identity(claim) | {"status": rendered_status}


def _owns_pod(current: Mapping[str, Any], manager: str) -> bool:
    return any(
        owner.manager == manager and owner.owns(("status", "ownerPod"))
        for owner in managed_fields.parse(dict(current))
    )


def _identity(claim: IPAMClaim) -> Manifest:
    return {
        "apiVersion": IPAM_CLAIM.api_version,
        "kind": IPAM_CLAIM.kind,
        "metadata": {"name": claim.name, "namespace": claim.namespace},
    }


def register_claims(cluster_id: int) -> list[IPAMClaim]:
    """Return the claims that were created in the register and should exist in the cluster.

    Claims of a deleted VM are left out: the cluster would garbage-collect them again.
    """
    rows = IPAMClaim.objects.filter(cluster=cluster_id, follows_cluster=False, gone_at=None)
    vms = ObservedObject.objects.filter(
        cluster=cluster_id, kind="VirtualMachine", uid=OuterRef("vm_uid"), missed_at=None
    )
    rows = rows.filter(Q(vm_uid="") | Exists(vms), deleted_at=None)
    return list(rows.select_related("network").order_by("pk"))


def manifest(claim: IPAMClaim, dialect: Dialect, *, with_status: bool = False) -> Manifest:
    """Return the manifest of a claim, by the register's values."""
    return ipamclaim.render(claim_value(claim), dialect, status=with_status)


def claim_value(claim: IPAMClaim) -> Claim:
    return Claim(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        network=claim.network.name,
        interface=claim.interface,
        mac=claim.mac,
        ips_requested=tuple(claim.ips_requested),
        ips=tuple(claim.ips),
        owner_pod=claim.owner_pod,
        conditions=tuple(claim.conditions),
        vm=claim.vm,
        vm_uid=claim.vm_uid,
        owner_kind="VirtualMachine" if claim.vm_uid and not claim.follows_cluster else "",
    )


def spec_manifest(
    claim: IPAMClaim, current: Mapping[str, Any] | None, dialect: Dialect
) -> Manifest | None:
    """Return the manifest to apply for a claim of the register.

    None if its object was deleted: it is not there any more, or has another uid.
    """
    if claim.uid and (current is None or current["metadata"].get("uid") != claim.uid):
        return None
    return manifest(claim, dialect)


def unwritable_claims(claims: Sequence[IPAMClaim], dialect: Dialect) -> list[IPAMClaim]:
    """Return the claims whose request fits no field of the cluster's CRD, and no address shows it."""
    return [
        claim
        for claim in claims
        if (claim.mac and not dialect.spec_mac)
        or (claim.ips_requested and not claim.ips and not dialect.spec_ips)
    ]


def is_written_by(manifest: Mapping[str, Any], manager: str) -> bool:
    """Return True if the manager wrote fields of the object, outside of its subresources."""
    return any(
        owner.manager == manager and not owner.subresource
        for owner in managed_fields.parse(dict(manifest))
    )


def problem_text(problems: Sequence[errors.FieldProblem]) -> str:
    """Return the parse errors of an object in one line."""
    return "; ".join(f"{problem.field}: {problem.message}" for problem in problems)[:1000]
