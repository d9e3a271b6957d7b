"""What is written to a cluster for IPAMClaims: their status, the spec of the register's claims, and events on pods.

The events on launcher pods say why the VM does not get its address: refused claims and declined reviews of mutate-pods.
A pod has no uid while it is admitted, so the event is written after the pod was observed. A failure to write an event
is only logged.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome, Dialect
from claims.core.ipamclaims.ipamclaim import Claim
from claims.core.resources import IPAM_CLAIM
from claims.core.workloads import mutation, vm_addresses
from claims.core.workloads.mutation import Refusal
from claims.models import IPAMClaim
from pools.clusters.reconcile.handler import BUGS, MANAGER, STATUS_MANAGER, SyncContext
from pools.core.kubernetes import managed_fields, resources
from pools.core.kubernetes.resources import Manifest
from pools.models import ObservedObject
from pools.platform import database
from pools.platform.outbound import faults
from pools.sql import statements


def claims_with_unwritten_status(cluster_id: int) -> list[IPAMClaim]:
    """Return the claims whose status in the cluster differs from the register.

    The owner pod is compared only if Cadastre wrote the status: other managers keep theirs.
    """
    values = {"cluster": cluster_id, "manager": f'[{{"manager": "{STATUS_MANAGER}"}}]'}
    ids = [pk for (pk,) in database.rows(_UNWRITTEN, values)]
    if not ids:
        return []
    return list(IPAMClaim.objects.filter(pk__in=ids).select_related("network").order_by("pk"))


_UNWRITTEN = statements.read("claims/claims_with_unwritten_status")


def status_manifest(
    claim: IPAMClaim, current: Manifest | None, *, dialect: Dialect, now: datetime
) -> Manifest | None:
    """Return the status to apply to the object, or None if the object has another uid.

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
    owns_pod = any(
        owner.manager == STATUS_MANAGER and owner.owns(("status", "ownerPod"))
        for owner in managed_fields.parse(current)
    )
    if "ownerPod" not in rendered_status and owns_pod:
        # API servers before 1.22 set an omitted field to null, which the CRD's schema refuses.
        rendered_status["ownerPod"] = {"name": ""} if dialect.pod_is_object else ""
    return {
        "apiVersion": IPAM_CLAIM.api_version,
        "kind": IPAM_CLAIM.kind,
        "metadata": {"name": claim.name, "namespace": claim.namespace},
        "status": rendered_status,
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
    value = Claim(
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
    return ipamclaim.render(value, dialect, status=with_status)


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


def is_written_here(manifest: Manifest) -> bool:
    """Return True if the register wrote fields of the object, outside of its subresources."""
    return any(
        owner.manager == MANAGER and not owner.subresource
        for owner in managed_fields.parse(manifest)
    )


MOST = 200  # pods of a cluster in one call
_REPEAT_AFTER = (
    1800  # seconds until an event is written again; clusters delete events after an hour
)
_written_at: dict[
    tuple[int, str, str], float
] = {}  # by cluster, event and timestamp, in this process

log = logging.getLogger(__name__)


def write_events(context: SyncContext) -> None:
    """Write the missing events; call this outside of a transaction, because the cluster may be slow."""
    if context.dry_run:
        return
    now = time.monotonic()
    for refusal in refusals(context.cluster.pk):
        key = (context.cluster.pk, refusal.namespace + "/" + refusal.name, refusal.moment)
        if now - _written_at.get(key, -_REPEAT_AFTER) < _REPEAT_AFTER:
            continue
        try:
            _write(context, refusal)
        except faults.Rejected as error:
            log.info("the cluster rejected an event on %s: %s", refusal.pod, error.message)
        except BUGS:
            log.exception(
                "no event could be written to the pod %s/%s", refusal.namespace, refusal.pod
            )
        except faults.ClusterFault as error:
            log.info("no events could be written to pods of %s: %s", context.cluster, error.message)
            return
        _written_at[key] = now
    for key in [key for key, moment in _written_at.items() if now - moment >= _REPEAT_AFTER]:
        _written_at.pop(key, None)


def _write(context: SyncContext, refusal: Refusal) -> None:
    existing_event = context.client.find(resources.EVENT, refusal.name, refusal.namespace)
    event = mutation.render_event(refusal, existing_event)
    if event is not None:
        context.prove()
        context.client.apply(resources.EVENT, event, manager=MANAGER)


def refusals(cluster_id: int) -> list[Refusal]:
    """Return the refusals of all launcher pods that have not ended."""
    return [*_refused_claims(cluster_id), *_declined_pods(cluster_id)][:MOST]


def _refused_claims(cluster_id: int) -> Iterator[Refusal]:
    for row in database.fetch(_CLAIMS, {"cluster": cluster_id, "most": MOST}):
        condition = dialects.allocation_condition(json.loads(row["conditions"]))
        outcome = dialects.outcome_of(condition)
        if condition is not None and outcome not in {None, ClaimOutcome.ALLOCATED}:
            yield Refusal(
                row["namespace"],
                row["pod"],
                row["uid"],
                reason=str(condition.get("reason") or "AddressRefused"),
                message=f"IPAMClaim {row['name']}: {condition.get('message', '')}",
                moment=str(condition.get("lastTransitionTime") or ""),
            )


def _declined_pods(cluster_id: int) -> Iterator[Refusal]:
    for row in database.fetch(_DECISIONS, {"cluster": cluster_id, "most": MOST}):
        if row["code"] not in mutation.NOTHING_REFUSED:
            moment: datetime = row["at"]
            yield Refusal(
                row["namespace"],
                row["pod"],
                row["uid"],
                reason=mutation.event_reason(row["code"]),
                # Whoever sees the pod sees the event (rule `webhook-answers-name-no-other-namespace`).
                message=vm_addresses.NAMING_OTHERS.get(row["code"], row["message"]),
                moment=f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            )


_CLAIMS = statements.read("claims/refused_claims_of_launchers")
_DECISIONS = statements.read("claims/decisions_on_launchers")
