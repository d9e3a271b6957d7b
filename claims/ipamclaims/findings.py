"""What people should know of a cluster's claims, each with what can safely be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claims.core.ipamclaims import dialects, ipamclaim, names
from claims.core.ipamclaims.dialects import ClaimOutcome
from claims.models import IPAMClaim
from claims.models.networks import NetworkKind
from pools.clusters.reconcile.comparison import GRACE
from pools.clusters.reconcile.handler import ReconcileFinding
from pools.models import ObservedObject
from pools.models.observed import Severity
from pools.platform import database
from pools.sql import statements

LEAKED = "leaked_ipamclaim"
STUCK = "ipamclaim_not_deleted"
UNKNOWN_NETWORK = "ipamclaim_unknown_network"
REFUSED = "ipamclaim_refused"
DUPLICATE = "ipamclaim_duplicate"
OUTSIDE = "ipamclaim_outside_network"
OF_ENTRY = "ipamclaim_differs_from_entry"
OF_WORKLOAD = "ipamclaim_differs_from_workload"
NAME = "ipamclaim_name"
COLLISION = "ipamclaim_name_collision"
UNWRITABLE = "ipamclaim_request_not_writable"
CODES = (
    LEAKED, STUCK, UNKNOWN_NETWORK, REFUSED, DUPLICATE, OUTSIDE, OF_ENTRY, OF_WORKLOAD, NAME,
    COLLISION, UNWRITABLE,
)  # fmt: skip
STUCK_AFTER = 600  # seconds since the deletion was asked for

_Row = Mapping[str, Any]


def cluster_findings(
    cluster_id: int,
    *,
    answering: bool,
    owners: Sequence[str],
    unwritable: Sequence[IPAMClaim] = (),
) -> Iterator[ReconcileFinding]:
    """The findings of a cluster.

    `owners` are the kinds of VMs of which every object is known: of no other kind it is said that an
    owner is not there (unknown is not absent).
    """
    leaked: set[int] = set()
    with database.hash_joins_only():
        gone = _rows(_LEAKED, cluster_id, kinds=list(owners), grace=GRACE) if owners else []
    for row in gone:
        leaked.add(row["id"])
        yield _leaked(row)
    for row in _rows(_STUCK, cluster_id, seconds=STUCK_AFTER):
        if row["id"] not in leaked:
            yield _stuck(row)
    for row in _rows(_UNKNOWN_NETWORK, cluster_id, unknown=NetworkKind.UNKNOWN.value):
        message = (
            f"The IPAMClaim {_name(row)} is of the network {row['network']}, of which nothing was seen"
            " in the cluster. Its addresses belong to no pool."
        )
        yield _finding(UNKNOWN_NETWORK, row, message, network=row["network"])
    yield from _refused(cluster_id, answering=answering)
    yield from _contradictions(cluster_id)
    yield from _names(cluster_id)
    for claim in unwritable:
        yield ReconcileFinding(UNWRITABLE, str(claim), _unwritable(claim), details={"id": claim.pk})


def _rows(statement: str, cluster_id: int, **values: object) -> list[Mapping[str, Any]]:
    return database.fetch(statement, {"cluster": cluster_id, **values})


def _name(row: _Row) -> str:
    return f"{row['namespace']}/{row['name']}"


def _finding(
    code: str, row: _Row, message: str, *, severity: Severity = Severity.WARNING, **details: Any
) -> ReconcileFinding:
    details |= {"id": row["id"], "namespace": row["namespace"], "name": row["name"]}
    return ReconcileFinding(code, _name(row), message, severity, details)


def _requests(claim: IPAMClaim) -> str:
    return " and ".join(filter(None, [claim.mac or "", ", ".join(claim.ips_requested)]))


def _unwritable(claim: IPAMClaim) -> str:
    """What the object cannot say, beside what its status says."""
    message = (
        f"The object of the IPAMClaim {claim} does not show that {_requests(claim)} was asked for: the"
        " cluster's definition has no fields for requests (spec.mac, spec.ips)."
    )
    if claim.ips:
        return (
            f"{message} Its status has the addresses that were granted, {', '.join(claim.ips)}; a claim"
            " cannot tell OVN-Kubernetes of a MAC address: set it on the VM's interface."
        )
    condition = dialects.allocation_condition(claim.conditions)
    answer = (condition or {}).get("message") or "not answered yet"
    return f"{message} The register answers it all the same: {answer}."


# --- claims that nobody has any more --------------------------------------------------------------


def remove_finalizer(row: _Row) -> str:
    """The command with which a person lets a claim go whose VM is gone."""
    patch = '\'[{"op": "remove", "path": "/metadata/finalizers"}]\''
    claim = f"ipamclaims.k8s.cni.cncf.io {row['name']} -n {row['namespace']}"
    return (
        f"kubectl patch {claim} --type json -p {patch} && kubectl delete {claim} --ignore-not-found"
    )


def _leaked(row: _Row) -> ReconcileFinding:
    finalizers = ", ".join(row["finalizers"]) or "nothing"
    addresses = ", ".join(row["ips"]) or "no address"
    message = (
        f"The VM {row['vm']} that owned the IPAMClaim {_name(row)} is gone, and the claim keeps"
        f" {addresses}. What keeps it: {finalizers}."
    )
    return _finding(
        LEAKED, row, message,
        vm=row["vm"], vm_uid=row["vm_uid"], ips=row["ips"], finalizers=row["finalizers"],
        deleted_at=row["deleted_at"] and row["deleted_at"].isoformat(),
        command=remove_finalizer(row),
    )  # fmt: skip


# The claim was read before its owner was missed (rule `younger-than-the-list-is-not-missed`), and a
# while ago (rule `leak-needs-two-observations`). An owner that one list was without is still there.
_LEAKED = statements.read("claims/leaked_claims")


def _stuck(row: _Row) -> ReconcileFinding:
    finalizers = ", ".join(row["finalizers"]) or "nothing"
    message = (
        f"The IPAMClaim {_name(row)} is to be deleted since {row['deleted_at']:%Y-%m-%d %H:%M} and is"
        f" still there, with its addresses. What keeps it: {finalizers}."
    )
    return _finding(STUCK, row, message, finalizers=row["finalizers"], ips=row["ips"])


_STUCK = """
    SELECT id, namespace, name, ips, finalizers, deleted_at FROM claims_ipamclaim
    WHERE cluster_id = %(cluster)s AND deleted_at <= ipam_now() - make_interval(secs => %(seconds)s)
    ORDER BY id
"""
_UNKNOWN_NETWORK = """
    SELECT c.id, c.namespace, c.name, n.name AS network
    FROM claims_ipamclaim c JOIN claims_network n ON n.id = c.network_id
    WHERE c.cluster_id = %(cluster)s AND n.kind = %(unknown)s ORDER BY c.id
"""


# --- claims that disagree -------------------------------------------------------------------------


def _refused(cluster_id: int, *, answering: bool) -> Iterator[ReconcileFinding]:
    rows = IPAMClaim.objects.filter(cluster=cluster_id, ips=[], deleted_at=None, gone_at=None)
    for claim in rows.exclude(conditions=[]).order_by("pk"):
        condition = dialects.allocation_condition(claim.conditions)
        outcome = dialects.outcome_of(condition)
        if condition is None or outcome in {None, ClaimOutcome.ALLOCATED}:
            continue
        who = "It is tried again in every pass." if answering else "The cluster answers it."
        message = f"The IPAMClaim {claim} got no address: {condition.get('message')}. {who}"
        details = {"id": claim.pk, "reason": condition.get("reason")}
        yield ReconcileFinding(REFUSED, str(claim), message, Severity.ERROR, details)


def _contradictions(cluster_id: int) -> Iterator[ReconcileFinding]:
    for row in _rows(_DUPLICATES, cluster_id):
        what = ", ".join(row["found"])
        message = f"The IPAMClaim {_name(row)} has {what}, which another index entry of the network has, too."
        yield _finding(DUPLICATE, row, message, severity=Severity.ERROR, values=row["found"])
    for row in _rows(_OUTSIDE, cluster_id):
        inside = ", ".join(row["subnets"])
        message = f"The IPAMClaim {_name(row)} has {', '.join(row['ips'])}, outside of {inside}."
        yield _finding(OUTSIDE, row, message, ips=row["ips"])
    for row in _rows(_OF_ENTRY, cluster_id):
        message = (
            f"The IPAMClaim {_name(row)} has {', '.join(row['ips'])}, its MAC entry {row['mac']}"
            f" {', '.join(row['other'])}. The VM keeps what its claim has; change the entry."
        )
        yield _finding(OF_ENTRY, row, message, claim=row["ips"], entry=row["other"])
    for row in _rows(_OF_WORKLOAD, cluster_id):
        message = (
            f"The VM {row['vm']} runs with {', '.join(row['other'])}, its IPAMClaim {_name(row)} has"
            f" {', '.join(row['ips'])}. It gets the claim's addresses when it is started again."
        )
        yield _finding(OF_WORKLOAD, row, message, claim=row["ips"], workload=row["other"])


_DUPLICATES = statements.read("claims/claims_with_duplicates")
_OUTSIDE = statements.read("claims/claims_outside_pool")
_OF_ENTRY = statements.read("claims/claims_unlike_entries")
_OF_WORKLOAD = statements.read("claims/claims_unlike_workloads")


# --- names ----------------------------------------------------------------------------------------


def _names(cluster_id: int) -> Iterator[ReconcileFinding]:
    claims = list(
        IPAMClaim.objects.filter(cluster=cluster_id)
        .order_by("pk")
        .values_list("pk", "namespace", "name", "vm", "network__name")
    )
    networks = _networks_of_vms(cluster_id)
    for pk, namespace, name, vm, network in claims:
        if not vm or vm == name:
            continue
        network_names = networks.get((namespace, vm), ())
        if not names.is_name_of(name, vm, [*network_names, network] if network_names else ()):
            message = (
                f"The IPAMClaim {namespace}/{name} of the VM {vm} is not called as the rule says,"
                f" {names.compose_key(vm, network_names[0] if network_names else network)}:"
                " kubevirt/ipam-extensions does not find it."
            )
            yield ReconcileFinding(NAME, f"{namespace}/{name}", message, details={"id": pk})
    pairs: dict[str, list[names.Pair]] = {}
    for (namespace, vm), listed in networks.items():
        pairs.setdefault(namespace, []).extend((vm, network_name) for network_name in listed)
    of_networks: dict[str, list[names.Pair]] = {}
    for _, namespace, name, vm, network in claims:
        if vm and vm != name:
            of_networks.setdefault(namespace, []).append((vm, network))
    yield from _collisions(pairs)
    yield from _collisions(of_networks)


def _collisions(pairs: Mapping[str, list[names.Pair]]) -> Iterator[ReconcileFinding]:
    for namespace, those in pairs.items():
        for name, rivals in names.collisions(those).items():
            vms = "; ".join(f"VM {vm} on {network}" for vm, network in rivals[:10])
            message = f"Only one of these can have the IPAMClaim {namespace}/{name}: {vms}."
            details = {"rivals": [{"vm": vm, "network": network} for vm, network in rivals[:10]]}
            yield ReconcileFinding(
                COLLISION, f"{namespace}/{name}", message, Severity.ERROR, details
            )


def _networks_of_vms(cluster_id: int) -> dict[tuple[str, str], list[str]]:
    """What each VM calls its networks: of that ipam-extensions makes the names of claims."""
    rows = database.rows(_NETWORKS_OF_VMS, [cluster_id])
    return {
        (namespace, name): [text for text in network_names if text]
        for namespace, name, network_names in rows
    }


_NETWORKS_OF_VMS = """
    SELECT namespace, name, ARRAY(SELECT jsonb_array_elements_text(jsonb_path_query_array(
        manifest, '$.spec.template.spec.networks[*].name ? (@.type() == "string")')))
    FROM pools_observedobject
    WHERE cluster_id = %s AND kind = 'VirtualMachine' AND missed_at IS NULL
"""


def seen_object(claim: IPAMClaim) -> ObservedObject | None:
    """The claim's object as it was last seen."""
    rows = ObservedObject.objects.filter(
        cluster=claim.cluster_id, kind=ipamclaim.KIND, uid=claim.uid
    )
    return rows.first() if claim.uid else None
