"""Adoption of running workloads: the IPPool gets an entry for what the cluster already runs.

A plan shows the changes first; `adopt` computes the plan again and applies it in one transaction. Workloads
that match their entry are left alone, so that adopting twice changes nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from claims.access.namespaces import EVERYTHING, Scope
from claims.core import entries as rules
from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import Entry, IPPool, Network, Workload
from claims.models.networks import EntrySource
from claims.models.workloads import ComparisonResult, WorkloadKind
from claims.workloads import results
from pools.core import errors
from pools.platform import events

CREATE, CHANGE, UNCHANGED, REFUSE = "create", "change", "unchanged", "refuse"
ACTIONS = (CREATE, CHANGE, UNCHANGED, REFUSE)
ADOPTABLE = (ComparisonResult.UNKNOWN.value, ComparisonResult.DIFFERENT.value)
MOST = 10_000  # workloads in one call
_BY = ("mac", "vm", "address")


@dataclass(frozen=True)
class AdoptionStep:
    """The step of an adoption for one workload; `code` and `message` are the reason of a refusal."""

    workload: Workload
    action: str
    entry: Entry | None = None  # before the change
    spec: EntrySpec | None = None
    code: str = ""
    message: str = ""


@dataclass(frozen=True)
class Plan:
    """The steps of an adoption; `ippool` is the IPPool's name, `makes_ippool` if it has to be created."""

    network: Network
    ippool: str
    makes_ippool: bool
    steps: list[AdoptionStep] = field(default_factory=list)

    def count(self, action: str) -> int:
        return sum(step.action == action for step in self.steps)


def plan(
    network: Network,
    *,
    ids: Collection[int] | None = None,
    result: str = "",
    scope: Scope = EVERYTHING,
) -> Plan:
    """Return the plan for adopting the given workloads of a network, or all with one result.

    `result` is a ComparisonResult. Raises NotFound for a workload that is not on the network, or outside
    of the scope.
    """
    rows = list(_rows(network, ids, result, scope))
    by_workload: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_workload.setdefault(row["workload_id"], []).append(row)
    workloads = Workload.objects.in_bulk(by_workload)
    if ids is not None and set(ids) != set(workloads):
        raise errors.NotFound("The network has no such workload.")
    entry_ids = {row["entry_id"] for row in rows if row["entry_id"]}
    entry_rows = Entry.objects.in_bulk(entry_ids)
    followed_ids = _matching_entry_ids(network, entry_ids)
    steps = []
    for pk, pairs in sorted(by_workload.items()):
        step = _step(
            workloads[pk],
            _entry_to_follow(workloads[pk], pairs, entry_rows, followed_ids),
            network,
            pairs,
        )
        if step.entry:
            followed_ids.add(step.entry.pk)  # one entry follows one workload
        steps.append(step)
    ippool = IPPool.objects.filter(network=network).first()
    return Plan(network, ippool.name if ippool else _ippool_name(network), ippool is None, steps)


def adopt(
    network: Network,
    *,
    ids: Collection[int] | None = None,
    result: str = "",
    scope: Scope = EVERYTHING,
    author: events.Author,
) -> Plan:
    """Compute the plan, apply it and return it; refused workloads are not changed.

    Raises NotFound, and ClusterDecides for an IPPool that only its cluster may change.
    """
    with events.recorded_by(author):
        rows = Network.objects.filter(pk=network.pk)
        ippools.take_locks(rows, author=author)
        rows.select_for_update(no_key=True).get()  # a new entry locks the network's key
        adoption_plan = plan(network, ids=ids, result=result, scope=scope)
        if adoption_plan.count(CREATE) or adoption_plan.count(CHANGE):
            _apply(adoption_plan, author)
    return adoption_plan


def _rows(
    network: Network, ids: Collection[int] | None, result: str, scope: Scope
) -> Iterator[dict[str, Any]]:
    rows = results.visible_rows(scope).filter(network_id=network.pk)
    rows = rows.filter(workload_id__isnull=False)
    rows = rows.filter(workload_id__in=ids) if ids is not None else rows.filter(result=result)
    yield from rows.order_by(*results.ORDER).values()


def _matching_entry_ids(network: Network, entry_ids: Collection[int]) -> set[int]:
    """Return the ids of the entries, of the given ones, that a workload matches exactly."""
    if not entry_ids:
        return set()
    rows = results.visible_rows().filter(network_id=network.pk, same=True)
    return set(rows.filter(entry_id__in=entry_ids).values_list("entry_id", flat=True))


def _entry_to_follow(
    workload: Workload,
    pairs: Sequence[dict[str, Any]],
    entries_by_id: Mapping[int, Entry],
    followed_ids: Collection[int],
) -> Entry | None:
    """Return the entry to change to the workload: by its MAC, else by its VM, else by an address.

    Entries in `followed_ids` belong to another workload. An entry that only shares an address and has
    another VM is left out: the new entry then shows the conflict as a duplicate.
    """
    for row in sorted(pairs, key=lambda row: _BY.index(row["by"] or _BY[0])):
        entry = entries_by_id.get(row["entry_id"])
        if entry is None or entry.pk in followed_ids:
            continue
        if row["by"] != "address" or entry.vm in {"", workload.name}:
            return entry
    return None


def _step(
    workload: Workload, entry: Entry | None, network: Network, pairs: Sequence[dict[str, Any]]
) -> AdoptionStep:
    if any(row["same"] and row["entry_id"] for row in pairs):
        return AdoptionStep(workload, UNCHANGED)
    if workload.mac is None or not workload.ips:
        missing_value = "MAC address" if workload.mac is None else "addresses"
        message = f"The {missing_value} of the workload is unknown."
        return AdoptionStep(workload, REFUSE, code="nothing_to_adopt", message=message)
    try:
        ips = rules.parse_ips(workload.ips, ippools.rules(network))
    except errors.InvalidInput as error:
        return AdoptionStep(workload, REFUSE, code=error.code, message=error.message)
    vm = workload.name if workload.kind == WorkloadKind.VMI else ""
    spec = EntrySpec(workload.mac, ips, vm, workload.namespace)
    return AdoptionStep(workload, CHANGE if entry else CREATE, entry, spec)


def _ippool_name(network: Network) -> str:
    """Return a valid object name for the network's IPPool that no IPPool of the cluster has."""
    slug = re.sub("[^a-z0-9.-]+", "-", (network.object_name or network.name).lower())
    name = slug.strip(".-")[:200] or "network"
    is_taken = IPPool.objects.filter(cluster=network.cluster, name=name).exists()
    return f"{name}-{network.pk}" if is_taken else name


def _apply(adoption_plan: Plan, author: events.Author) -> None:
    network = adoption_plan.network
    ippool = IPPool.objects.filter(network=network).first()
    if ippool is None:
        ippool = ippools.create(network.cluster, adoption_plan.ippool, network.name, author=author)
    new_specs = [step.spec for step in adoption_plan.steps if step.action == CREATE and step.spec]
    if new_specs:
        entries.add(ippool.pk, new_specs, source=EntrySource.ADOPTED, author=author)
    changed = [_changed_row(step) for step in adoption_plan.steps if step.action == CHANGE]
    if changed:
        Entry.objects.filter(pk__in=[row.pk for row in changed]).update(source=EntrySource.ADOPTED)
        entries.apply_diff(ippool, entries.EntryDiff(changed=changed), {}, author=author)


def _changed_row(step: AdoptionStep) -> entries.EntryRow:
    if step.entry is None or step.spec is None:
        raise ValueError("a change needs an entry and a spec")
    row, spec = step.entry, step.spec
    return entries.EntryRow(
        row.pk,
        spec.mac,
        spec.ips,
        spec.vm or row.vm,
        spec.namespace or row.namespace,
        row.note,
    )
