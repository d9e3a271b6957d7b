"""Does what runs agree with the register? Verdicts of a network's entries, claims and workloads.

The comparison is one statement in the database, whatever the number (claims/sql/workload_comparison.sql). For
somebody who sees some namespaces only, what is foreign does not exist: each namespace is compared by
itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Count, QuerySet

from claims.access.namespaces import EVERYTHING, Scope
from claims.core.workloads import results
from claims.core.workloads.results import Side
from claims.models import (
    Entry,
    IPAMClaim,
    NamespaceWorkloadComparison,
    Workload,
    WorkloadComparison,
)
from claims.models.workload_comparisons import ComparisonResult
from claims.models.workloads import WorkloadKind
from pools.core.block_fields import time
from pools.platform import database
from pools.sql import statements

VM_KIND = "VirtualMachine"
ORDER = ("section", "item", "beside")

Shape = dict[str, Any]


def rows(scope: Scope = EVERYTHING) -> QuerySet[Any]:
    """The verdicts that somebody sees. Filter by network: each that is left in is compared whole."""
    if scope.everything:
        return WorkloadComparison.objects.all()
    return NamespaceWorkloadComparison.objects.filter(
        scope.within("network__cluster_id", "namespace")
    )


def counts(network_id: int, scope: Scope = EVERYTHING) -> dict[str, int]:
    """By verdict, how many rows the network has of it: `{"matching": 3, "missing": 0, …}`."""
    return counts_of([network_id], scope)[network_id]


def counts_of(network_ids: Sequence[int], scope: Scope = EVERYTHING) -> dict[int, dict[str, int]]:
    """The same of some networks, by their ids, in one statement."""
    result_rows = rows(scope).filter(network_id__in=network_ids).order_by()
    counted = {pk: dict.fromkeys(ComparisonResult.values, 0) for pk in network_ids}
    for pk, verdict, number in result_rows.values_list("network_id", "verdict").annotate(
        Count("id")
    ):
        counted[pk][verdict] = number
    return counted


def shapes(result_rows: Sequence[Mapping[str, Any]]) -> list[Shape]:
    """Rows of `rows`, read by `.values()`, for people and programs; four statements at most.

    `{"verdict", "workload", "registered": {"source": "ippool|ipamclaim", "id", "name", "mac", "ips",
    "vm", "namespace"}, "running": {"mac", "ips"}, "reasons": [{"code", "message"}]}`; each part null
    when there is none, or none that may be seen.
    """
    entries = Entry.objects.select_related("ippool").in_bulk(_ids(result_rows, "entry_id"))
    claims = IPAMClaim.objects.in_bulk(_ids(result_rows, "claim_id"))
    workloads = Workload.objects.in_bulk(_ids(result_rows, "workload_id"))
    sides: list[tuple[Shape | None, Workload | None]] = []
    for row in result_rows:
        entry, claim = entries.get(row["entry_id"]), claims.get(row["claim_id"])
        shape = _of_entry(entry) if entry else _of_claim(claim) if claim else None
        sides.append((shape, workloads.get(row["workload_id"])))
    missing = [registered for registered, runs in sides if registered and runs is None]
    statuses = _vm_statuses(_ids(result_rows, "network_id"), missing)
    return [
        _shape(row, registered, runs, statuses)
        for row, (registered, runs) in zip(result_rows, sides, strict=True)
    ]


def _ids(result_rows: Collection[Mapping[str, Any]], column: str) -> set[int]:
    return {row[column] for row in result_rows if row[column] is not None}


def _of_entry(entry: Entry) -> Shape:
    return {
        "source": "ippool",
        "id": entry.pk,
        "name": entry.ippool.name,
        "mac": entry.mac,
        "ips": entry.ips,
        "vm": entry.vm,
        "namespace": entry.namespace,
    }


def _of_claim(claim: IPAMClaim) -> Shape:
    return {
        "source": "ipamclaim",
        "id": claim.pk,
        "name": claim.name,
        "mac": claim.mac,
        "ips": claim.ips or claim.ips_requested,
        "vm": claim.vm,
        "namespace": claim.namespace,
    }


def _of_workload(workload: Workload) -> Shape:
    return {
        "id": workload.pk,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "interface": workload.interface,
        "node": workload.node,
        "phase": workload.phase,
        "pods": workload.pods,
        "since": time(workload.since),
    }


def side(workload: Workload) -> Side:
    """What runs, for the comparison."""
    vm = workload.kind == WorkloadKind.VMI
    return Side(
        workload.mac,
        workload.ips,
        vm=workload.name if vm else "",
        namespace=workload.namespace,
        pod="" if vm else workload.name,
    )


def _registered_side(registered: Shape) -> Side:
    return Side(*(registered[name] for name in ("mac", "ips", "vm", "namespace")))


def _shape(
    row: Mapping[str, Any],
    registered: Shape | None,
    workload: Workload | None,
    statuses: Mapping[tuple[int, str, str], str],
) -> Shape:
    runs = side(workload) if workload else None
    registered_side = _registered_side(registered) if registered else None
    reasons: list[results.Reason] = []
    if registered_side and runs:
        reasons = [*results.differences(registered_side, runs), *results.unobserved_values(runs)]
    elif registered_side:
        status = statuses.get((row["network_id"], registered_side.namespace, registered_side.vm))
        reasons = [results.absence_reason(registered_side, status)]
    elif runs:
        reasons = [
            ("not_registered", f"Nothing is registered for {runs.who}."),
            *results.unobserved_values(runs),
        ]
    return {
        "verdict": row["verdict"],
        "workload": _of_workload(workload) if workload else None,
        "registered": registered,
        "running": {"mac": workload.mac, "ips": workload.ips} if workload else None,
        "reasons": [{"code": code, "message": message} for code, message in reasons],
    }


def _vm_statuses(
    networks: Collection[int], missing_shapes: Sequence[Shape]
) -> dict[tuple[int, str, str], str]:
    """The printableStatus of the VMs that are there, by network, namespace and name."""
    named_shapes = [shape for shape in missing_shapes if shape["vm"]]
    if not named_shapes:
        return {}
    values = {
        "networks": database.joined(networks),
        "namespaces": [shape["namespace"] for shape in named_shapes],
        "names": [shape["vm"] for shape in named_shapes],
        "kind": VM_KIND,
    }
    return {
        (row["network_id"], row["namespace"], row["name"]): row["status"]
        for row in database.fetch(_VM_STATUSES, values)
    }


_VM_STATUSES = statements.read("claims/vm_printable_statuses")


def shapes_by_entry(entry_ids: Collection[int], scope: Scope = EVERYTHING) -> dict[int, Shape]:
    """What runs with each of some entries of one page: as `shapes` has it, by the entry's id.

    Of several workloads the one that agrees best. By indexes alone, so that it costs the same in a
    network of any size. Entries that may not be seen are left out.
    """
    entry_rows = Entry.objects.filter(pk__in=entry_ids).select_related("ippool")
    entries = {
        entry.pk: entry
        for entry in entry_rows
        if scope.has(entry.ippool.cluster_id, entry.namespace)
    }
    beside: dict[int, tuple[int, list[int]]] = {}
    values = {"ids": database.joined(entries), "all": scope.everything}
    for row in database.fetch(_BESIDE, values):
        level, ids = beside.setdefault(row["id"], (row["level"], []))
        if level == row["level"]:
            ids.append(row["workload_id"])
    running = Workload.objects.in_bulk({pk for _, ids in beside.values() for pk in ids})
    registered = {pk: _of_entry(entry) for pk, entry in entries.items()}
    runs = {
        pk: _best(
            registered[pk], [running[workload_id] for workload_id in ids if workload_id in running]
        )
        for pk, (_, ids) in beside.items()
    }
    missing = [registered[pk] for pk in entries if runs.get(pk) is None]
    statuses = _vm_statuses({entry.ippool.network_id for entry in entries.values()}, missing)
    shapes_by_id = {}
    for pk, entry in entries.items():
        verdict = _verdict(registered[pk], runs.get(pk))
        row = {"verdict": verdict, "network_id": entry.ippool.network_id}
        shapes_by_id[pk] = _shape(row, registered[pk], runs.get(pk), statuses)
    return shapes_by_id


def _best(registered: Shape, workloads: Sequence[Workload]) -> Workload | None:
    agreeing = (
        workload
        for workload in workloads
        if _verdict(registered, workload) == ComparisonResult.MATCHING
    )
    return next(agreeing, workloads[0] if workloads else None)


def _verdict(registered: Shape, workload: Workload | None) -> str:
    if workload is None:
        return ComparisonResult.MISSING.value
    differs = any(results.differences(_registered_side(registered), side(workload)))
    return ComparisonResult.DIFFERENT.value if differs else ComparisonResult.MATCHING.value


# The same pairs as claims/sql/workload_comparison.sql finds, for a few entries.
_BESIDE = statements.read("claims/workloads_of_entries")
