"""The handler of IPPools (deploy/crds): reads entries from their spec and writes them to it.

As with CiliumPodIPPools, the object decides if the register and the object differ, unless the cluster
is managed with the managed resource `ippool-status` and the IPPool was created or changed here. Fields
of other field managers are never forced, and objects are never deleted. The status (conditions and
associated NADs) is written for every IPPool of a cluster with the managed resource.

A network has one IPPool: a second object for it is ignored, with the finding `network_has_ippool` and a status
that says so. An
IPPool whose object is deleted stays with its entries, so that their addresses are not allocated to
others, and has the finding `ippool_gone` until it is deleted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import transaction

from claims.core import ippool
from claims.core.resources import CLUSTER_UDN, IPPOOL, NAD, UDN
from claims.entries import ippool_findings, ippool_sync, ippool_writes
from claims.models import IPPool
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import ObservedObject
from pools.models.connections import ManagedResource
from pools.models.fields import Now

KIND = ippool.KIND


class IPPoolHandler(Handler):
    """Handler of IPPools; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (IPPOOL,)
    prompt = True
    # The status lists the NADs of networks; the subnets of networks decide which entries are valid.
    follows = (CLUSTER_UDN.kind, UDN.kind, NAD.kind)

    def parse(self, manifest: Manifest) -> ippool.ParsedIPPool:
        return ippool.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        for observed in parsed_objects:
            _ingest(context, observed.row, observed.parsed)

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        ippools = IPPool.objects.filter(cluster=context.cluster, uid__in=[row.uid for row in rows])
        if context.connection.manages(ManagedResource.IPPOOL_STATUS):
            # Objects that the register decides are created again.
            ippools.filter(follows_cluster=False).update(uid="", agreed="")
        ippools.filter(follows_cluster=True).update(uid="", agreed="", gone_at=Now())

    def desired(self, context: SyncContext) -> Iterator[Write]:
        notes: list[ReconcileFinding] = []
        context.notes[KIND] = notes
        catch_up(context)
        if context.connection.manages(ManagedResource.IPPOOL_STATUS):
            yield from ippool_writes.writes(context, notes)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from context.notes.get(KIND, ())
        yield from ippool_findings.cluster_findings(context)


def _ingest(context: SyncContext, row: ObservedObject, ippool_spec: ippool.ParsedIPPool) -> None:
    existing_ippool = IPPool.objects.filter(cluster=context.cluster, name=ippool_spec.name).first()
    if existing_ippool is None and _was_deleted_here(context, row):
        return  # deleted here, or lost by a restore
    try:
        with transaction.atomic():
            ippool_sync.upsert_ippool(
                context.cluster,
                ippool_spec,
                uid=row.uid,
                register_decides=register_decides(context, existing_ippool),
                author=context.author,
            )
    except errors.AlreadyExists as error:
        row.problem_code, row.problem = ippool_writes.SECOND, error.message


def register_decides(context: SyncContext, existing_ippool: IPPool | None) -> bool:
    """Return True if the register decides, not the object, where this IPPool and its object differ."""
    is_ours = existing_ippool is not None and not existing_ippool.follows_cluster
    return is_ours and context.connection.manages(ManagedResource.IPPOOL_STATUS)


def _was_deleted_here(context: SyncContext, row: ObservedObject) -> bool:
    return context.connection.manages(
        ManagedResource.IPPOOL_STATUS
    ) and ippool_writes.has_register_fields(row.manifest)


def catch_up(context: SyncContext) -> None:
    """Ingest objects again whose IPPool or network changed here without a watch event."""
    for pair in ippool_writes.list_outdated(context):
        row = pair.row
        if row is None or row.problem_code or register_decides(context, pair.ippool):
            continue
        with ingest.isolate_object(context, KIND, pair.ippool.name):
            ippool_spec = ippool.parse(ippool_writes.manifest_of(row))
            with context.transaction():
                ippool_sync.upsert_ippool(
                    context.cluster,
                    ippool_spec,
                    uid=row.uid,
                    register_decides=False,
                    author=context.author,
                )
                if not context.connection.manages(ManagedResource.IPPOOL_STATUS):
                    ippool_writes.mark_in_sync(pair)
