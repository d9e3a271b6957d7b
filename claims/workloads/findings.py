"""Findings about workloads: MAC addresses and addresses that others of the network use, too."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

from claims.address_index import duplicates
from claims.models import IndexEntry, Workload
from claims.models.workloads import WorkloadKind
from pools.clusters.reconcile.handler import ReconcileFinding
from pools.models.observed import Severity

DUPLICATE = "workload_duplicate"


def duplicate_findings(cluster_id: int, kind: WorkloadKind) -> Iterator[ReconcileFinding]:
    """Yield a finding for each VM, pod or template of a VM that has duplicates."""
    conflicting = Q(duplicate_mac=True) | Q(duplicate_ip=True)
    rows = IndexEntry.objects.filter(conflicting, network__cluster=cluster_id, workload__kind=kind)
    ids = sorted(set(rows.values_list("workload_id", flat=True)))
    workloads = Workload.objects.select_related("network").in_bulk(ids)
    texts: dict[str, list[str]] = {}
    for pk, workload_duplicates in duplicates.of_workloads(ids).items():
        sentences = [
            duplicates.describe(duplicate)
            for duplicate in workload_duplicates
            if not duplicate.note
        ]
        network = f"on the network {workloads[pk].network.name}:"
        texts.setdefault(str(workloads[pk]), []).extend([network, *sentences])
    label = "template of the VM" if kind == WorkloadKind.TEMPLATE else kind.label
    for name, parts in texts.items():
        message = f"The {label} {name} has duplicates {' '.join(parts)}"
        yield ReconcileFinding(DUPLICATE, name, message[:990], Severity.ERROR)
