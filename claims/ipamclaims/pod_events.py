"""Kubernetes events on launcher pods: why the VM does not get its address.

They report refused claims and declined reviews of mutate-pods. A pod has no uid while it is admitted, so the
event is written after the pod was observed. A failure to write an event is only logged.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.core.workloads import pod_mutation, vm_addresses
from claims.core.workloads.pod_mutation import Refusal
from pools.clusters.reconcile.handler import BUGS, MANAGER, SyncContext
from pools.core.kubernetes import resources
from pools.platform import database
from pools.platform.outbound import faults
from pools.sql import statements

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
    event = pod_mutation.render_event(refusal, existing_event)
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
        if row["code"] not in pod_mutation.NOTHING_REFUSED:
            moment: datetime = row["at"]
            yield Refusal(
                row["namespace"],
                row["pod"],
                row["uid"],
                reason=pod_mutation.event_reason(row["code"]),
                # Whoever sees the pod sees the event (rule `webhook-answers-name-no-other-namespace`).
                message=vm_addresses.NAMING_OTHERS.get(row["code"], row["message"]),
                moment=f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            )


_CLAIMS = statements.read("claims/refused_claims_of_launchers")
_DECISIONS = statements.read("claims/decisions_on_launchers")
