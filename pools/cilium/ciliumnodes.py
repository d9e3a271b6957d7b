"""CiliumNodes: recorded as they are, or served as Cilium's operator serves them (managed resource pod-cidrs).

The register has a block before the cluster hears of it: handed out in one transaction, then written
to spec.ipam.pools.allocated, until the node is seen to list it. What is open about a node (addresses
it lacks, CIDRs that are another's or nobody's, a block it was not told of) makes it `pending`, and
every pass looks at it again; nodes that are all right cost nothing.

Which blocks are handed out, and what is said of those that are not, is as pools/core/cilium/pod_cidr_operator
says it. Otherwise on purpose: no block while it cools, none that a CIDR in use overlaps though it is
listed under another pool or size; a block that the node was not told of is told again, not given up;
so many at once; and nothing is taken from a node because of a holder that does not use it.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from pools.cilium import node_allocation, node_blocks, node_findings, node_status
from pools.cilium.node_allocation import Want
from pools.cilium.node_status import HOLDER, NodeStatus, PodPools
from pools.clusters import recovery_mode
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile import watch_positions
from pools.clusters.reconcile.handler import (
    STATUS_MANAGER,
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import addresses, errors
from pools.core.cilium import ciliumnode, podippool
from pools.core.cilium.ciliumnode import NodeDemand
from pools.core.kubernetes import resources
from pools.models import ObservedObject
from pools.models.connections import ManagedResource
from pools.platform.outbound import faults

# A node may ask for 2^63 addresses, and an object of a cluster has at most some 1.5 MB.
MOST_AT_ONCE = 256  # blocks of one pool and family for one node in one pass
MOST_HELD = 10_000  # a node with more gets no further ones

Grants = Sequence[tuple[str, addresses.Network]]  # pool, CIDR


class CiliumNodes(Handler):
    """The handler; what it knows is in the register, so that any process can go on."""

    kind = ciliumnode.KIND
    resources: Sequence[resources.Resource] = (resources.CILIUM_NODE,)
    follows = (podippool.KIND,)

    def project(self, manifest: Manifest) -> Manifest:
        """Without who owns which field: half of a node, and whole objects are written, not fields."""
        metadata = manifest.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
        return manifest

    def parse(self, manifest: Manifest) -> NodeDemand:
        return ciliumnode.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        """Record what the nodes list.

        What a watch told may be older than what was written since: that a CIDR is missing there
        releases nothing; `desired` asks the cluster.
        """
        demands = [parsed_object.parsed for parsed_object in parsed_objects]
        statuses = node_blocks.record(context.cluster.pk, demands, release=not context.from_watch)
        for parsed_object, status in zip(parsed_objects, statuses, strict=True):
            parsed_object.row.pending = status.open

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        node_blocks.forget(context.cluster.pk, rows)

    def desired(self, context: SyncContext) -> Iterator[Write]:
        """What is open is looked at again; with the managed resource, nodes get what they lack.

        Nothing is handed out before all nodes and pools are known: until then blocks may be in use
        that the register does not know (cilium/cilium#21482).
        """
        cluster_id = context.cluster.pk
        serving = context.connection.manages(ManagedResource.POD_CIDRS) and self._ready(context)
        open_ = _open(cluster_id, astray=not context.from_watch)
        if context.from_watch:
            open_ = _asked_again(context, open_)
        with context.holding():
            statuses = node_blocks.record(cluster_id, list(open_.values()), release=True)
            _keep_pending(list(open_), statuses)
        if not serving:
            return
        # Of its own: the locks of pools are taken before any row.
        with context.holding():
            if not recovery_mode.may_grant():
                return
            short = _hand_out(cluster_id, statuses)
        granted = node_blocks.unpublished(cluster_id, [status.name for status in statuses])
        shared = _shared(cluster_id, statuses)
        for status in statuses:
            name = status.name
            if granted[name] or name in shared:
                yield _allocated(context, status.demand, shared.get(name, ()))
            text = ciliumnode.error_text([*status.failures(), *short.get(name, ())])
            if text != status.demand.operator_error:
                yield _status(context, status.demand, text)

    def findings(self, context: SyncContext) -> Iterable[ReconcileFinding]:
        cluster_id = context.cluster.pk
        demands = list(_open(cluster_id, astray=False).values())
        serving = context.connection.manages(ManagedResource.POD_CIDRS)
        return node_findings.cluster_findings(cluster_id, demands, serving=serving)

    # --- the operator -----------------------------------------------------------------------------

    def _ready(self, context: SyncContext) -> bool:
        """Whether the register knows all nodes and pools, up to this moment.

        A full pass has listed the nodes. A watch goes on from the position of a complete list, and
        nothing was missed since (pools.clusters.reconcile.watch_positions).
        """
        pools = ObservedObject.objects.filter(cluster=context.cluster, kind=podippool.KIND)
        pools_complete = (
            watch_positions.read(context.connection.positions, podippool.KIND) is not None
            if context.from_watch
            else podippool.KIND in context.complete
        )
        return pools_complete or not pools.exists()


def _hand_out(cluster_id: int, statuses: Sequence[NodeStatus]) -> dict[str, list[str]]:
    """Blocks in the register for the nodes that lack some; by node, what could not be done."""
    asks = [ask for status in statuses for ask in _asks(status)]
    got = node_allocation.hand_out(
        cluster_id,
        [ask.want for ask in asks if ask.want.count],
        misfits=[
            (misfit.pool_cidr, misfit.cidr)
            for status in statuses
            for misfit in status.misfits
            if misfit.pool_cidr is not None
        ],
    )
    failures: dict[str, list[str]] = {}
    for ask in asks:
        want = ask.want
        why = "pool empty" if len(got.get(want, ())) < want.count else ask.why
        if why:
            failures.setdefault(want.node, []).append(
                f'failed to allocate ipv{want.family} address for node "{want.node}" '
                f'from pool "{want.pool}": {why}'
            )
    return failures


@dataclass(frozen=True)
class _Ask:
    """What a node gets at once of a pool, as far as there is any; `why` it is not all it wants."""

    want: Want
    why: str = ""


def _asks(status: NodeStatus) -> Iterator[_Ask]:
    room = MOST_HELD - len(status.held)
    for name in status.demand.requested:
        pool = status.pools.live(name)
        for family, missing in status.missing(name).items():
            want = Want(status.name, name, family, 0)
            if missing and pool is None:
                yield _Ask(want, f"cannot allocate from non-existing pool: {name}")
            elif missing and room <= 0:
                yield _Ask(want, f"the node has {MOST_HELD} blocks, which is the most")
            elif missing and pool is not None:
                count = -(-missing // pool.usable_in_block(family))
                why = f"more than {MOST_AT_ONCE} blocks at once" if count > MOST_AT_ONCE else ""
                yield _Ask(replace(want, count=min(count, MOST_AT_ONCE)), why)


def _open(cluster_id: int, *, astray: bool) -> dict[int, NodeDemand]:
    """By the id of their rows, the nodes with something open; of two of a name the later one.

    With `astray` also those that the register no longer agrees with, though they did not change:
    somebody may have released a block that a node uses.
    """
    rows = ObservedObject.objects.filter(
        cluster_id=cluster_id, kind=ciliumnode.KIND, problem_code="", missed_at=None
    )
    which = Q(pending=True)
    if astray:
        which |= Q(name__in=node_findings.astray(cluster_id))
    demands_by_name: dict[str, tuple[int, NodeDemand]] = {}
    for row in rows.filter(which).order_by("id"):
        with contextlib.suppress(errors.InvalidInput):
            demands_by_name[row.name] = (row.pk, ciliumnode.parse(row.manifest))
    return dict(demands_by_name.values())


def _asked_again(context: SyncContext, open_: dict[int, NodeDemand]) -> dict[int, NodeDemand]:
    """The same, but what nodes seem to have given back is asked of the cluster first.

    What a watch told may be older than what a pass wrote.
    """
    statuses = node_status.survey(PodPools(context.cluster.pk), list(open_.values()))
    fresh: dict[int, NodeDemand] = {}
    for (pk, demand), status in zip(open_.items(), statuses, strict=True):
        if not status.unlisted:
            fresh[pk] = demand
            continue
        # Gone, or not to be understood: the next pass will say.
        with contextlib.suppress(faults.NotFound, errors.InvalidInput):
            read = ciliumnode.parse(context.client.get(_resource(context), demand.name))
            if read.uid == demand.uid:
                fresh[pk] = read
    return fresh


def _keep_pending(rows: Sequence[int], statuses: Sequence[NodeStatus]) -> None:
    """Remember which of these are open; rows that are right already are not written."""
    for pending in (True, False):
        those = [pk for pk, status in zip(rows, statuses, strict=True) if status.open == pending]
        if those:
            ObservedObject.objects.filter(pk__in=those, pending=not pending).update(pending=pending)


def _shared(cluster_id: int, statuses: Sequence[NodeStatus]) -> dict[str, Grants]:
    """What nodes list that another node lists too, and held before: the operator takes it from them.

    A holder that does not list it, or is no node, takes nothing from a node that may be using it.
    """
    overlaps = [(status, overlap) for status in statuses for overlap in status.overlaps]
    holders = {overlap.holder[1] for _, overlap in overlaps if overlap.holder[0] == HOLDER}
    rows = ObservedObject.objects.filter(
        cluster_id=cluster_id, kind=ciliumnode.KIND, name__in=holders, missed_at=None
    )
    listed: set[tuple[str, addresses.Network]] = set()
    for row in rows:
        with contextlib.suppress(errors.InvalidInput):
            demand = ciliumnode.parse(row.manifest)
            listed |= {(row.name, cidr) for cidrs in demand.held().values() for cidr in cidrs}
    shared: dict[str, list[tuple[str, addresses.Network]]] = {}
    for status, overlap in overlaps:
        if overlap.holder[0] == HOLDER and (overlap.holder[1], overlap.cidr) in listed:
            shared.setdefault(status.name, []).append((overlap.pool, overlap.cidr))
    return dict(shared)


def _resource(context: SyncContext) -> resources.Resource:
    return context.served[CiliumNodes.kind]


def _allocated(context: SyncContext, demand: NodeDemand, shared: Grants) -> Write:
    """spec.ipam.pools.allocated with what was handed out; nothing else of the object is touched."""

    def make(current: Manifest | None) -> Manifest | None:
        fresh = _same(demand, current)
        if current is None or fresh is None:
            return None
        # A pass may be long: somebody may have released a block meanwhile.
        more = node_blocks.unpublished(context.cluster.pk, [demand.name])[demand.name]
        before = fresh.held()
        after = {
            pool: [cidr for cidr in cidrs if (pool, cidr) not in shared]
            for pool, cidrs in before.items()
        }
        for pool, cidr in more:
            if cidr not in after.setdefault(pool, []):
                after[pool].append(cidr)
        return None if after == before else ciliumnode.with_allocated(current, after)

    return Write(_resource(context), demand.name, make, how="replace")


def _status(context: SyncContext, demand: NodeDemand, text: str) -> Write:
    """status.ipam.operator-status.error, "" takes it away."""

    def make(current: Manifest | None) -> Manifest | None:
        if current is None or _same(demand, current) is None:
            return None
        changed = copy.deepcopy(current)
        part = changed
        for key in ("status", "ipam", "operator-status"):
            part[key] = part = part.get(key) or {}
        if text:
            part["error"] = text
        else:
            part.pop("error", None)
        return changed

    return Write(
        _resource(context),
        demand.name,
        make,
        how="replace",
        subresource="status",
        manager=STATUS_MANAGER,
    )


def _same(demand: NodeDemand, current: Manifest | None) -> NodeDemand | None:
    """The object as it is now, when it is the one that was looked at."""
    with contextlib.suppress(errors.InvalidInput):
        fresh = ciliumnode.parse(current)
        return fresh if fresh.uid == demand.uid else None
    return None
