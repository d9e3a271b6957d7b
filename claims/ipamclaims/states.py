"""How claims stand: in one word for lists, in a sentence for people, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Concat
from django.db.models.lookups import Exact

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.ipamclaims import findings as ipamclaim_findings
from claims.models import IPAMClaim, Place, Workload
from claims.models.workloads import WorkloadKind
from pools.models import Connection, Finding
from pools.models.connections import ManagedResource

BOUND, PENDING, FAILED, CONFLICT, LEAKED = "bound", "pending", "failed", "conflict", "leaked"
STATES = (BOUND, PENDING, FAILED, CONFLICT, LEAKED)
_CONFLICTS = (ClaimOutcome.IP_CONFLICT, ClaimOutcome.MAC_CONFLICT)


def with_state(rows: QuerySet[IPAMClaim]) -> QuerySet[Any]:
    """The rows, each with its `state`, what stands foremost about it, and the `pods` that run its VM."""
    failed = Q(ips=[]) & _refusal_query(*ClaimOutcome)
    conflicting = Q(ips=[]) & _refusal_query(*_CONFLICTS)
    conflicting_entries = Place.objects.filter(claim=OuterRef("pk"), holds=True)
    duplicate = Exists(conflicting_entries.filter(Q(duplicate_mac=True) | Q(duplicate_ip=True)))
    same_vm = Q(uid=OuterRef("vm_uid")) | Q(vm_uid=OuterRef("vm_uid"))
    running = Workload.objects.filter(
        same_vm | Q(Exact(OuterRef("vm_uid"), Value(""))),
        network=OuterRef("network"),
        kind=WorkloadKind.VMI,
        namespace=OuterRef("namespace"),
        name=OuterRef("vm"),
    )
    return rows.annotate(
        pods=Coalesce(
            Subquery(running.order_by("-since", "-pk").values("pods")[:1]),
            Value(list[str]()),
            output_field=Workload._meta.get_field("pods"),
        ),
        state=Case(
            When(_has_finding(ipamclaim_findings.LEAKED), then=Value(LEAKED)),
            When(conflicting | Q(duplicate), then=Value(CONFLICT)),
            When(failed, then=Value(FAILED)),
            When(ips=[], then=Value(PENDING)),
            default=Value(BOUND),
        ),
    )


def _refusal_query(*outcomes: ClaimOutcome) -> Q:
    """Whose condition says that they got nothing, for one of these reasons."""
    query = Q(pk__in=[])
    for dialect in (dialects.SHIPPED, dialects.PROPOSED):
        condition = {"type": dialect.condition, "status": "False"}
        if ClaimOutcome.ERROR in outcomes:  # whatever the reason
            query |= Q(conditions__contains=[condition])
            continue
        for outcome in outcomes:
            query |= Q(conditions__contains=[condition | {"reason": dialect.reasons[outcome]}])
    return query


def _has_finding(*codes: str) -> Exists:
    subject = Concat(OuterRef("namespace"), Value("/"), OuterRef("name"))
    rows = Finding.objects.filter(cluster=OuterRef("cluster"), kind=ipamclaim.KIND)
    return Exists(rows.filter(code__in=codes, subject=subject))


def findings(claim: IPAMClaim) -> list[Finding]:
    rows = Finding.objects.filter(cluster=claim.cluster_id, kind=ipamclaim.KIND)
    return list(rows.filter(subject=str(claim)).order_by("severity", "code"))


def finding_codes(claims: Iterable[IPAMClaim]) -> dict[int, set[str]]:
    """By their ids, the codes of the findings about these claims."""
    ids_by_subject = {(claim.cluster_id, str(claim)): claim.pk for claim in claims}
    rows = Finding.objects.filter(
        kind=ipamclaim.KIND,
        cluster__in={cluster for cluster, _ in ids_by_subject},
        subject__in={subject for _, subject in ids_by_subject},
    )
    codes_by_claim: dict[int, set[str]] = {}
    for cluster, subject, code in rows.values_list("cluster_id", "subject", "code"):
        if (cluster, subject) in ids_by_subject:
            codes_by_claim.setdefault(ids_by_subject[cluster, subject], set()).add(code)
    return codes_by_claim


def clusters_with_managed_claims(ids: Collection[int]) -> set[int]:
    """Those of the clusters in which the register grants addresses and writes objects."""
    rows = Connection.objects.filter(cluster__in=ids)
    return {
        connection.cluster_id for connection in rows if connection.manages(ManagedResource.CLAIMS)
    }


def state_description(claim: IPAMClaim) -> str:
    """What a person is told of how the claim stands."""
    condition = dialects.allocation_condition(claim.conditions)
    outcome = dialects.outcome_of(condition)
    if claim.gone_at is not None:
        return "its addresses were given back here"
    if claim.ips:
        return "it has its addresses"
    if outcome is None or outcome is ClaimOutcome.ALLOCATED:
        return "not answered yet"
    return _DESCRIPTIONS[outcome]


_DESCRIPTIONS = {
    ClaimOutcome.IP_CONFLICT: "another has the address",
    ClaimOutcome.MAC_CONFLICT: "another VM has the MAC",
    ClaimOutcome.EXHAUSTED: "the network is full",
    ClaimOutcome.ERROR: "it cannot be granted",
}


_STEPS_BY_FINDING = {
    ipamclaim_findings.LEAKED: (
        "The VM is gone. Remove the finalizer in the cluster, or give the addresses back here."
    ),
    ipamclaim_findings.STUCK: "See what keeps the object: its finalizer goes when the VM is gone.",
    ipamclaim_findings.UNKNOWN_NETWORK: "Create the network, or correct its name in the claim.",
}
_STEPS_BY_OUTCOME = {
    ClaimOutcome.IP_CONFLICT: "Ask for another address, or free this one. It is tried again by itself.",
    ClaimOutcome.MAC_CONFLICT: "Give one of the two VMs another MAC.",
    ClaimOutcome.EXHAUSTED: "Free addresses of the network. It is tried again by itself.",
    ClaimOutcome.ERROR: "Correct what the claim asks for.",
}


def next_step(claim: Any, codes: Collection[str], *, claims_managed: bool) -> str:
    """What somebody does next about a claim, with its state, of which these findings stand."""
    for code, text in _STEPS_BY_FINDING.items():
        if code in codes:
            return text
    if claim.ips and claim.state == CONFLICT:
        return "See who else has its MAC or address, and give one of the two another."
    if claim.ips:
        return "" if claim.pods or claim.owner_pod else "Start the VM: it gets these addresses."
    outcome = dialects.outcome_of(dialects.allocation_condition(claim.conditions))
    if outcome in _STEPS_BY_OUTCOME:
        return _STEPS_BY_OUTCOME[outcome]
    if not claims_managed:
        return "Wait for OVN-Kubernetes, which answers in this cluster."
    return "Wait for the next pass over the cluster."
