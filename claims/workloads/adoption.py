"""Taking what runs into the register: the IPPool says afterwards what the cluster does already.

A plan says first what would change; adopting works the plan out anew and carries it out in one
transaction. What agrees already is left alone, so that adopting twice is adopting once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from claims.access.namespaces import EVERYTHING, Scope
from claims.core import entries as rules
from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import Entry, IPPool, Network, Workload
from claims.models.ippools import EntrySource
from claims.models.verdicts import ComparisonResult
from claims.models.workloads import WorkloadKind
from claims.workloads import results
from pools.core import errors
from pools.platform import events

CREATE, CHANGE, UNCHANGED, REFUSE = "create", "change", "unchanged", "refuse"
ADOPTABLE = (ComparisonResult.UNKNOWN.value, ComparisonResult.DIFFERENT.value)
MOST = 10_000  # workloads at once, by their ids
_BY = ("mac", "vm", "address")


@dataclass(frozen=True)
class AdoptionStep:
    """What adopting does about one workload; `code` and `message` say why it is refused."""

    workload: Workload
    action: str
    entry: Entry | None = None  # before it is changed
    spec: EntrySpec | None = None
    code: str = ""
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        """`{"workload", "action", "entry", "before", "after", "code", "message"}`."""
        before, after = self.entry, self.spec
        return {
            "workload": self.workload.pk,
            "name": str(self.workload),
            "action": self.action,
            "entry": before.pk if before else None,
            "before": {"mac": before.mac, "ips": before.ips} if before else None,
            "after": {"mac": after.mac, "ips": list(after.ips)} if after else None,
            "code": self.code,
            "message": self.message,
        }


@dataclass(frozen=True)
class Plan:
    """All steps; `ippool` is the name of the IPPool, `makes_ippool` when there is none yet."""

    network: Network
    ippool: str
    makes_ippool: bool
    steps: list[AdoptionStep] = field(default_factory=list)

    def count(self, action: str) -> int:
        return sum(step.action == action for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        return {
            "ippool": self.ippool,
            "makes_ippool": self.makes_ippool,
            **{action: self.count(action) for action in (CREATE, CHANGE, UNCHANGED, REFUSE)},
            "steps": [step.as_json() for step in self.steps],
        }


def plan(
    network: Network,
    *,
    ids: Collection[int] | None = None,
    verdict: str = "",
    scope: Scope = EVERYTHING,
) -> Plan:
    """What adopting some workloads of a network would do, or all of a verdict.

    Raises NotFound for a workload that the network does not have, or that is not seen.
    """
    rows = list(_rows(network, ids, verdict, scope))
    by_workload: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_workload.setdefault(row["workload_id"], []).append(row)
    workloads = Workload.objects.in_bulk(by_workload)
    if ids is not None and set(ids) != set(workloads):
        raise errors.NotFound("There is no such workload on this network.")
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
    verdict: str = "",
    scope: Scope = EVERYTHING,
    author: events.Author,
) -> Plan:
    """Carry the plan out; what it refuses is left as it is, and told.

    Raises NotFound, and ClusterDecides for an IPPool that only its cluster may change.
    """
    with events.recorded(author):
        Network.objects.select_for_update().get(pk=network.pk)
        adoption_plan = plan(network, ids=ids, verdict=verdict, scope=scope)
        if adoption_plan.count(CREATE) or adoption_plan.count(CHANGE):
            _apply(adoption_plan, author)
    return adoption_plan


def _rows(
    network: Network, ids: Collection[int] | None, verdict: str, scope: Scope
) -> Iterator[dict[str, Any]]:
    rows = results.visible_rows(scope).filter(network_id=network.pk)
    rows = rows.filter(workload_id__isnull=False)
    rows = rows.filter(workload_id__in=ids) if ids is not None else rows.filter(verdict=verdict)
    yield from rows.order_by(*results.ORDER).values()


def _matching_entry_ids(network: Network, entry_ids: Collection[int]) -> set[int]:
    """Those of the entries that some workload runs with exactly."""
    if not entry_ids:
        return set()
    rows = results.visible_rows().filter(network_id=network.pk, verdict=ComparisonResult.MATCHING)
    return set(rows.filter(entry_id__in=entry_ids).values_list("entry_id", flat=True))


def _entry_to_follow(
    workload: Workload,
    pairs: Sequence[dict[str, Any]],
    entries_by_id: Mapping[int, Entry],
    followed_ids: Collection[int],
) -> Entry | None:
    """The entry that is to follow the workload: by its MAC, else by its VM, else by an address.

    None that follows another one, nor one that shares no more than an address and names another VM:
    a new entry then shows the contradiction as a duplicate.
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
    if any(row["verdict"] == ComparisonResult.MATCHING and row["entry_id"] for row in pairs):
        return AdoptionStep(workload, UNCHANGED)
    if workload.mac is None or not workload.ips:
        missing_value = "MAC address" if workload.mac is None else "addresses"
        message = f"The cluster does not tell its {missing_value}."
        return AdoptionStep(workload, REFUSE, code="nothing_to_adopt", message=message)
    try:
        ips = rules.parse_ips(workload.ips, ippools.rules(network))
    except errors.InvalidInput as error:
        return AdoptionStep(workload, REFUSE, code=error.code, message=error.message)
    vm = workload.name if workload.kind == WorkloadKind.VMI else ""
    spec = EntrySpec(workload.mac, ips, vm, workload.namespace)
    return AdoptionStep(workload, CHANGE if entry else CREATE, entry, spec)


def _ippool_name(network: Network) -> str:
    """A name that an object may have, and that the cluster's IPPools have not."""
    words = re.sub("[^a-z0-9.-]+", "-", (network.object_name or network.name).lower())
    name = words.strip(".-")[:200] or "network"
    name_taken = IPPool.objects.filter(cluster=network.cluster, name=name).exists()
    return f"{name}-{network.pk}" if name_taken else name


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
        raise ValueError("a change needs both")
    row, spec = step.entry, step.spec
    return entries.EntryRow(
        row.pk,
        spec.mac,
        spec.ips,
        spec.vm or row.vm,
        spec.namespace or row.namespace,
        row.note,
    )
