"""What a cluster has yet to be told of claims: statuses, and objects of claims that were made here."""

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
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements

Manifest = dict[str, Any]


def claims_with_unwritten_status(cluster_id: int, manager: str) -> list[IPAMClaim]:
    """Claims whose object does not say in its status what the register says.

    The owner pod is told only where `manager` wrote the status: other writers keep their own.
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
    """What `manager` applies to the status of the object; None when it is another one, or says more.

    Addresses that are there are never overwritten, and conditions of other types are kept.
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
        # A field that is left out becomes null on servers before 1.22, which the definition refuses.
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
    """The claims that were made in the register, and are to be there in the cluster.

    One whose VM is gone goes with it: written again, it would be collected again as garbage.
    """
    rows = IPAMClaim.objects.filter(cluster=cluster_id, follows_cluster=False, gone_at=None)
    vms = ObservedObject.objects.filter(
        cluster=cluster_id, kind="VirtualMachine", uid=OuterRef("vm_uid"), missed_at=None
    )
    rows = rows.filter(Q(vm_uid="") | Exists(vms), deleted_at=None)
    return list(rows.select_related("network").order_by("pk"))


def manifest(claim: IPAMClaim, dialect: Dialect, *, with_status: bool = False) -> Manifest:
    """The object of a claim as the register has it."""
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
    """What to apply so that a claim that was made here is there; None for another's object."""
    if current is not None and claim.uid and current["metadata"].get("uid") != claim.uid:
        return None
    return manifest(claim, dialect)


def unwritable_claims(claims: Sequence[IPAMClaim], dialect: Dialect) -> list[IPAMClaim]:
    """Those whose requests the cluster's definition has no fields for, nor the status an answer."""
    return [
        claim
        for claim in claims
        if (claim.mac and not dialect.spec_mac)
        or (claim.ips_requested and not claim.ips and not dialect.spec_ips)
    ]


def is_written_by(manifest: Mapping[str, Any], manager: str) -> bool:
    """Whether this manager wrote fields of the object's spec."""
    return any(
        owner.manager == manager and not owner.subresource
        for owner in managed_fields.parse(dict(manifest))
    )


def problem_text(problems: Sequence[errors.FieldProblem]) -> str:
    """What of an object cannot be understood, in one line."""
    return "; ".join(f"{problem.field}: {problem.message}" for problem in problems)[:1000]
