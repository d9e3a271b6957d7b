"""IPAMClaims by hand: made, changed and taken back in the register.

In a managed cluster with the managed resource `claims` the next pass writes the object, and grants the addresses;
elsewhere the claim is recorded only, and its manifest can be downloaded. An object that is there in the
cluster is deleted there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError

from claims.access import namespaces
from claims.address_index import duplicates, index, own_addresses
from claims.core import entries
from claims.core.ipamclaims import dialects, ipamclaim, names
from claims.core.ipamclaims.dialects import Dialect
from claims.ipamclaims import findings, ingest, naming, states, status_writer
from claims.models import IPAMClaim, Network
from pools.clusters.reconcile import leases
from pools.core import errors, holders
from pools.models.fields import Now
from pools.platform import database, events

_RELEASABLE = {findings.LEAKED, findings.STUCK}  # findings that allow a release


@dataclass(frozen=True)
class ClaimSpec:
    """A claim that somebody makes; `name` is that of ipam-extensions for the VM unless it is said."""

    network: Network
    namespace: str
    vm: str = ""
    name: str = ""
    mac: str | None = None
    ips: Sequence[str] = ()
    interface: str = ""
    note: str = ""


def create(
    spec: ClaimSpec, *, author: events.Author, scope: namespaces.Scope = namespaces.EVERYTHING
) -> IPAMClaim:
    """A claim that no cluster has yet.

    Who does not see everything asks for what is free only, and is not told who has it. Raises
    InvalidInput (the name), AlreadyExists, AlreadyAllocated, ReservedAddress.
    """
    name = spec.name or naming.claim_name(spec.network, spec.namespace, spec.vm)
    holders.parse_name(name, field="name")
    vm = spec.vm or names.vm_of(name, spec.network.name)
    if not (vm or spec.mac):
        raise errors.InvalidInput.for_field("vm", "required", "say for which VM it is")
    claim = IPAMClaim(
        cluster=spec.network.cluster,
        network=spec.network,
        namespace=spec.namespace,
        name=name,
        interface=spec.interface,
        mac=spec.mac,
        ips_requested=list(spec.ips),
        vm=vm,
        note=spec.note,
    )
    with _lock_for_change(claim, author):
        _check_not_taken(claim, scope)
        if IPAMClaim.objects.filter(
            cluster=claim.cluster, namespace=claim.namespace, name=name
        ).exists():
            raise errors.AlreadyExists(f"{claim.namespace} has an IPAMClaim {name}.")
        claim.save()
        index.write(claims=[claim])
    return claim


@contextmanager
def _lock_for_change(claim: IPAMClaim, author: events.Author) -> Iterator[None]:
    """The cluster's row first, then the lock of the pool, then rows: as passes take them."""
    try:
        with events.recorded(author):
            leases.nudge(claim.cluster_id, patient=True)
            ingest.lock_pools([claim.network_id])
            yield
    except IntegrityError as error:
        if database.constraint(error) != "ipamclaim_name_unique":
            raise
        raise errors.AlreadyExists from error


def _check_not_taken(claim: IPAMClaim, scope: namespaces.Scope) -> None:
    """Nobody gets the gateway's MAC; who does not see everything gets nothing that is taken, either."""
    gateway = own_addresses.macs(claim.network).get(claim.mac or "")
    if gateway:
        raise errors.ReservedAddress(f"{claim.mac} is the MAC address of the gateway {gateway}.")
    if scope.everything:
        return
    claim_duplicates = duplicates.of_candidate(
        claim.network,
        mac=claim.mac,
        addresses=[text.partition("/")[0] for text in claim.ips_requested],
        vm=claim.vm,
        namespace=claim.namespace,
        claim_id=claim.pk or 0,
        scope=scope,
    )
    for duplicate in claim_duplicates:
        types = {where.type for where in duplicate.places}
        if duplicate.note:
            continue
        if types & {"gateway", "infrastructure", "reserved_range"}:
            raise errors.ReservedAddress(f"{duplicate.value} is kept for the network itself.")
        if "other" in types:
            raise errors.AlreadyAllocated(f"{duplicate.value} is in use already.")


@dataclass(frozen=True)
class ClaimChange:
    """What is to be another; None stays as it is. `mac` "" takes the request away."""

    mac: str | None = None
    ips: Sequence[str] | None = None
    note: str | None = None

    @property
    def changes_request(self) -> bool:
        return self.mac is not None or self.ips is not None


def change(
    claim_id: int,
    changes: ClaimChange,
    *,
    author: events.Author,
    scope: namespaces.Scope = namespaces.EVERYTHING,
) -> IPAMClaim:
    """Change what a claim asks for, as long as it has no addresses; its note always.

    Raises NotFound, ImmutableInUse, ClusterDecides, AlreadyAllocated, ReservedAddress.
    """
    claim = _get(claim_id)
    with _lock_for_change(claim, author):
        claim = _get(claim_id, lock=True)
        if changes.changes_request:
            if claim.ips:
                raise errors.ImmutableInUse("The claim has its addresses, which are never changed.")
            if claim.follows_cluster:
                raise errors.ClusterDecides("The claim is the cluster's: change its object there.")
            claim.mac = claim.mac if changes.mac is None else changes.mac or None
            claim.ips_requested = claim.ips_requested if changes.ips is None else list(changes.ips)
            _check_not_taken(claim, scope)
        if changes.note is not None:
            claim.note = changes.note
        claim.save()
        index.write(claims=[claim])
    return claim


def delete(claim_id: int, *, author: events.Author) -> None:
    """A claim that no cluster has; its addresses cool down.

    Raises NotFound; ClusterDecides for one that is there: it goes when its object is gone.
    """
    claim = _get(claim_id)
    with _lock_for_change(claim, author):
        claim = _get(claim_id, lock=True)
        if claim.uid:
            command = f"kubectl delete ipamclaims.k8s.cni.cncf.io {claim.name} -n {claim.namespace}"
            message = f"The claim is in the cluster: delete it there. {command}"
            raise errors.ClusterDecides(message)
        ingest.delete([claim])


def release(claim_id: int, *, author: events.Author) -> IPAMClaim:
    """Give back the register's addresses of a claim that nobody has any more, with a reason.

    Only of one that was found leaked, or that is to be deleted for long; its object stays, and nothing
    is granted to it again. Raises NotFound, InvalidInput, Conflict.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Say why its addresses are given back."
        )
    claim = _get(claim_id)
    with _lock_for_change(claim, author):
        claim = _get(claim_id, lock=True)
        if not claim.ips:
            raise errors.Conflict("The claim has no addresses.")
        if not {finding.code for finding in states.findings(claim)} & _RELEASABLE:
            raise errors.Conflict(
                "The claim was not found to be leaked: its VM is there, or it is not known to be gone."
            )
        clear_addresses(claim)
    return claim


def clear_addresses(claim: IPAMClaim) -> None:
    """Without addresses from now on, though its object is there; in a transaction of the caller."""
    claim.ips = []
    claim.gone_at = Now()
    claim.save()
    claim.refresh_from_db()
    index.write(claims=[claim])


def _get(claim_id: int, *, lock: bool = False) -> IPAMClaim:
    rows = IPAMClaim.objects.select_related("cluster", "network")
    if lock:
        rows = rows.select_for_update(of=("self",))
    claim = rows.filter(pk=claim_id).first()
    if claim is None:
        raise errors.NotFound("There is no such object.")
    return claim


def parse_ips(value: object, network: Network, *, field: str = "ips_requested") -> tuple[str, ...]:
    """Requested addresses, with a prefix length or without, one of each family at most.

    Raises InvalidInput: the codes of entries.parse_ips, one_per_family.
    """
    if value == []:
        return ()
    ips = entries.parse_ips(value, entries.rules(network.subnets, lenient=True), field)
    families = [ipamclaim.host(text).version for text in ips]
    if len(set(families)) != len(families):
        message = "a claim has at most one address of each family"
        raise errors.InvalidInput.for_field(field, "one_per_family", message, ", ".join(ips))
    return ips


# --- manifests ------------------------------------------------------------------------------------


def claim_dialect(claim: IPAMClaim) -> Dialect:
    """How its cluster writes claims, as far as its object shows; a claim with requests shows them."""
    observed_object = findings.observed_object(claim)
    owner_pod = ((observed_object.manifest if observed_object else {}).get("status") or {}).get(
        "ownerPod"
    )
    has_request = bool(claim.mac or claim.ips_requested)
    dialect = dialects.PROPOSED if isinstance(owner_pod, str) or has_request else dialects.SHIPPED
    return dialects.with_requests(dialect)


def manifest(claim: IPAMClaim) -> dict[str, Any]:
    """The claim as an object, its status as the register has it."""
    return status_writer.manifest(claim, claim_dialect(claim), with_status=True)
