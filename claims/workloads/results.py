"""Comparison of running workloads with the register: results for entries, claims and workloads.

The comparison is a view in the database (claims/sql/workload_sql). For users with a limited scope, objects
of other namespaces do not exist: each namespace is compared by itself.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from claims import models
from claims.access.namespaces import EVERYTHING, Scope
from claims.address_index import duplicates
from claims.models.workloads import ComparisonResult, WorkloadKind
from pools.core import redaction
from pools.models.fields import Now
from pools.platform import database
from pools.sql import statements

VM_KIND = "VirtualMachine"
ORDER = ("section", "item", "beside")
LARGE = 500  # entries, claims and workloads; the overview shows the worker's last counts of larger networks

JsonObject = dict[str, Any]
Reason = tuple[str, str]  # code, message


@dataclass(frozen=True)
class Side:
    """One side of the comparison; `vm` is "" if the side names none. Addresses are strings."""

    mac: str | None
    ips: Sequence[str]
    vm: str = ""
    namespace: str = ""
    pod: str = ""  # of a workload without a VM

    @property
    def who(self) -> str:
        name = self.vm or self.pod
        return f"{self.namespace}/{name}" if self.namespace else name


def differences(registered: Side, running: Side) -> Iterator[Reason]:
    """Yield other_mac, other_vm, address_not_running, address_not_registered; nothing if both match.

    A value that the workload does not report counts as equal; see `unobserved_values`.
    """
    if registered.mac and running.mac and registered.mac != running.mac:
        yield "other_mac", f"It runs with {running.mac}; {registered.mac} is registered."
    if registered.vm and not _same_vm(registered, running):
        yield "other_vm", f"It belongs to {running.who}; {registered.who} is registered."
    if registered.ips and running.ips:
        registered_hosts, running_hosts = _hosts(registered.ips), _hosts(running.ips)
        if not_running := [host for host in registered_hosts if host not in running_hosts]:
            yield "address_not_running", f"It does not run with {', '.join(not_running)}."
        if not_registered := [host for host in running_hosts if host not in registered_hosts]:
            yield "address_not_registered", f"It runs with {', '.join(not_registered)}."


def unobserved_values(running: Side) -> Iterator[Reason]:
    """Yield no_mac_seen, no_address_seen for values that could not be compared."""
    if running.mac is None:
        yield "no_mac_seen", "The cluster does not report its MAC address."
    if not running.ips:
        yield "no_address_seen", "The cluster does not report its addresses."


def absence_reason(registered: Side, vm_status: str | None) -> Reason:
    """Return why there is no workload: vm_not_named, vm_unknown, vm_stopped, vm_not_attached.

    `vm_status` is the printableStatus of the VirtualMachine, None if there is no such VM.
    """
    if not registered.vm:
        return "vm_not_named", "No VM is registered, and no workload has this MAC or IP address."
    if vm_status is None:
        return "vm_unknown", f"The VM {registered.who} does not exist in the cluster."
    if vm_status == "Running":
        return (
            "vm_not_attached",
            f"The VM {registered.who} is running, but is not attached to this network.",
        )
    status = f" ({vm_status})" if vm_status else ""
    return "vm_stopped", f"The VM {registered.who} is not running{status}."


def _same_vm(registered: Side, running: Side) -> bool:
    return registered.vm == running.vm and registered.namespace in {"", running.namespace}


def _hosts(ips: Iterable[str]) -> list[str]:
    return [text.partition("/")[0] for text in ips]


def visible_rows(scope: Scope = EVERYTHING) -> QuerySet[Any]:
    """Return the results in the scope. Filter them by network: each remaining network is compared fully."""
    if scope.everything:
        return models.WorkloadComparison.objects.all()
    return models.NamespaceWorkloadComparison.objects.filter(
        scope.within("network__cluster_id", "namespace")
    )


def result_counts(network_id: int, scope: Scope = EVERYTHING) -> dict[str, int]:
    """Return the number of rows of a network by result: `{"matching": 3, "missing": 0, …}`."""
    return counts_by_network([network_id], scope)[network_id]


def counts_by_network(
    network_ids: Sequence[int], scope: Scope = EVERYTHING
) -> dict[int, dict[str, int]]:
    """Return the number of rows by result for each of the given networks, in one statement."""
    result_rows = visible_rows(scope).filter(network_id__in=network_ids).order_by()
    counts = {pk: dict.fromkeys(ComparisonResult.values, 0) for pk in network_ids}
    for pk, result, number in result_rows.values_list("network_id", "result").annotate(Count("id")):
        counts[pk][result] = number
    return counts


def overview_counts(
    network_ids: Sequence[int], scope: Scope = EVERYTHING
) -> tuple[dict[int, dict[str, int]], datetime | None]:
    """Return the number of rows by result for each network, and when the oldest stored ones were counted.

    Networks with more than LARGE rows have the worker's last counts, and none before its first ones, if the
    scope is everything.
    """
    large: set[int] = set()
    if scope.everything:
        parameters = {"networks": list(network_ids), "large": LARGE}
        large = {pk for (pk,) in database.rows(_LARGER_THAN, parameters)}
    stored = {
        row.network_id: row for row in models.WorkloadCounts.objects.filter(network__in=large)
    }
    counts = counts_by_network([pk for pk in network_ids if pk not in large], scope)
    counts |= {pk: row.as_dict() for pk, row in stored.items()}
    return counts, min((row.counted_at for row in stored.values()), default=None)


def refresh_counts() -> int:
    """Compare the large networks, one statement each, and store their counts; return their number."""
    large = [pk for (pk,) in database.rows(_LARGE_NETWORKS, {"large": LARGE})]
    models.WorkloadCounts.objects.exclude(network__in=large).delete()
    for pk in large:
        values = {**result_counts(pk), "counted_at": Now()}
        models.WorkloadCounts.objects.update_or_create(network_id=pk, defaults=values)
    return len(large)


_LARGER_THAN = statements.read("claims/networks_larger_than")
_LARGE_NETWORKS = statements.read("claims/large_networks")


def render_rows(
    result_rows: Sequence[Mapping[str, Any]], scope: Scope = EVERYTHING
) -> list[JsonObject]:
    """Return the JSON objects of rows that `visible_rows(…).values()` returned, in few statements.

    `{"result", "workload", "registered": {"source": "ippool|ipamclaim", "id", "name", "mac", "ips",
    "vm", "namespace"}, "reasons": [{"code", "message"}]}`, with the row of the workload; a part is
    None if it does not exist or is outside of the scope.
    """
    entries = models.Entry.objects.select_related("ippool").in_bulk(_ids(result_rows, "entry_id"))
    claims = models.IPAMClaim.objects.in_bulk(_ids(result_rows, "claim_id"))
    workloads = models.Workload.objects.in_bulk(_ids(result_rows, "workload_id"))
    sides: list[tuple[JsonObject | None, models.Workload | None]] = []
    for row in result_rows:
        registered_row = entries.get(row["entry_id"]) or claims.get(row["claim_id"])
        shape = _render_registered(registered_row) if registered_row else None
        sides.append((shape, workloads.get(row["workload_id"])))
    missing = [registered for registered, workload in sides if registered and workload is None]
    statuses = _vm_statuses(_ids(result_rows, "network_id"), missing)
    duplicate_reasons = _duplicate_reasons(workloads, scope)
    return [
        _render_row(row, registered, workload, statuses, duplicate_reasons)
        for row, (registered, workload) in zip(result_rows, sides, strict=True)
    ]


def _duplicate_reasons(workload_ids: Collection[int], scope: Scope) -> dict[int, list[Reason]]:
    """Return duplicate_mac and duplicate_ip of the workloads that have duplicates, by the workload's id."""
    conflicting = Q(duplicate_mac=True) | Q(duplicate_ip=True)
    rows = models.IndexEntry.objects.filter(conflicting, workload__in=workload_ids)
    ids = list(rows.values_list("workload_id", flat=True).distinct())
    return {
        pk: [
            (f"duplicate_{duplicate.kind}", duplicates.describe(duplicate))
            for duplicate in workload_duplicates
            if not duplicate.note
        ]
        for pk, workload_duplicates in duplicates.of_workloads(ids, scope).items()
    }


def _ids(result_rows: Collection[Mapping[str, Any]], column: str) -> set[int]:
    return {row[column] for row in result_rows if row[column] is not None}


def _render_registered(row: models.Entry | models.IPAMClaim) -> JsonObject:
    return {
        "source": "ippool" if isinstance(row, models.Entry) else "ipamclaim",
        "id": row.pk,
        "name": row.ippool.name if isinstance(row, models.Entry) else row.name,
        "mac": row.mac,
        "ips": row.ips if isinstance(row, models.Entry) else row.ips or row.ips_requested,
        "vm": row.vm,
        "namespace": row.namespace,
    }


def running_side(workload: models.Workload) -> Side:
    """Return the running side of a comparison: what the workload has."""
    is_vm = workload.kind == WorkloadKind.VMI
    return Side(
        workload.mac,
        workload.ips,
        vm=workload.name if is_vm else "",
        namespace=workload.namespace,
        pod="" if is_vm else workload.name,
    )


def _render_row(
    row: Mapping[str, Any],
    registered: JsonObject | None,
    workload: models.Workload | None,
    statuses: Mapping[tuple[int, str, str], str],
    duplicate_reasons: Mapping[int, Sequence[Reason]],
) -> JsonObject:
    running = running_side(workload) if workload else None
    registered_side = (
        Side(*(registered[name] for name in ("mac", "ips", "vm", "namespace")))
        if registered
        else None
    )
    reasons: list[Reason] = []
    if registered_side and running:
        reasons = [
            *differences(registered_side, running),
            *unobserved_values(running),
        ]
    elif registered_side:
        status = statuses.get((row["network_id"], registered_side.namespace, registered_side.vm))
        reasons = [absence_reason(registered_side, status)]
    elif running:
        reasons = [
            ("not_registered", f"{running.who} is not registered."),
            *unobserved_values(running),
        ]
    if workload:
        reasons += duplicate_reasons.get(workload.pk, ())
    return {
        "result": row["result"],
        "workload": workload,
        "registered": registered,
        "reasons": [{"code": code, "message": message} for code, message in reasons],
    }


def _vm_statuses(
    networks: Collection[int], missing_objects: Sequence[JsonObject]
) -> dict[tuple[int, str, str], str]:
    """Return the printableStatus of the existing VMs, by network, namespace and name."""
    objects_with_vm = [json_object for json_object in missing_objects if json_object["vm"]]
    if not objects_with_vm:
        return {}
    values = {
        "networks": database.join_values(networks),
        "namespaces": [json_object["namespace"] for json_object in objects_with_vm],
        "names": [json_object["vm"] for json_object in objects_with_vm],
        "kind": VM_KIND,
    }
    return {
        (row["network_id"], row["namespace"], row["name"]): redaction.redact(row["status"])
        for row in database.fetch(_VM_STATUSES, values)
    }


_VM_STATUSES = statements.read("claims/vm_printable_statuses")
