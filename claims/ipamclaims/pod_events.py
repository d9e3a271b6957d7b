"""Why a VM does not get its address, as an event on its launcher pod.

Refused claims, and what mutate-pods declined: a pod has no uid yet when it is admitted, so that the event
is written when the pod was seen. That an event cannot be written fails nothing.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from claims.core.ipamclaims import dialects
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.core.workloads import pod_events
from claims.core.workloads.pod_events import Refusal
from pools.clusters.reconcile.handler import MANAGER, SyncContext
from pools.core.kubernetes import resources
from pools.platform import database
from pools.platform.outbound import faults

MOST = 200  # pods of a cluster at once
_AGAIN = 1800  # seconds until the cluster is asked again: it forgets events after an hour
_written: dict[tuple[int, str, str], float] = {}  # by cluster, event and moment, in this process

log = logging.getLogger(__name__)


def tell(context: SyncContext) -> None:
    """Write the events that are missing; not in a transaction, for the cluster may be slow."""
    if context.dry_run:
        return
    now = time.monotonic()
    for refusal in refusals(context.cluster.pk):
        key = (context.cluster.pk, refusal.namespace + "/" + refusal.name, refusal.moment)
        if now - _written.get(key, -_AGAIN) < _AGAIN:
            continue
        try:
            _write(context, refusal)
        except faults.Rejected as error:
            log.info("an event on %s was refused: %s", refusal.pod, error.message)
        except faults.ClusterFault as error:
            log.info("no events on pods of %s: %s", context.cluster, error.message)
            return
        _written[key] = now
    for key in [key for key, moment in _written.items() if now - moment >= _AGAIN]:
        _written.pop(key, None)


def _write(context: SyncContext, refusal: Refusal) -> None:
    try:
        before = context.client.get(resources.EVENT, refusal.name, refusal.namespace)
    except faults.NotFound:
        before = None
    event = pod_events.render(refusal, before)
    if event is not None:
        context.prove()
        context.client.apply(resources.EVENT, event, manager=MANAGER)


def refusals(cluster_id: int) -> list[Refusal]:
    """Of all launcher pods that are not over."""
    return [*_of_claims(cluster_id), *_of_decisions(cluster_id)][:MOST]


def _of_claims(cluster_id: int) -> Iterator[Refusal]:
    for row in database.fetch(_CLAIMS, {"cluster": cluster_id, "most": MOST}):
        condition = dialects.allocation_condition(json.loads(row["conditions"]))
        outcome = dialects.outcome_of(condition)
        if condition is not None and outcome not in {None, ClaimOutcome.ALLOCATED}:
            yield Refusal(
                row["namespace"], row["pod"], row["uid"],
                reason=str(condition.get("reason") or "AddressRefused"),
                message=f"IPAMClaim {row['name']}: {condition.get('message', '')}",
                moment=str(condition.get("lastTransitionTime") or ""),
            )  # fmt: skip


def _of_decisions(cluster_id: int) -> Iterator[Refusal]:
    for row in database.fetch(_DECISIONS, {"cluster": cluster_id, "most": MOST}):
        if row["code"] not in pod_events.NOTHING_REFUSED:
            moment: datetime = row["at"]
            yield Refusal(
                row["namespace"], row["pod"], row["uid"],
                reason=pod_events.reason(row["code"]),
                message=row["message"],
                moment=f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            )  # fmt: skip


_LAUNCHERS = """
    o.cluster_id = %(cluster)s AND o.kind = 'Pod' AND o.missed_at IS NULL
    AND o.manifest #>> '{metadata,labels,kubevirt.io}' = 'virt-launcher'
    AND COALESCE(o.manifest #>> '{status,phase}', '') NOT IN ('Succeeded', 'Failed')
"""
_IS_OF = """
    {vm} IN (o.manifest #>> '{{metadata,annotations,kubevirt.io/domain}}',
             o.manifest #>> '{{metadata,labels,vm.kubevirt.io/name}}')
"""
_CLAIMS = f"""
    WITH refused AS MATERIALIZED (
        SELECT namespace, name, vm, conditions FROM claims_ipamclaim
        WHERE cluster_id = %(cluster)s AND ips = '{{}}' AND vm <> '' AND deleted_at IS NULL
          AND gone_at IS NULL AND jsonb_path_exists(conditions, '$[*] ? (@.status == "False")')
        ORDER BY id LIMIT %(most)s)
    SELECT c.namespace, c.name, c.conditions::text AS conditions, o.name AS pod, o.uid
    FROM refused c JOIN pools_observedobject o ON o.namespace = c.namespace
    WHERE {_LAUNCHERS} AND {_IS_OF.format(vm="c.vm")}
    ORDER BY o.id
"""  # noqa: S608  # no value is formatted in
# Of several decisions the one that is nearest in time to the pod's creation; both clocks may be off.
_DECISIONS = f"""
    WITH recent AS MATERIALIZED (
        SELECT namespace, vm, code, message, at FROM claims_decision
        WHERE cluster_id = %(cluster)s AND path = 'mutate-pods' AND operation = 'CREATE' AND vm <> ''
          AND at > ipam_now() - interval '1 hour'
        ORDER BY id DESC LIMIT %(most)s)
    SELECT DISTINCT ON (o.id) d.namespace, d.code, d.message, d.at, o.name AS pod, o.uid
    FROM recent d JOIN pools_observedobject o ON o.namespace = d.namespace
    CROSS JOIN LATERAL (SELECT abs(extract(epoch FROM d.at
        - (o.manifest #>> '{{metadata,creationTimestamp}}')::timestamptz)) AS seconds) apart
    WHERE {_LAUNCHERS} AND {_IS_OF.format(vm="d.vm")} AND apart.seconds < 60
    ORDER BY o.id, apart.seconds
"""  # noqa: S608
