"""Ingest of a cluster's IPAMClaims into the register; callers open the transaction.

Addresses in the status of a claim are authoritative. If the register allocates addresses (the managed
resource `claims`), its grants stay, even while the object does not show them yet: addresses of a claim are
never overwritten, and belong to the uid of its VM.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from claims.address_index import block_sync, index
from claims.address_index.block_sync import ChangedKeys
from claims.core.ipamclaims import ipamclaim
from claims.core.ipamclaims.ipamclaim import Claim
from claims.core.networks import udn
from claims.models import IPAMClaim, Network
from pools.models import Cluster
from pools.platform import database
from pools.sql import statements

# The columns that the object of a claim determines.
_FIELDS = (
    "network_id",
    "interface",
    "mac",
    "ips_requested",
    "vm",
    "vm_uid",
    "ips",
    "owner_pod",
    "conditions",
    "finalizers",
    "deleted_at",
    "uid",
    "follows_cluster",
    "gone_at",
)


@dataclass(frozen=True)
class ObservedClaim:
    """A parsed claim object; `written_here` is True if the register wrote its spec."""

    claim: Claim
    written_here: bool = False


def ingest_claims(
    cluster: Cluster, observed_claims: Sequence[ObservedClaim], *, claims_managed: bool
) -> None:
    """Insert and update the claims of a batch of objects.

    `claims_managed` is True if the register allocates addresses in this cluster.
    """
    networks = _networks(cluster, {observed.claim.network for observed in observed_claims})
    names = {observed.claim.name for observed in observed_claims}
    existing_rows = IPAMClaim.objects.filter(cluster=cluster, name__in=names)
    existing_claims = {(row.namespace, row.name): row for row in existing_rows}
    network_ids = {network.pk for network in networks.values()}
    network_ids |= {row.network_id for row in existing_claims.values()}
    block_sync.lock_pools(network_ids)
    new, changed, claims_of_other_vm = [], [], []
    for observed in observed_claims:
        claim, network = observed.claim, networks[observed.claim.network]
        row = existing_claims.get((claim.namespace, claim.name))
        if row is None:
            row = IPAMClaim(cluster=cluster, namespace=claim.namespace, name=claim.name)
            row.follows_cluster = not observed.written_here
            _update_row(row, observed, network, claims_managed=claims_managed)
            new.append(row)
            existing_claims[claim.namespace, claim.name] = row
            continue
        before = _values(row)
        _update_row(row, observed, network, claims_managed=claims_managed)
        if _values(row) == before:
            continue
        if row.pk:
            changed.append(row)
            if row.vm_uid != before["vm_uid"]:
                claims_of_other_vm.append(row)
    IPAMClaim.objects.bulk_create(new)
    store(changed)
    index.write(claims=[*new, *changed])
    sync_owner_blocks(claims_of_other_vm)


def _values(row: IPAMClaim) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FIELDS}


def store(rows: Iterable[IPAMClaim], *columns: str) -> None:
    """Update the given columns of many claims in one statement; by default all of _FIELDS."""
    names = columns or _FIELDS
    values = [{"id": row.pk} | {name: getattr(row, name) for name in names} for row in rows]
    if values:
        statement = _STORE.format(
            columns=sql.SQL(", ").join(map(sql.Identifier, names)),
            changes=sql.SQL(", ").join(sql.Identifier("w", name) for name in names),
        )
        database.rows(statement, [json.dumps(values, default=str)], prepare=False)


_STORE = sql.SQL(
    """
    UPDATE claims_ipamclaim c SET ({columns}) = ROW({changes})
    FROM jsonb_populate_recordset(NULL::claims_ipamclaim, %s::jsonb) AS w
    WHERE c.id = w.id RETURNING c.id
    """
)


def _networks(cluster: Cluster, names: Iterable[str]) -> dict[str, Network]:
    """Return the networks by name; unknown names get a row of kind UNKNOWN."""
    network_names = set(names)
    rows = Network.objects.filter(cluster=cluster, name__in=network_names)
    networks = {row.name: row for row in rows}
    missing = sorted(network_names - set(networks))
    if missing:
        Network.objects.bulk_create(
            [Network(cluster=cluster, name=name) for name in missing], ignore_conflicts=True
        )
        networks |= {row.name: row for row in rows.all()}
    return networks


def _update_row(
    row: IPAMClaim, observed: ObservedClaim, network: Network, *, claims_managed: bool
) -> None:
    claim = observed.claim
    same_object = row.uid in {"", claim.uid}
    same_vm = bool(claim.vm_uid) and row.vm_uid == claim.vm_uid
    has_moved = row.pk is not None and row.network_id != network.pk
    if not same_object:
        row.gone_at = None
    keeps_addresses = claims_managed and (same_object or same_vm) and not has_moved
    subnets = udn.readable_networks(network.subnets)
    ips = [ipamclaim.with_prefix(text, subnets) for text in claim.ips]
    if row.gone_at is not None:  # a user released its addresses although the object exists
        ips = []
    elif not ips and keeps_addresses and row.ips:
        ips = row.ips  # the status is not written yet, or was lost
    if claim.ips or not (ips and row.conditions):
        row.conditions = list(claim.conditions)
    row.ips = ips
    if claim.owner_pod or not (keeps_addresses and ips):
        row.owner_pod = claim.owner_pod
    _update_request(row, observed)
    row.network = network
    row.interface = claim.interface
    # A claim without an owner gets its own name as VM, so that its addresses have a holder.
    fallback_vm = "" if row.mac else claim.name
    registered_vm = "" if row.follows_cluster else row.vm
    row.vm_uid = claim.vm_uid or (row.vm_uid if not row.follows_cluster and same_object else "")
    row.vm = claim.vm or registered_vm or fallback_vm
    row.finalizers = list(claim.finalizers)
    row.deleted_at = claim.deleted_at
    row.uid = claim.uid


def _update_request(row: IPAMClaim, observed: ObservedClaim) -> None:
    """Take the request from the object, unless the register wrote it: then the register's request stays."""
    claim = observed.claim
    has_request = bool(claim.mac or claim.ips_requested)
    if has_request and not observed.written_here:
        row.follows_cluster = True
    if row.follows_cluster or row.pk is None:
        row.mac, row.ips_requested = claim.mac, list(claim.ips_requested)


def forget(cluster: Cluster, uids: Iterable[str]) -> int:
    """Delete the claims of deleted objects, and return their number; their addresses enter cooldown."""
    rows = list(IPAMClaim.objects.filter(cluster=cluster, uid__in=[uid for uid in uids if uid]))
    delete(rows)
    return len(rows)


def delete(rows: Sequence[IPAMClaim]) -> None:
    if not rows:
        return
    block_sync.lock_pools(row.network_id for row in rows)
    ids = [row.pk for row in rows]
    index.remove(claims=ids)
    IPAMClaim.objects.filter(pk__in=ids).delete()


def sync_owner_blocks(rows: Sequence[IPAMClaim]) -> None:
    """Sync the blocks of claims whose VM has a new uid."""
    changed_keys = ChangedKeys()
    for row in rows:
        name = block_sync.holder_name(row.namespace, row.vm, row.mac)
        for text in row.ips:
            changed_keys.add(row.network_id, None, str(ipamclaim.host(text)), name)
    if changed_keys:
        block_sync.sync_blocks(changed_keys)


def set_vm_uids(cluster_id: int) -> None:
    """Set the VM uid of claims that were created in the register, once their VM exists."""
    ids = [pk for (pk,) in database.rows(_SET_VM_UIDS, {"cluster": cluster_id})]
    if ids:
        sync_owner_blocks(list(IPAMClaim.objects.filter(pk__in=ids)))


_SET_VM_UIDS = statements.read("claims/set_vm_uids")


def update_owner_pods(cluster_id: int, *, pods_known: bool) -> None:
    """Set the owner pod of each claim to a pod that runs its VM.

    During a live migration the previous pod stays (rule `migration-keeps-the-address`). `pods_known` is
    True if all pods and VM instances of the cluster are known: then an owner pod that is gone is cleared,
    even if OVN-Kubernetes still has it in the status.
    """
    database.rows(_UPDATE_OWNER_PODS, {"cluster": cluster_id})
    if pods_known:
        database.rows(_CLEAR_OWNER_PODS, {"cluster": cluster_id})


_UPDATE_OWNER_PODS = statements.read("claims/update_owner_pods")

# While the VM has an instance, its pod may exist without having been observed.
_CLEAR_OWNER_PODS = statements.read("claims/clear_owner_pods")
