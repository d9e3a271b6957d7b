"""The addresses of claims in the register: blocks whose holder is the claim, by its uid.

When there is a free address again, the clusters of claims that wait for one are woken. Leak detection reports what
nothing releases.

The register decides before the cluster sees anything: a block that was allocated and not written yet is
found again by the claim's uid, and an address that an IPAddress has already is adopted (a claim that
clusterctl moved, a restored cluster), so that neither a crash nor a move gives a machine a second address.
"""

from collections.abc import Collection
from ipaddress import ip_network

from django.db.models import F, QuerySet
from django.db.models.functions import Greatest
from psycopg import sql

from pools.cluster_api import observed
from pools.cluster_api.observed import PoolBinding
from pools.clusters import recovery_mode
from pools.clusters.reconcile import leases, storage
from pools.clusters.reconcile.handler import SyncContext
from pools.core import errors, holders
from pools.core.cluster_api import contract
from pools.core.cluster_api.conditions import READY, Reason
from pools.core.cluster_api.contract import HOLDER_KIND, AddressClaim, ObjectName
from pools.core.holders import BlockDemand, Holder
from pools.models import Block, BlockState, Connection, ManagedResource, Now, ObservedObject
from pools.platform import database
from pools.register import usage
from pools.register.allocator import allocation, window
from pools.register.leaks import detection

# Of observed objects, with which the uids of blocks are compared.
LONGEST_UID = storage.LONGEST["uid"]


class AddressTaken(errors.Conflict):
    """The claim's IPAddress has an address that another holder has in the register."""

    code = "address_taken"


def holder(claim: AddressClaim) -> Holder:
    """Return the claim as the holder of its address. Raises InvalidInput if its names are too long for one."""
    name = str(claim.name)
    if len(name) > holders.LONGEST_IDENTIFIER:
        message = (
            f"namespace/name of a claim may have at most {holders.LONGEST_IDENTIFIER} characters together;"
            f" this one has {len(name)}"
        )
        raise errors.InvalidInput.for_field("metadata.name", "too_long", message, name)
    if len(claim.uid) > LONGEST_UID:
        message = f"the uid of a claim may have at most {LONGEST_UID} characters"
        raise errors.InvalidInput.for_field("metadata.uid", "too_long", message, claim.uid)
    return Holder(HOLDER_KIND, name, claim.uid)


def held_addresses(cluster_id: int, names: Collection[ObjectName]) -> dict[str, str]:
    """Return the addresses that claims of these names hold, by the uid of the claim."""
    blocks = _held_blocks(cluster_id).filter(holder_id__in=[str(name) for name in names])
    rows = blocks.values_list("holder_uid", "cidr")
    return {uid: str(cidr.network_address) for uid, cidr in rows}


def _held_blocks(cluster_id: int) -> QuerySet[Block]:
    return Block.objects.filter(
        pool__cluster=cluster_id, holder_kind=HOLDER_KIND, state=BlockState.HELD
    )


def hold_address(
    context: SyncContext, claim: AddressClaim, binding: PoolBinding, existing: str
) -> str:
    """Return the claim's address, and allocate it if it has none.

    `existing` is the address of its IPAddress, "" without one; that address is what machines use, and
    becomes the claim's. Opens a transaction. Raises PoolExhausted, AddressTaken, Recovering, and the other
    errors of the allocator; then nothing is changed.
    """
    pool = binding.pool
    with context.transaction():
        window.lock(pool.pk)
        own = _held_blocks(context.cluster.pk).filter(holder_uid=claim.uid).first()
        text = str(own.cidr.network_address) if own else ""
        if own and existing in {"", text}:
            return text
        if existing:
            if own:
                window.release_blocks([own.pk], kind=HOLDER_KIND)
            _adopt(context, claim, binding, existing)
            return existing
        if not recovery_mode.may_allocate():
            raise errors.Recovering
        demand = BlockDemand(holders=(holder(claim),), families=(binding.family,))
        answer = allocation.allocate(pool.pk, demand, author=context.author)
        assert isinstance(answer, allocation.Allocation)  # noqa: S101  # without a key
        return str(answer.blocks[0]["address"])


def _adopt(context: SyncContext, claim: AddressClaim, binding: PoolBinding, text: str) -> None:
    """Make the claim the holder of an address that its IPAddress has.

    An earlier claim of the same name, whose object is gone, loses it, also out of a cooldown.
    """
    cidr = ip_network(text)
    blocks = Block.objects.filter(space=binding.pool.space_id, cidr=str(cidr))
    block = blocks.select_for_update().first()
    is_earlier = block is not None and (block.holder_kind, block.holder_id) == holder(claim)[:2]
    if block is not None and is_earlier:
        if block.state == BlockState.HELD:
            blocks.update(holder_uid=claim.uid)
            return
        database.rows("SELECT set_config('ipam.skip_cooldown', 'on', true)", [])
        blocks.update(
            state=BlockState.HELD,
            holder_uid=claim.uid,
            allocated_at=Greatest(Now(), F("released_at")),
            released_at=None,
            available_from=None,
        )
        database.rows("SELECT set_config('ipam.skip_cooldown', 'off', true)", [])
        return
    if block is not None and block.state == BlockState.HELD:
        raise AddressTaken(
            f"The IPAddress {claim.name} has {text}, which {block.holder_kind} {block.holder_id}"
            " holds in the register."
        )
    demand = BlockDemand(holders=(holder(claim),), families=(cidr.version,), cidr=cidr)
    allocation.allocate(binding.pool.pk, demand, author=context.author)


def release_address(context: SyncContext, uid: str) -> None:
    """Release what the claim with this uid holds, into the cooldown of its pool; opens a transaction."""
    with context.transaction():
        ids = _held_blocks(context.cluster.pk).filter(holder_uid=uid).values_list("pk", flat=True)
        window.release_blocks(list(ids), kind=HOLDER_KIND)


def release_vanished(
    context: SyncContext,
    claim_uids: Collection[str],
    address_texts: Collection[tuple[ObjectName, str]],
) -> None:
    """Release the addresses of claims that are gone together with their IPAddress.

    A claim whose finalizer somebody removed goes without us; so do all claims that clusterctl moves to
    another cluster. The caller knows all claims and all IPAddresses of the cluster, or after a watch event
    those of the changed names, and only these are released.
    """
    in_use = {(str(name), text) for name, text in address_texts}
    blocks = _held_blocks(context.cluster.pk)
    if context.from_watch:
        names = [str(ObjectName(*key)) for key in context.changed_keys]
        blocks = blocks.filter(holder_id__in=names)
    gone = [
        pk
        for pk, uid, holder_id, cidr in blocks.values_list("pk", "holder_uid", "holder_id", "cidr")
        if uid and uid not in claim_uids and (holder_id, str(cidr.network_address)) not in in_use
    ]
    if gone:
        with context.transaction():
            window.release_blocks(gone, kind=HOLDER_KIND)


# Of both versions of the contract: v1beta1 has the reason in the same place.
_EXHAUSTED = {
    "status": {
        "conditions": [{"type": READY, "status": "False", "reason": Reason.POOL_EXHAUSTED.value}]
    }
}


def nudge_clusters() -> int:
    """Wake the clusters with claims whose pool was exhausted and has free addresses; return their number."""
    connections = Connection.objects.filter(
        managed_resources__contains=[ManagedResource.CLUSTER_API], paused=False
    )
    claims = ObservedObject.objects.filter(
        kind=contract.CLAIM_KIND,
        cluster__in=list(connections.values_list("cluster", flat=True)),
        manifest__contains=_EXHAUSTED,
        missed_at=None,
    )
    uids: dict[int, set[str]] = {}
    for cluster_id, uid in claims.values_list("cluster_id", "uid"):
        uids.setdefault(cluster_id, set()).add(uid)
    number = 0
    for connection in connections.filter(cluster__in=uids).select_related("cluster"):
        if _has_free_address(connection, uids[connection.cluster_id]):
            leases.nudge(connection.cluster_id, patient=True)
            number += 1
    return number


def _has_free_address(connection: Connection, uids: set[str]) -> bool:
    """Return True if the pool of one of these claims has a free address, and nothing is paused."""
    observation = observed.read_rows(connection.cluster, changed=())
    bindings = observed.bind(connection.cluster, observation.pools)
    waiting = [
        bindings.get(observed_claim.claim.pool)
        for observed_claim in observation.claims
        if observed_claim.claim.uid in uids
        and not observed_claim.claim.is_deleting
        and not observation.is_paused(observed_claim.claim)
    ]
    usable = [binding for binding in waiting if isinstance(binding, PoolBinding)]
    usages = usage.usage_by_pool({binding.pool.pk: binding.pool for binding in usable}.values())
    return any(usages[binding.pool.pk][binding.family].free for binding in usable)


# Where Cadastre answers claims it releases what is gone by itself. This reports the rest: IPAddresses without a
# claim, which a sync run takes away once the leak is confirmed, and whatever a cluster has whose managed resource
# was switched off.
_OBSERVED = """
    SELECT FROM pools_observedobject o
    WHERE o.cluster_id = %(cluster)s AND o.kind = {kind} AND b.holder_kind = {holder}
      AND o.namespace || '/' || o.name = b.holder_id AND o.missed_at IS NULL
"""
_ADDRESS_OF_CLAIM = """
      AND o.manifest #>> '{{spec,address}}' = host(b.cidr)
      AND (o.namespace, o.manifest #>> '{{spec,claimRef,name}}') IN (
        SELECT c.namespace, c.name FROM pools_observedobject c
        WHERE c.cluster_id = %(cluster)s AND c.kind = {claim_kind} AND c.missed_at IS NULL)
"""
_HOLDER_KIND = {"holder": sql.Literal(HOLDER_KIND)}

LEAK_SOURCE = detection.LeakSource(
    "claims of Cluster API",
    frozenset({contract.CLAIM_KIND, contract.ADDRESS_KIND}),
    frozenset({HOLDER_KIND}),
    sql.SQL("b.holder_kind = {holder}").format(**_HOLDER_KIND),
    (
        sql.SQL(_OBSERVED + " AND b.holder_uid IN ('', o.uid)").format(
            kind=sql.Literal(contract.CLAIM_KIND), **_HOLDER_KIND
        ),
        # An IPAddress stands for the claim that it names, and not for one that is gone.
        sql.SQL(_OBSERVED + _ADDRESS_OF_CLAIM).format(
            kind=sql.Literal(contract.ADDRESS_KIND),
            claim_kind=sql.Literal(contract.CLAIM_KIND),
            **_HOLDER_KIND,
        ),
    ),
)


def leaked_addresses(cluster_id: int) -> set[tuple[str, str]]:
    """Return claim (namespace/name) and address of the confirmed leaks of the cluster."""
    leaks = detection.confirmed_leaks().filter(cluster=cluster_id, holder_kind=HOLDER_KIND)
    rows = leaks.values_list("holder_id", "block__cidr")
    return {(holder_id, str(cidr.network_address)) for holder_id, cidr in rows}
