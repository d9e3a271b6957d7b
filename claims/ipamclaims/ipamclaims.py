"""IPAMClaims created, changed and deleted by users of the register.

If the cluster's connection manages `claims`, the next sync run writes the object and grants the addresses.
Otherwise the claim is only recorded, and its manifest can be downloaded. An object that exists in the
cluster has to be deleted there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError

from claims.access import namespaces
from claims.address_index import block_sync, duplicates, index
from claims.core import entries
from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.ipamclaims.dialects import Dialect
from claims.core.networks import kept_addresses, udn
from claims.core.workloads import vm_objects
from claims.ipamclaims import findings, ingest, states, status_writer
from claims.models import NAD, IPAMClaim, Network
from claims.networks import networks
from pools.clusters.reconcile import leases
from pools.core import errors, holders
from pools.models import Now, ObservedObject
from pools.platform import database, events


def claim_name(network: Network, namespace: str, vm: str) -> str:
    """Return the name of a VM's claim: `<vm>.<network name in the VM's spec>`.

    For a VM that is not observed yet it is `<vm>.<network>`.
    """
    return ipamclaim.compose_key(vm, vm_networks(network, vm).get((namespace, vm), network.name))


def vm_networks(network: Network, vm: str | None = None) -> Mapping[tuple[str, str], str]:
    """Return the name of the network in the spec of observed VMs, by (namespace, name).

    With `vm` only VMs of this name are read.
    """
    nads = NAD.objects.filter(network=network).values_list("namespace", "name", "role")
    names = {f"{namespace}/{name}" for namespace, name, _ in nads}
    primary_namespaces = {namespace for namespace, _, role in nads if role == udn.PRIMARY}
    rows = ObservedObject.objects.filter(
        cluster_id=network.cluster_id,
        kind__in=[vm_objects.VM, vm_objects.VMI],
        namespace__in={namespace for namespace, _, _ in nads},
        **({} if vm is None else {"name": vm}),
    )
    names_by_vm: dict[tuple[str, str], str] = {}
    for namespace, name, manifest in rows.order_by("-kind").values_list(
        "namespace", "name", "manifest"
    ):
        network_name = vm_objects.network_name(
            manifest, names, namespace=namespace, primary=namespace in primary_namespaces
        )
        if network_name:
            names_by_vm[namespace, name] = network_name  # the VirtualMachine comes last
    return names_by_vm


_RELEASABLE = {findings.LEAKED, findings.STUCK}  # findings that allow a release


@dataclass(frozen=True)
class ClaimSpec:
    """A claim to create; without `name` it gets the name that ipam-extensions composes for the VM."""

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
    """Create a claim that does not exist in the cluster yet.

    With a limited scope only free values can be requested, and errors do not name the holder. Raises
    InvalidInput (the name; network_unfit), AlreadyExists, AlreadyAllocated, ReservedAddress, QuotaExceeded.
    """
    require_fit(spec.network)
    name = spec.name or claim_name(spec.network, spec.namespace, spec.vm)
    holders.parse_name(name, field="name")
    vm = spec.vm or ipamclaim.vm_of(name, spec.network.name)
    if not (vm or spec.mac):
        raise errors.InvalidInput.for_field("vm", "required", "a VM or a MAC address is required")
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
    with _lock_for_change(claim, author, scope):
        _check_not_taken(claim, scope)
        if IPAMClaim.objects.filter(
            cluster=claim.cluster, namespace=claim.namespace, name=name
        ).exists():
            raise errors.AlreadyExists(
                f"The namespace {claim.namespace} already has an IPAMClaim {name}."
            )
        claim.save()
        index.write(claims=[claim])
    return claim


# Of static_vms.check: on such a network no claim gets or keeps an address.
_UNFIT = {"gone", "not_persistent", "ipam_disabled", "no_subnets"}


def require_fit(network: Network, field: str = "network") -> None:
    """Raise InvalidInput network_unfit if a claim on the network would never get or keep addresses.

    Secondary and localnet networks may have claims, though no static VMs.
    """
    is_layer3 = network.topology == udn.LAYER3
    for reason in networks.static_vm_check(network).reasons:
        if reason.code in _UNFIT or (is_layer3 and reason.code == "not_layer2"):
            message = (
                f"the network {network.name} cannot hold claims: {reason.message} {reason.remedy}"
            )
            raise errors.InvalidInput.for_field(field, "network_unfit", message, network.name)


@contextmanager
def _lock_for_change(
    claim: IPAMClaim, author: events.Author, scope: namespaces.Scope = namespaces.EVERYTHING
) -> Iterator[None]:
    """Lock the cluster's row, then the pool, in the order of the sync runs; rows are locked last.

    With a limited scope the quota of the claim's namespace holds.
    """
    limited = [] if scope.everything else [claim.namespace]
    try:
        with events.recorded_by(author), namespaces.enforce_quota(claim.cluster_id, limited):
            leases.nudge(claim.cluster_id, patient=True)
            block_sync.lock_pools([claim.network_id])
            yield
    except IntegrityError as error:
        if database.constraint(error) != "ipamclaim_name_unique":
            raise
        raise errors.AlreadyExists from error


def _check_not_taken(claim: IPAMClaim, scope: namespaces.Scope) -> None:
    """Raise ReservedAddress for a MAC that the network keeps; with a limited scope, for any taken value."""
    kept_span = kept_addresses.kept_macs(claim.network).get(claim.mac or "")
    if kept_span:
        raise errors.ReservedAddress(f"{claim.mac} is the MAC address of the {kept_span.port}.")
    if scope.everything:
        return
    candidate = duplicates.Candidate(
        claim.network,
        claim.mac,
        [text.partition("/")[0] for text in claim.ips_requested],
        claim.vm,
        claim.namespace,
        claim_id=claim.pk or 0,
    )
    duplicates.require_free(candidate, scope=scope, reserved="by the network")


@dataclass(frozen=True)
class ClaimChange:
    """The fields to change; a field that is None keeps its value. `mac` "" removes the request."""

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
    version: database.Version = None,
) -> IPAMClaim:
    """Change the request of a claim without addresses, or the note of any claim.

    Raises NotFound, VersionMismatch, ImmutableInUse, ClusterDecides, AlreadyAllocated, ReservedAddress.
    """
    claim = _get(claim_id)
    with _lock_for_change(claim, author, scope):
        claim = _get(claim_id, lock=True)
        database.require_version(claim, version)
        if changes.changes_request:
            if claim.ips:
                raise errors.ImmutableInUse(
                    "The claim has addresses; its request cannot be changed."
                )
            if claim.follows_cluster:
                raise errors.ClusterDecides(
                    "The cluster owns the claim: change its object in the cluster."
                )
            claim.mac = claim.mac if changes.mac is None else changes.mac or None
            claim.ips_requested = claim.ips_requested if changes.ips is None else list(changes.ips)
            _check_not_taken(claim, scope)
        if changes.note is not None:
            claim.note = changes.note
        claim.save()
        index.write(claims=[claim])
    return claim


def delete(claim_id: int, *, author: events.Author) -> None:
    """Delete a claim that does not exist in the cluster; its addresses enter cooldown.

    Raises NotFound, and ClusterDecides for a claim whose object exists in the cluster.
    """
    claim = _get(claim_id)
    with _lock_for_change(claim, author):
        claim = _get(claim_id, lock=True)
        if claim.uid:
            command = f"kubectl delete ipamclaims.k8s.cni.cncf.io {claim.name} -n {claim.namespace}"
            message = f"The claim exists in the cluster: delete it there with {command}"
            raise errors.ClusterDecides(message)
        ingest.delete([claim])


def release(claim_id: int, *, author: events.Author) -> IPAMClaim:
    """Release the addresses of a leaked claim, or of one whose deletion is stuck; a reason is required.

    The object of the claim stays, and the claim gets no addresses again. Raises NotFound, InvalidInput,
    Conflict.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "A reason for the release of the addresses is required."
        )
    claim = _get(claim_id)
    with _lock_for_change(claim, author):
        claim = _get(claim_id, lock=True)
        if not claim.ips:
            raise errors.Conflict("The claim has no addresses.")
        if not {finding.code for finding in states.findings(claim)} & _RELEASABLE:
            raise errors.Conflict(
                "The claim has no leak finding: its VM exists, or is not known to be deleted."
            )
        clear_addresses(claim)
    return claim


def clear_addresses(claim: IPAMClaim) -> None:
    """Remove the addresses of a claim for good; its object stays. The caller opens the transaction."""
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
    """Parse requested addresses, with or without prefix length, at most one of each family.

    Raises InvalidInput: the codes of entries.parse_ips.
    """
    if value == []:
        return ()
    rules = entries.rules(network.subnets, lenient=True, one_per_family=True)
    return entries.parse_ips(value, rules, field)


# --- manifests ------------------------------------------------------------------------------------


def claim_dialect(claim: IPAMClaim) -> Dialect:
    """Return the dialect of the claim's cluster, as far as its object and its requests show it."""
    observed_object = findings.observed_object(claim)
    owner_pod = ((observed_object.manifest if observed_object else {}).get("status") or {}).get(
        "ownerPod"
    )
    has_request = bool(claim.mac or claim.ips_requested)
    dialect = dialects.PROPOSED if isinstance(owner_pod, str) or has_request else dialects.SHIPPED
    return dialects.with_requests(dialect)


def manifest(claim: IPAMClaim) -> dict[str, Any]:
    """Return the claim's manifest, with the status of the register."""
    return status_writer.manifest(claim, claim_dialect(claim), with_status=True)
