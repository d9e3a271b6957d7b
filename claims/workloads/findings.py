"""Findings about workloads: MAC addresses and addresses that others of the network use, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import Q

from claims.address_index import duplicates
from claims.address_index.duplicates import Duplicate
from claims.models import IndexEntry, Workload
from claims.models.workloads import WorkloadKind
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.models.observed import Severity

DUPLICATE = "workload_duplicate"


def duplicate_findings(
    context: SyncContext, handler_kind: str, kind: WorkloadKind
) -> Iterator[ReconcileFinding]:
    """Yield a finding for each VM, pod or template of a VM that has duplicates."""
    conflicting = Q(duplicate_mac=True) | Q(duplicate_ip=True)
    rows = IndexEntry.objects.filter(
        conflicting, network__cluster=context.cluster, workload__kind=kind
    )
    ids = sorted(set(rows.values_list("workload_id", flat=True)))
    workloads = Workload.objects.select_related("network").in_bulk(ids)
    by_name: dict[str, list[Workload]] = {}
    for pk in ids:
        by_name.setdefault(str(workloads[pk]), []).append(workloads[pk])
    found = dict(
        ingest.find_together(
            context,
            handler_kind,
            ids,
            lambda batch: duplicates.of_workloads(batch).items(),
            name=lambda pk: str(workloads[pk]),
        )
    )
    yield from ingest.find_each(
        context,
        handler_kind,
        by_name,
        lambda name: _finding(name, [(each, found.get(each.pk, ())) for each in by_name[name]]),
    )


def _finding(
    name: str, workloads: Sequence[tuple[Workload, Sequence[Duplicate]]]
) -> Iterator[ReconcileFinding]:
    kind = WorkloadKind(workloads[0][0].kind)
    parts = [
        text
        for workload, workload_duplicates in workloads
        for text in (
            f"on the network {workload.network.name}:",
            *(duplicates.describe(each) for each in workload_duplicates if not each.note),
        )
    ]
    label = "template of the VM" if kind == WorkloadKind.TEMPLATE else kind.label
    message = f"The {label} {name} has duplicates {' '.join(parts)}"
    yield ReconcileFinding(DUPLICATE, name, message[:990], Severity.ERROR)
