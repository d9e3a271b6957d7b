"""Handler of CiliumNodes: records their blocks, and with the managed resource pod-cidrs serves them.

Pod CIDRs of nodes outside of multi-pool mode are observed CIDRs, and never written.

The register has a block before the cluster: it is allocated in one transaction, then written to
spec.ipam.pools.allocated until the node is observed to list it. A node that lacks addresses, lists CIDRs
of another holder or of nobody, or has unpublished blocks is `pending`; every sync processes it again.
Other nodes cost nothing.

Allocation and error messages are those of Cilium's operator (tests/core/cilium_operator.py). Intended differences: no block
is allocated in its cooldown, or if a CIDR in use overlaps it, even under another pool or size; an
unpublished block is published again, not released; the number of blocks at once is limited; and a CIDR is
not removed from a node because of a holder that does not use it.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from pools.cilium import node_allocation, node_blocks, node_findings, node_status
from pools.cilium.configuration import CILIUM_OPERATOR
from pools.cilium.node_allocation import BlockRequest
from pools.cilium.node_status import HOLDER, NodeStatus
from pools.cilium.pod_pools import PodPoolCIDR, PodPools
from pools.clusters import other_writers, recovery_mode
from pools.clusters.reconcile import ingest, watchers
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
from pools.core.kubernetes.resources import Manifest
from pools.models import ManagedResource, ObservedObject
from pools.observed import cidrs as observed_cidrs
from pools.platform.outbound import faults

# A node may request 2^63 addresses, and an object of a cluster has at most about 1.5 MB.
MAX_BLOCKS_PER_SYNC = 256  # blocks of one pool and family for one node in one sync
MAX_BLOCKS_PER_NODE = 10_000  # a node with this many gets no further blocks

Grants = Sequence[tuple[str, addresses.Network]]  # pool, CIDR


class CiliumNodes(Handler):
    """The handler of CiliumNodes; its state is in the register, so that any process can continue."""

    kind = ciliumnode.KIND
    resources: Sequence[resources.Resource] = (resources.CILIUM_NODE,)
    follows = (podippool.KIND, CILIUM_OPERATOR.lease.kind)

    def project(self, manifest: Manifest) -> Manifest:
        """Return the node without managedFields: they are half of its size, and whole objects are written."""
        metadata = manifest.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
        return manifest

    def parse(self, manifest: Manifest) -> NodeDemand:
        return ciliumnode.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        """Record the CIDRs that the nodes list.

        A watch event may be older than the last write, so that a missing CIDR in it releases nothing;
        `desired` reads the node from the cluster first.
        """
        demands = [parsed_object.parsed for parsed_object in parsed_objects]
        statuses = node_blocks.record(context.cluster.pk, demands, release=not context.from_watch)
        for parsed_object, status in zip(parsed_objects, statuses, strict=True):
            parsed_object.row.pending = status.needs_work
        _store_uses(context, [parsed_object.row for parsed_object in parsed_objects], statuses)

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        node_blocks.forget(context.cluster.pk, rows)
        observed_cidrs.forget(context.cluster, self.kind, rows)

    def desired(self, context: SyncContext) -> Iterator[Write]:
        """Process pending nodes; with the managed resource, allocate the blocks that they lack.

        No block is allocated before all nodes and pools are known: until then, blocks may be in use
        that the register does not have (cilium/cilium#21482).
        """
        cluster_id = context.cluster.pk
        serving = context.connection.manages(ManagedResource.POD_CIDRS) and self._ready(context)
        demands = _nodes_needing_work(context, include_out_of_sync=not context.from_watch)
        if context.from_watch:
            demands = _refresh_released(context, demands)
        statuses = _record(context, list(demands.items()))
        if not serving:
            return
        failures_by_node: dict[str, list[str]] = {}
        # Of all nodes: what one of a smaller batch must not get may be in use by one of another batch.
        misfits = [
            (pool_cidr, misfit.cidr)
            for status in statuses
            for misfit in status.misfits
            for pool_cidr in status.pools.touched(misfit.pool_cidr, misfit.cidr)
        ]
        # A transaction of its own: pools are locked before any row of a block.
        with context.transaction():
            if not recovery_mode.may_allocate():
                return
            for status, error in ingest.isolate_failures(
                statuses,
                lambda batch: failures_by_node.update(_allocate(cluster_id, batch, misfits)),
            ):
                ingest.record_failure(context, self.kind, status.name, error)
        granted = node_blocks.unpublished_cidrs(cluster_id, [status.name for status in statuses])
        shared = _shared_cidrs(context, statuses)
        for status in statuses:
            name = status.name
            with ingest.isolate_object(context, self.kind, name):
                if granted[name] or name in shared:
                    yield _allocated_write(context, status, shared.get(name, ()))
                text = ciliumnode.error_text([*status.failures(), *failures_by_node.get(name, ())])
                if text != status.demand.operator_error:
                    yield _status_write(context, status.demand, text)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        demands = list(_nodes_needing_work(context, include_out_of_sync=False).values())
        serving = context.connection.manages(ManagedResource.POD_CIDRS)
        yield from node_findings.cluster_findings(context, demands, serving=serving)
        yield from observed_cidrs.find_clashes(context, self.kind)
        yield from other_writers.findings(context, ManagedResource.POD_CIDRS)

    # --- the operator -----------------------------------------------------------------------------

    def _ready(self, context: SyncContext) -> bool:
        """Return True if the register has all current nodes and pools.

        A full sync has listed the nodes. A watch continues from the position of a complete list without
        a gap (pools.clusters.reconcile.watchers).
        """
        pools = ObservedObject.objects.filter(cluster=context.cluster, kind=podippool.KIND)
        return watchers.is_known(context, podippool.KIND) or not pools.exists()


def _record(context: SyncContext, demands: Sequence[tuple[int, NodeDemand]]) -> list[NodeStatus]:
    """Record the blocks of nodes, given by the ids of their rows; return the status of those that did not fail."""
    statuses: list[NodeStatus] = []

    def record(batch: Sequence[tuple[int, NodeDemand]]) -> None:
        recorded = node_blocks.record(
            context.cluster.pk, [demand for _, demand in batch], release=True
        )
        rows = [pk for pk, _ in batch]
        _store_pending(rows, recorded)
        objects = ObservedObject.objects.defer("manifest").in_bulk(rows)
        _store_uses(context, [objects[pk] for pk in rows], recorded)
        statuses.extend(recorded)

    with context.transaction():
        for (_, demand), error in ingest.isolate_failures(demands, record):
            ingest.record_failure(context, CiliumNodes.kind, demand.name, error)
    return statuses


def _allocate(
    cluster_id: int,
    statuses: Sequence[NodeStatus],
    misfits: Sequence[tuple[PodPoolCIDR, addresses.Network]],
) -> dict[str, list[str]]:
    """Allocate blocks to nodes that lack addresses; return the failures by node."""
    node_requests = [node_request for status in statuses for node_request in _node_requests(status)]
    allocations = node_allocation.allocate(
        cluster_id,
        [node_request.request for node_request in node_requests if node_request.request.count],
        misfits=misfits,
    )
    failures: dict[str, list[str]] = {}
    for node_request in node_requests:
        request = node_request.request
        reason = (
            "pool empty"
            if len(allocations.get(request, ())) < request.count
            else node_request.reason
        )
        if reason:
            failures.setdefault(request.node, []).append(
                f'failed to allocate ipv{request.family} address for node "{request.node}" '
                f'from pool "{request.pool}": {reason}'
            )
    return failures


@dataclass(frozen=True)
class _NodeRequest:
    """A request for blocks of a node; `reason` says why it is less than the node needs."""

    request: BlockRequest
    reason: str = ""


def _node_requests(status: NodeStatus) -> Iterator[_NodeRequest]:
    room = MAX_BLOCKS_PER_NODE - len(status.held)
    for name in status.demand.requested:
        pool = status.pools.get_live(name)
        for family, missing in status.missing(name).items():
            request = BlockRequest(status.name, name, family, 0)
            if missing and pool is None:
                yield _NodeRequest(request, f"cannot allocate from non-existing pool: {name}")
            elif missing and room <= 0:
                yield _NodeRequest(
                    request, f"the node has {MAX_BLOCKS_PER_NODE} blocks, which is the most"
                )
            elif missing and pool is not None:
                count = -(-missing // pool.usable_in_block(family, status.demand))
                reason = (
                    f"more than {MAX_BLOCKS_PER_SYNC} blocks at once"
                    if count > MAX_BLOCKS_PER_SYNC
                    else ""
                )
                yield _NodeRequest(replace(request, count=min(count, MAX_BLOCKS_PER_SYNC)), reason)


def _nodes_needing_work(
    context: SyncContext, *, include_out_of_sync: bool
) -> dict[int, NodeDemand]:
    """Return the nodes that need work, by the id of their rows; of two with one name the later one.

    With `include_out_of_sync`, unchanged nodes whose blocks in the register differ are included:
    somebody may have released a block that a node uses.
    """
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=ciliumnode.KIND, problem_code="", missed_at=None
    )
    needs_work = Q(pending=True)
    if include_out_of_sync:
        needs_work |= Q(name__in=node_findings.nodes_out_of_sync(context.cluster.pk))
    demands_by_name: dict[str, tuple[int, NodeDemand]] = {}
    for row in rows.filter(needs_work).order_by("id"):
        with (
            ingest.isolate_object(context, ciliumnode.KIND, row.name),
            contextlib.suppress(errors.InvalidInput),
        ):
            demands_by_name[row.name] = (row.pk, ciliumnode.parse(row.manifest))
    return dict(demands_by_name.values())


def _refresh_released(
    context: SyncContext, demands: dict[int, NodeDemand]
) -> dict[int, NodeDemand]:
    """Read nodes that seem to have released blocks from the cluster again; drop deleted ones.

    A watch event may be older than the last write of a sync.
    """
    statuses = node_status.node_statuses(PodPools(context.cluster.pk), list(demands.values()))
    fresh: dict[int, NodeDemand] = {}
    for (pk, demand), status in zip(demands.items(), statuses, strict=True):
        if not status.unlisted:
            fresh[pk] = demand
            continue
        # A deleted or invalid node is left to the next full sync.
        with contextlib.suppress(faults.NotFound, errors.InvalidInput):
            fresh_demand = ciliumnode.parse(context.client.get(_resource(context), demand.name))
            if fresh_demand.uid == demand.uid:
                fresh[pk] = fresh_demand
    return fresh


def _store_pending(rows: Sequence[int], statuses: Sequence[NodeStatus]) -> None:
    """Store which of the nodes need work; unchanged rows are not written."""
    for pending in (True, False):
        row_ids = [
            pk for pk, status in zip(rows, statuses, strict=True) if status.needs_work == pending
        ]
        if row_ids:
            ObservedObject.objects.filter(pk__in=row_ids, pending=not pending).update(
                pending=pending
            )


def _store_uses(
    context: SyncContext, rows: Sequence[ObservedObject], statuses: Sequence[NodeStatus]
) -> None:
    """Store what the nodes use besides their blocks in the register, so that it is found by address."""
    uses = [status.observed_uses() for status in statuses]
    observed_cidrs.store(context.cluster, CiliumNodes.kind, list(zip(rows, uses, strict=True)))


def _shared_cidrs(context: SyncContext, statuses: Sequence[NodeStatus]) -> dict[str, Grants]:
    """Return the CIDRs, by node, that another node holds and lists too: the operator removes them.

    A CIDR whose holder does not list it, or is no node, stays with the node, which may use it.
    """
    overlaps = [(status, overlap) for status in statuses for overlap in status.overlaps]
    holders = {overlap.holder[1] for _, overlap in overlaps if overlap.holder[0] == HOLDER}
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=ciliumnode.KIND, name__in=holders, missed_at=None
    )
    listed: set[tuple[str, addresses.Network]] = set()
    for row in rows:
        with (
            ingest.isolate_object(context, ciliumnode.KIND, row.name),
            contextlib.suppress(errors.InvalidInput),
        ):
            demand = ciliumnode.parse(row.manifest)
            listed |= {(row.name, cidr) for cidrs in demand.held_cidrs().values() for cidr in cidrs}
    shared: dict[str, list[tuple[str, addresses.Network]]] = {}
    for status, overlap in overlaps:
        if overlap.holder[0] == HOLDER and (overlap.holder[1], overlap.cidr) in listed:
            shared.setdefault(status.name, []).append((overlap.pool, overlap.cidr))
    return dict(shared)


def _resource(context: SyncContext) -> resources.Resource:
    return context.served[CiliumNodes.kind]


def _allocated_write(context: SyncContext, status: NodeStatus, shared: Grants) -> Write:
    """Return the write of spec.ipam.pools.allocated; no other field is changed."""
    demand = status.demand
    allowed_edges = {name: pool.allow for name, pool in status.pools.by_name.items()}

    def make(current: Manifest | None) -> Manifest | None:
        fresh = _parse_if_same(demand, current)
        if current is None or fresh is None:
            return None
        # A sync may take long: somebody may have released a block meanwhile.
        unpublished = node_blocks.unpublished_cidrs(context.cluster.pk, [demand.name])[demand.name]
        before = fresh.held_cidrs()
        after = {
            pool: [cidr for cidr in cidrs if (pool, cidr) not in shared]
            for pool, cidrs in before.items()
        }
        for pool, cidr in unpublished:
            if cidr not in after.setdefault(pool, []):
                after[pool].append(cidr)
        if after == before:
            return None
        return ciliumnode.set_allocated(current, after, allowed_edges)

    return Write(_resource(context), demand.name, make, how="replace")


def _status_write(context: SyncContext, demand: NodeDemand, text: str) -> Write:
    """Return the write of status.ipam.operator-status.error; "" removes it."""

    def make(current: Manifest | None) -> Manifest | None:
        if current is None or _parse_if_same(demand, current) is None:
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


def _parse_if_same(demand: NodeDemand, current: Manifest | None) -> NodeDemand | None:
    """Return the current object, if it is still the same object (uid) and valid."""
    with contextlib.suppress(errors.InvalidInput):
        fresh = ciliumnode.parse(current)
        return fresh if fresh.uid == demand.uid else None
    return None
