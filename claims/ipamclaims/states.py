"""States of IPAMClaims: a code for lists, a description, and the next step for users."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Concat
from django.db.models.lookups import Exact
from django.utils.translation import gettext, gettext_lazy

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.ipamclaims import findings as ipamclaim_findings
from claims.models import IndexEntry, IPAMClaim, Workload
from claims.models.workloads import WorkloadKind
from pools.models import Connection, Finding, ManagedResource
from pools.platform import database
from pools.sql import statements

BOUND, PENDING, FAILED, CONFLICT, LEAKED = "bound", "pending", "failed", "conflict", "leaked"
STATES = (BOUND, PENDING, FAILED, CONFLICT, LEAKED)
_CONFLICTS = (ClaimOutcome.IP_CONFLICT, ClaimOutcome.MAC_CONFLICT)


def with_state(rows: QuerySet[IPAMClaim]) -> QuerySet[Any]:
    """Annotate claims with their `state`, the most severe one, and the `pods` that run their VM."""
    failed = Q(ips=[]) & _refusal_query(*ClaimOutcome)
    conflicting = Q(ips=[]) & _refusal_query(*_CONFLICTS)
    conflicting_entries = IndexEntry.objects.filter(claim=OuterRef("pk"), holds=True)
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


def filter_by_states(rows: QuerySet[Any], chosen: Collection[str]) -> QuerySet[Any]:
    """Filter claims with their state by some states.

    An index says which claims may be in each of them: the state itself is found out for these alone.
    """
    rows = rows.filter(state__in=chosen)
    if BOUND in chosen:
        return rows
    candidates = Q(pk__in=[])
    if LEAKED in chosen:
        parameters = {"kind": ipamclaim.KIND, "codes": [ipamclaim_findings.LEAKED]}
        candidates |= Q(pk__in=[pk for (pk,) in database.rows(_WITH_FINDINGS, parameters)])
    if CONFLICT in chosen:
        duplicates = IndexEntry.objects.filter(Q(duplicate_mac=True) | Q(duplicate_ip=True))
        candidates |= Q(pk__in=duplicates.filter(claim__isnull=False).values("claim_id"))
    if set(chosen) & {CONFLICT, FAILED, PENDING}:
        candidates |= Q(ips=[])
    return rows.filter(candidates)


_WITH_FINDINGS = statements.read("claims/claims_with_findings")


def _refusal_query(*outcomes: ClaimOutcome) -> Q:
    """Return the filter for claims whose condition is a refusal with one of these outcomes."""
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
    """Return the codes of the findings about these claims, by claim id."""
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
    """Return the clusters, of the given ids, in which the register manages IPAMClaims."""
    rows = Connection.objects.filter(cluster__in=ids)
    return {
        connection.cluster_id for connection in rows if connection.manages(ManagedResource.CLAIMS)
    }


def state_description(claim: IPAMClaim) -> str:
    """Return a description of the claim's state for users."""
    condition = dialects.allocation_condition(claim.conditions)
    outcome = dialects.outcome_of(condition)
    if claim.gone_at is not None:
        return gettext("addresses released")
    if claim.ips:
        return gettext("addresses assigned")
    if outcome is None or outcome is ClaimOutcome.ALLOCATED:
        return gettext("pending")
    return str(_DESCRIPTIONS[outcome])


_DESCRIPTIONS = {
    ClaimOutcome.IP_CONFLICT: gettext_lazy("address already in use"),
    ClaimOutcome.MAC_CONFLICT: gettext_lazy("another VM has the MAC address"),
    ClaimOutcome.EXHAUSTED: gettext_lazy("network exhausted"),
    ClaimOutcome.ERROR: gettext_lazy("request not valid"),
}


_STEPS_BY_FINDING = {
    ipamclaim_findings.LEAKED: gettext_lazy(
        "The VM is deleted. Remove the finalizer in the cluster, or release the addresses here."
    ),
    ipamclaim_findings.STUCK: gettext_lazy(
        "Check the finalizers of the object: they are removed when the VM is deleted."
    ),
    ipamclaim_findings.UNKNOWN_NETWORK: gettext_lazy(
        "Create the network, or correct its name in the claim."
    ),
    ipamclaim_findings.NETWORK_GONE: gettext_lazy(
        "The network was deleted: delete the claim, or create the network again."
    ),
}
_STEPS_BY_OUTCOME = {
    ClaimOutcome.IP_CONFLICT: gettext_lazy(
        "Request another address, or release this one. Retried automatically."
    ),
    ClaimOutcome.MAC_CONFLICT: gettext_lazy("Change the MAC address of one of the two VMs."),
    ClaimOutcome.EXHAUSTED: gettext_lazy(
        "Release addresses of the network. Retried automatically."
    ),
    ClaimOutcome.ERROR: gettext_lazy("Correct the request of the claim."),
}


def next_step(claim: Any, codes: Collection[str], *, claims_managed: bool) -> str:
    """Return the next step for the user about a claim that `with_state` has annotated.

    `codes` are the codes of its findings.
    """
    for code, text in _STEPS_BY_FINDING.items():
        if code in codes:
            return str(text)
    if claim.ips and claim.state == CONFLICT:
        return gettext("Change the MAC or the address of one of the conflicting holders.")
    if claim.ips:
        if claim.pods or claim.owner_pod:
            return ""
        return gettext("Start the VM: it gets these addresses.")
    outcome = dialects.outcome_of(dialects.allocation_condition(claim.conditions))
    if outcome in _STEPS_BY_OUTCOME:
        return str(_STEPS_BY_OUTCOME[outcome])
    if not claims_managed and not claim.uid:
        return gettext(
            "Apply the claim's manifest in the cluster: OVN-Kubernetes then allocates the addresses."
        )
    return (
        gettext("Wait for the next sync of the cluster.")
        if claims_managed
        else gettext("Wait for OVN-Kubernetes, which allocates the addresses in this cluster.")
    )
