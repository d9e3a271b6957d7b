"""The writes for one claim: its IPAddress, its finalizer and status, and what its deletion takes back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pools.cluster_api import allocation
from pools.cluster_api.observed import ObservedClaim, PoolBinding
from pools.clusters.reconcile.handler import MANAGER, STATUS_MANAGER, SyncContext, Write
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Outcome, Reason, StatusForm
from pools.core.cluster_api.contract import AddressClaim, ObjectName
from pools.core.kubernetes import differences
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest, Resource

STRUCTURE = Structure(
    lists={
        ("metadata", "finalizers"): (),
        ("metadata", "ownerReferences"): ("uid",),
        ("status", "conditions"): ("type",),
        ("status", "v1beta2", "conditions"): ("type",),
    }
)
# Conditions with a severity are one value to server-side apply.
_STRUCTURE_V1BETA1 = Structure(
    lists={path: keys for path, keys in STRUCTURE.lists.items() if path != ("status", "conditions")}
)


@dataclass(frozen=True)
class Target:
    """The context of the writes of one sync: the versions that the cluster serves, and the time."""

    context: SyncContext
    claims: Resource
    addresses: Resource
    form: StatusForm
    now: datetime


def serving_writes(
    target: Target,
    observed: ObservedClaim,
    binding: PoolBinding,
    text: str,
    address: Manifest | None,
) -> Iterator[Write]:
    """Yield the due writes for a claim that has the address `text`; `address` is its IPAddress.

    The claim gets its finalizer first, then the IPAddress is made, then the status names it. An IPAddress
    that was restored first loses the owners that the claim and the pool were earlier: it can have one
    controller only.
    """
    claim = observed.claim
    finalizer = partial(_claim_with_finalizer, target=target, claim=claim)
    yield from _if_due(object_write(target.claims, claim.name, finalizer), observed.manifest)
    if address is not None and _without_earlier_owners(address, claim, binding) is not None:
        forget = partial(_without_earlier_owners, claim=claim, binding=binding)
        yield object_write(target.addresses, claim.name, forget, how="replace")
    make_address = partial(_address, target=target, claim=claim, binding=binding, text=text)
    yield from _if_due(object_write(target.addresses, claim.name, make_address), address)
    yield from status_writes(target, observed, Outcome(), is_written=address is not None)


def status_writes(
    target: Target, observed: ObservedClaim, outcome: Outcome, *, is_written: bool = True
) -> Iterator[Write]:
    """Yield the status of a claim if it differs, or if its IPAddress is not written yet."""
    make = partial(_status, target=target, claim=observed.claim, outcome=outcome)
    write = Write(
        target.claims,
        observed.claim.name.name,
        make,
        namespace=observed.claim.name.namespace,
        subresource="status",
        manager=STATUS_MANAGER,
        structure=_STRUCTURE_V1BETA1 if target.claims.version == "v1beta1" else STRUCTURE,
    )
    desired = _status_manifest(target, observed.claim, outcome, observed.manifest)
    if not is_written or _differs(write, desired, observed.manifest):
        yield write


def releasing_writes(
    target: Target, observed: ObservedClaim, address: Manifest | None
) -> Iterator[Write]:
    """Yield the writes for a claim that is being deleted.

    1. The IPAddress is deleted. 2. It loses its finalizer, and is gone. 3. The address enters the cooldown
    of its pool in the register, and the claim loses its finalizer: only when the IPAddress is gone.
    """
    claim = observed.claim
    if claim.has_finalizer or address is not None:
        for how, make in (("delete", _to_delete), ("replace", _unprotected)):
            yield object_write(target.addresses, claim.name, partial(make, claim=claim), how=how)
    if claim.has_finalizer:
        release = partial(_released_claim, target=target, claim=claim)
        yield object_write(target.claims, claim.name, release, how="replace")


def abandoned_address_writes(target: Target, address: Manifest, *, leaked: bool) -> Iterator[Write]:
    """Yield the writes that let an IPAddress go whose claim is gone.

    One that nobody deletes is deleted if it is `leaked`: two complete observations missed its claim.
    """
    name = contract.object_name(address)
    for how, make in (("delete", _abandoned), ("replace", _abandoned_unprotected)):
        if leaked or how == "replace":
            yield object_write(target.addresses, name, partial(make, target=target), how=how)


def object_write(
    resource: Resource, name: ObjectName, make: Callable[..., Manifest | None], how: str = "apply"
) -> Write:
    """Return the write of an object of Cluster API, without its status."""
    return Write(resource, name.name, make, namespace=name.namespace, how=how, structure=STRUCTURE)


def _if_due(write: Write, current: Manifest | None) -> Iterator[Write]:
    """Yield the write if the object as last observed differs."""
    if current is None or _differs(write, write.make(current), current):
        yield write


def _differs(write: Write, desired: Manifest | None, current: Manifest) -> bool:
    manager = "" if write.subresource else MANAGER
    return desired is not None and bool(
        differences.find_differences(desired, current, structure=write.structure, manager=manager)
    )


def _identity(resource: Resource, claim: AddressClaim) -> Manifest:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": claim.name.namespace, "name": claim.name.name},
    }


def _is_object_of(current: Manifest | None, claim: AddressClaim) -> bool:
    return current is not None and contract.metadata(current).get("uid") == claim.uid


# --- the claim is served --------------------------------------------------------------------------


def _claim_with_finalizer(
    current: Manifest | None, target: Target, claim: AddressClaim
) -> Manifest | None:
    if current is None or not _is_object_of(current, claim) or contract.is_deleting(current):
        return None
    manifest = _identity(target.claims, claim)
    manifest["metadata"]["finalizers"] = [contract.RELEASE_FINALIZER]
    return manifest


def _address(
    current: Manifest | None, target: Target, claim: AddressClaim, binding: PoolBinding, text: str
) -> Manifest | None:
    """Return the IPAddress; None if another claim's object has the name, or the object is being deleted.

    An existing object keeps its spec, as machines use it; it gets owners and the finalizer. A new one is made
    only for a claim that the cluster has now, with the finalizer that keeps it until the IPAddress is gone.
    """
    if current is not None and (
        not contract.belongs_to(current, claim) or contract.is_deleting(current)
    ):
        return None
    if current is None and not _is_protected_now(target, claim):
        return None
    manifest = _identity(target.addresses, claim)
    manifest["metadata"] |= {
        "finalizers": [contract.PROTECT_FINALIZER],
        "ownerReferences": _owners(current or {}, target, claim, binding),
    }
    if label := claim.labels.get(contract.CLUSTER_NAME):
        manifest["metadata"]["labels"] = {contract.CLUSTER_NAME: label}
    if current is not None:
        manifest["spec"] = current.get("spec")
        return manifest
    manifest["spec"] = {
        "claimRef": {"name": claim.name.name},
        "poolRef": {"apiGroup": contract.GROUP, "kind": claim.pool.kind, "name": claim.pool.name},
        **binding.address_spec(text),
    }
    return manifest


def _is_protected_now(target: Target, claim: AddressClaim) -> bool:
    """Return True if the cluster has the claim now, not being deleted, with our finalizer."""
    current = target.context.client.find(target.claims, claim.name.name, claim.name.namespace)
    return (
        current is not None
        and _is_object_of(current, claim)
        and not contract.is_deleting(current)
        and (target.context.dry_run or contract.has_finalizer(current, contract.RELEASE_FINALIZER))
    )


def _without_earlier_owners(
    current: Manifest | None, claim: AddressClaim, binding: PoolBinding
) -> Manifest | None:
    """Return the IPAddress without owners of the claim's or the pool's name and another uid; None without such."""
    if current is None or not contract.belongs_to(current, claim) or contract.is_deleting(current):
        return None
    uids = {
        (contract.CLAIM_KIND, claim.name.name): claim.uid,
        (claim.pool.kind, claim.pool.name): binding.pool_object.uid,
    }
    metadata = contract.metadata(current)
    owners = metadata.get("ownerReferences") or []
    remaining = [
        owner
        for owner in owners
        if uids.get((owner.get("kind"), owner.get("name")), owner.get("uid")) == owner.get("uid")
    ]
    if len(remaining) == len(owners):
        return None
    return {**current, "metadata": {**metadata, "ownerReferences": remaining}}


def _owners(
    current: Mapping[str, Any], target: Target, claim: AddressClaim, binding: PoolBinding
) -> list[Manifest]:
    """Return the owner references: the claim as controller, unless the object has another one."""
    others = contract.metadata(current).get("ownerReferences") or ()
    has_controller = any(
        other.get("controller") is True and other.get("kind") != contract.CLAIM_KIND
        for other in others
    )
    return [
        {
            "apiVersion": target.claims.api_version,
            "kind": contract.CLAIM_KIND,
            "name": claim.name.name,
            "uid": claim.uid,
            "controller": not has_controller,
            "blockOwnerDeletion": True,
        },
        {
            "apiVersion": contract.API_VERSION,
            "kind": claim.pool.kind,
            "name": claim.pool.name,
            "uid": binding.pool_object.uid,
            "controller": False,
            "blockOwnerDeletion": True,
        },
    ]


def _status(
    current: Manifest | None, target: Target, claim: AddressClaim, outcome: Outcome
) -> Manifest | None:
    if current is None or not _is_object_of(current, claim):
        return None
    if outcome.is_ready:
        address = _fetch_address(target, claim)
        if address is None:
            return None  # it could not be written; the result of its write says why
        if not contract.belongs_to(address, claim):
            outcome = Outcome(
                Reason.ALLOCATION_FAILED,
                f"An IPAddress {claim.name} exists that belongs to another claim or pool.",
            )
    return _status_manifest(target, claim, outcome, current)


def _status_manifest(
    target: Target, claim: AddressClaim, outcome: Outcome, current: Manifest
) -> Manifest:
    address = claim.name.name if outcome.is_ready else ""
    status = conditions.claim_status(outcome, address, target.form, current, target.now)
    return _identity(target.claims, claim) | {"status": status}


def _fetch_address(target: Target, claim: AddressClaim) -> Manifest | None:
    """Return the IPAddress of the claim's name as the cluster has it now."""
    return target.context.client.find(target.addresses, claim.name.name, claim.name.namespace)


# --- the claim is released ------------------------------------------------------------------------


def _to_delete(current: Manifest | None, claim: AddressClaim) -> Manifest | None:
    if current is None or not contract.belongs_to(current, claim):
        return None
    return None if contract.is_deleting(current) else current


def _unprotected(current: Manifest | None, claim: AddressClaim) -> Manifest | None:
    if current is None or not contract.belongs_to(current, claim):
        return None
    return contract.without_finalizer(current, contract.PROTECT_FINALIZER)


def _released_claim(
    current: Manifest | None, target: Target, claim: AddressClaim
) -> Manifest | None:
    if current is None or not _is_object_of(current, claim):
        return None
    if not contract.has_finalizer(current, contract.RELEASE_FINALIZER):
        return None
    address = _fetch_address(target, claim)
    if address is not None and contract.belongs_to(address, claim):
        return None  # finalizers of others keep it: the next sync looks again
    allocation.release_address(target.context, claim.uid)
    return contract.without_finalizer(current, contract.RELEASE_FINALIZER)


def _abandoned(current: Manifest | None, target: Target) -> Manifest | None:
    if current is None or contract.is_deleting(current):
        return None
    return None if _has_claim(current, target) else current


def _abandoned_unprotected(current: Manifest | None, target: Target) -> Manifest | None:
    if current is None or not contract.is_deleting(current):
        return None
    released = contract.without_finalizer(current, contract.PROTECT_FINALIZER)
    return None if released is None or _has_claim(current, target) else released


def _has_claim(address: Manifest, target: Target) -> bool:
    """Return True if the cluster has the claim of an IPAddress now."""
    reference = contract.section(contract.section(address, "spec"), "claimRef")
    namespace = contract.object_name(address).namespace
    name = str(reference.get("name"))
    return target.context.client.find(target.claims, name, namespace) is not None
