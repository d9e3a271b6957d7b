"""Findings about the IPAMClaims of a cluster, each with a safe remedy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q

from claims.address_index import duplicates
from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.models import IndexEntry, IPAMClaim
from claims.models.networks import NetworkKind
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.clusters.reconcile.storage import GRACE
from pools.models import ObservedObject, Severity
from pools.platform import database
from pools.sql import statements

LEAKED = "leaked_ipamclaim"
STUCK = "ipamclaim_not_deleted"
UNKNOWN_NETWORK = "ipamclaim_unknown_network"
NETWORK_GONE = "ipamclaim_network_gone"
REFUSED = "ipamclaim_refused"
DUPLICATE = "ipamclaim_duplicate"
OUTSIDE = "ipamclaim_outside_network"
DIFFERS_FROM_ENTRY = "ipamclaim_differs_from_entry"
DIFFERS_FROM_WORKLOAD = "ipamclaim_differs_from_workload"
NAME = "ipamclaim_name"
COLLISION = "ipamclaim_name_collision"
UNWRITABLE = "ipamclaim_request_not_writable"
STUCK_AFTER = 600  # seconds since the deletion was requested

_Row = Mapping[str, Any]


def cluster_findings(
    context: SyncContext,
    *,
    claims_managed: bool,
    owners: Sequence[str],
    unwritable: Sequence[IPAMClaim] = (),
) -> Iterator[ReconcileFinding]:
    """Yield the findings about the claims of a cluster.

    `owners` are the VM kinds whose objects are all known: an owner of another kind is never reported as
    missing (rule `unknown-is-not-absent`).
    """
    cluster_id = context.cluster.pk
    with database.hash_joins_only():
        leaked_rows = _rows(_LEAKED, cluster_id, kinds=list(owners), grace=GRACE) if owners else []
    leaked_ids = {row["id"] for row in leaked_rows}
    stuck_rows = [
        row for row in _rows(_STUCK, cluster_id, seconds=STUCK_AFTER) if row["id"] not in leaked_ids
    ]

    def of_rows(
        rows: Iterable[_Row], find: Callable[[_Row], ReconcileFinding]
    ) -> Iterator[ReconcileFinding]:
        return ingest.find_each(context, ipamclaim.KIND, rows, lambda row: [find(row)], name=_name)

    yield from of_rows(leaked_rows, _leaked_finding)
    yield from of_rows(stuck_rows, _stuck_finding)
    refused = IPAMClaim.objects.filter(cluster=cluster_id, ips=[], deleted_at=None, gone_at=None)
    unknown_rows = _rows(_UNKNOWN_NETWORK, cluster_id, unknown=NetworkKind.UNKNOWN.value)
    yield from of_rows(unknown_rows, _network_finding)
    yield from ingest.find_each(
        context,
        ipamclaim.KIND,
        refused.exclude(conditions=[]).order_by("pk"),
        lambda claim: _refused_findings(claim, claims_managed=claims_managed),
    )
    flagged = IndexEntry.objects.filter(Q(duplicate_mac=True) | Q(duplicate_ip=True))
    claims = IPAMClaim.objects.filter(cluster=cluster_id, pk__in=flagged.values("claim"))
    yield from ingest.find_together(
        context,
        ipamclaim.KIND,
        claims.select_related("network").order_by("pk"),
        _duplicate_findings,
    )
    for statement, find in _CONTRADICTIONS.items():
        yield from of_rows(_rows(statement, cluster_id), find)
    yield from _name_findings(context)
    yield from ingest.find_each(context, ipamclaim.KIND, unwritable, _unwritable_findings)


def _network_finding(row: _Row) -> ReconcileFinding:
    if row["gone"]:
        held = ", ".join(row["ips"]) or "no address"
        message = (
            f"The IPAMClaim {_name(row)} still has {held} of the network {row['network']}, which was"
            " deleted in the cluster. Delete the claim, or create the network again."
        )
        return _finding(NETWORK_GONE, row, message, network=row["network"], ips=row["ips"])
    message = (
        f"The IPAMClaim {_name(row)} refers to the network {row['network']}, which does not exist"
        " in the cluster. Its addresses belong to no pool."
    )
    return _finding(UNKNOWN_NETWORK, row, message, network=row["network"])


def _rows(statement: str, cluster_id: int, **values: object) -> list[Mapping[str, Any]]:
    return database.fetch(statement, {"cluster": cluster_id, **values})


def _name(row: _Row) -> str:
    return f"{row['namespace']}/{row['name']}"


def _finding(
    code: str, row: _Row, message: str, *, severity: Severity = Severity.WARNING, **details: Any
) -> ReconcileFinding:
    details |= {"id": row["id"], "namespace": row["namespace"], "name": row["name"]}
    return ReconcileFinding(code, _name(row), message, severity, details)


def _unwritable_findings(claim: IPAMClaim) -> Iterator[ReconcileFinding]:
    """Report a request that the object cannot show, with its current status."""
    requested = " and ".join(filter(None, [claim.mac or "", ", ".join(claim.ips_requested)]))
    message = (
        f"The object of the IPAMClaim {claim} cannot show the request for {requested}: the"
        " cluster's CRD has no fields for requests (spec.mac, spec.ips)."
    )
    if claim.ips:
        message += (
            f" Its status has the granted addresses {', '.join(claim.ips)}. A claim cannot set"
            " the MAC address in OVN-Kubernetes: set it on the VM's interface."
        )
    else:
        condition = dialects.allocation_condition(claim.conditions)
        answer = (condition or {}).get("message") or "pending"
        message += f" Status in the register: {answer}."
    yield ReconcileFinding(UNWRITABLE, str(claim), message, details={"id": claim.pk})


# --- leaked claims --------------------------------------------------------------------------------


def remove_finalizer(row: _Row) -> str:
    """Return the command that removes the finalizers of a claim and deletes it."""
    patch = '\'[{"op": "remove", "path": "/metadata/finalizers"}]\''
    claim = f"ipamclaims.k8s.cni.cncf.io {row['name']} -n {row['namespace']}"
    return (
        f"kubectl patch {claim} --type json -p {patch} && kubectl delete {claim} --ignore-not-found"
    )


def _leaked_finding(row: _Row) -> ReconcileFinding:
    finalizers = ", ".join(row["finalizers"]) or "none"
    addresses = ", ".join(row["ips"]) or "no address"
    message = (
        f"The VM {row['vm']} that owned the IPAMClaim {_name(row)} is deleted; the claim still exists"
        f" with {addresses}. Its finalizers: {finalizers}."
    )
    return _finding(
        LEAKED,
        row,
        message,
        vm=row["vm"],
        vm_uid=row["vm_uid"],
        ips=row["ips"],
        finalizers=row["finalizers"],
        deleted_at=row["deleted_at"] and row["deleted_at"].isoformat(),
        command=remove_finalizer(row),
    )


# The claim was observed before its owner was missed (rule `younger-than-the-list-is-not-missed`), and longer
# ago than the grace (rule `leak-needs-two-observations`). An owner missed by one list only still exists.
_LEAKED = statements.read("claims/leaked_claims")


def _stuck_finding(row: _Row) -> ReconcileFinding:
    finalizers = ", ".join(row["finalizers"]) or "none"
    message = (
        f"The IPAMClaim {_name(row)} is being deleted since {row['deleted_at']:%Y-%m-%d %H:%M} and still"
        f" exists, with its addresses. Its finalizers: {finalizers}."
    )
    return _finding(STUCK, row, message, finalizers=row["finalizers"], ips=row["ips"])


_STUCK = """
    SELECT id, namespace, name, ips, finalizers, deleted_at FROM claims_ipamclaim
    WHERE cluster_id = %(cluster)s AND deleted_at <= ipam_now() - make_interval(secs => %(seconds)s)
    ORDER BY id
"""
_UNKNOWN_NETWORK = """
    SELECT c.id, c.namespace, c.name, c.ips, n.name AS network, n.kind <> %(unknown)s AS gone
    FROM claims_ipamclaim c JOIN claims_network n ON n.id = c.network_id
    WHERE c.cluster_id = %(cluster)s AND (n.kind = %(unknown)s OR n.gone_at IS NOT NULL AND c.gone_at IS NULL)
    ORDER BY c.id
"""


# --- refused and contradictory claims -------------------------------------------------------------


def _refused_findings(claim: IPAMClaim, *, claims_managed: bool) -> Iterator[ReconcileFinding]:
    condition = dialects.allocation_condition(claim.conditions)
    outcome = dialects.outcome_of(condition)
    if condition is None or outcome in {None, ClaimOutcome.ALLOCATED}:
        return
    next_step = (
        "Every sync run retries it." if claims_managed else "OVN-Kubernetes allocates its address."
    )
    message = f"The IPAMClaim {claim} has no address: {condition.get('message')}. {next_step}"
    details = {"id": claim.pk, "reason": condition.get("reason")}
    yield ReconcileFinding(REFUSED, str(claim), message, Severity.ERROR, details)


def _duplicate_findings(claims: Sequence[IPAMClaim]) -> Iterator[ReconcileFinding]:
    """Report who else has the MAC or an address, or what the network keeps it for."""
    duplicates_by_id = duplicates.of_claims(claims)
    for claim in claims:
        conflicts = [each for each in duplicates_by_id[claim.pk] if not each.note]
        texts = " ".join(duplicates.describe(each) for each in conflicts)
        message = (
            f"The IPAMClaim {claim} has duplicates on the network {claim.network.name}: {texts}"
        )
        row = {"id": claim.pk, "namespace": claim.namespace, "name": claim.name}
        values = sorted({each.value for each in conflicts})
        yield _finding(DUPLICATE, row, message[:990], severity=Severity.ERROR, values=values)


def _outside_finding(row: _Row) -> ReconcileFinding:
    subnets = ", ".join(row["subnets"])
    message = f"The IPAMClaim {_name(row)} has {', '.join(row['ips'])}, outside of {subnets}."
    return _finding(OUTSIDE, row, message, ips=row["ips"])


def _unlike_entry_finding(row: _Row) -> ReconcileFinding:
    message = (
        f"The IPAMClaim {_name(row)} has {', '.join(row['ips'])}, its MAC entry {row['mac']} has"
        f" {', '.join(row['other'])}. The VM keeps the addresses of its claim. If these are right, change the"
        " entry. If the entry is right, as when the VM was started while the webhook was down: stop the VM,"
        " delete the claim, and start the VM."
    )
    return _finding(DIFFERS_FROM_ENTRY, row, message, claim=row["ips"], entry=row["other"])


def _unlike_workload_finding(row: _Row) -> ReconcileFinding:
    message = (
        f"The VM {row['vm']} runs with {', '.join(row['other'])}, its IPAMClaim {_name(row)} has"
        f" {', '.join(row['ips'])}. The VM gets the claim's addresses at its next start."
    )
    return _finding(DIFFERS_FROM_WORKLOAD, row, message, claim=row["ips"], workload=row["other"])


_CONTRADICTIONS = {
    statements.read("claims/claims_outside_pool"): _outside_finding,
    statements.read("claims/claims_unlike_entries"): _unlike_entry_finding,
    statements.read("claims/claims_unlike_workloads"): _unlike_workload_finding,
}


# --- names ----------------------------------------------------------------------------------------


def _name_findings(context: SyncContext) -> Iterator[ReconcileFinding]:
    cluster_id = context.cluster.pk
    claims = list(
        IPAMClaim.objects.filter(cluster=cluster_id)
        .order_by("pk")
        .values_list("pk", "namespace", "name", "vm", "network__name")
    )
    networks = _networks_of_vms(cluster_id)
    yield from ingest.find_each(
        context,
        ipamclaim.KIND,
        claims,
        lambda claim: _misnamed(claim, networks.get((claim[1], claim[3]), ())),
        name=lambda claim: f"{claim[1]}/{claim[2]}",
    )
    pairs_of_vms: dict[str, list[ipamclaim.Pair]] = {}
    for (namespace, vm), network_names in networks.items():
        pairs_of_vms.setdefault(namespace, []).extend(
            (vm, network_name) for network_name in network_names
        )
    pairs_of_claims: dict[str, list[ipamclaim.Pair]] = {}
    for _, namespace, name, vm, network in claims:
        if vm and vm != name:
            pairs_of_claims.setdefault(namespace, []).append((vm, network))
    for pairs in (pairs_of_vms, pairs_of_claims):
        collisions = [
            (namespace, name, contenders)
            for namespace, vm_networks in pairs.items()
            for name, contenders in ipamclaim.name_collisions(vm_networks).items()
        ]
        yield from ingest.find_each(
            context,
            ipamclaim.KIND,
            collisions,
            _collision,
            name=lambda collision: f"{collision[0]}/{collision[1]}",
        )


def _misnamed(
    claim: tuple[int, str, str, str, str], network_names: Sequence[str]
) -> Iterator[ReconcileFinding]:
    pk, namespace, name, vm, network = claim
    if not vm or vm == name:
        return
    if not ipamclaim.is_name_of(name, vm, [*network_names, network] if network_names else ()):
        message = (
            f"The IPAMClaim {namespace}/{name} of the VM {vm} should be named"
            f" {ipamclaim.compose_key(vm, network_names[0] if network_names else network)}:"
            " kubevirt/ipam-extensions does not find it by another name."
        )
        yield ReconcileFinding(NAME, f"{namespace}/{name}", message, details={"id": pk})


def _collision(collision: tuple[str, str, Sequence[ipamclaim.Pair]]) -> Iterator[ReconcileFinding]:
    namespace, name, contenders = collision
    vms = "; ".join(f"VM {vm} on {network}" for vm, network in contenders[:10])
    message = f"Only one of these VMs can have the IPAMClaim {namespace}/{name}: {vms}."
    details = {"rivals": [{"vm": vm, "network": network} for vm, network in contenders[:10]]}
    yield ReconcileFinding(COLLISION, f"{namespace}/{name}", message, Severity.ERROR, details)


def _networks_of_vms(cluster_id: int) -> dict[tuple[str, str], list[str]]:
    """Return the network names in each VM's spec, of which ipam-extensions composes claim names."""
    rows = database.rows(_NETWORKS_OF_VMS, {"cluster": cluster_id})
    return {
        (namespace, name): [text for text in network_names if text]
        for namespace, name, network_names in rows
    }


_NETWORKS_OF_VMS = statements.read("claims/networks_of_vms")


def observed_object(claim: IPAMClaim) -> ObservedObject | None:
    """Return the last observed object of the claim, or None."""
    rows = ObservedObject.objects.filter(
        cluster=claim.cluster_id, kind=ipamclaim.KIND, uid=claim.uid
    )
    return rows.first() if claim.uid else None
