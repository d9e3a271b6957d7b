"""IPPools of a cluster (deploy/crds): entries read from and written to their spec.

Who is right where the register and an object differ is as with CiliumPodIPPools: the object, unless
the cluster is managed with the managed resource `ippool-status` and somebody made or changed the IPPool here.
Nothing of another field manager is forced, and no object is ever deleted. The status (conditions and
associated NADs) is written for every IPPool of a cluster with the managed resource.

A network has one IPPool: a second object for it is left out, with the problem `network_has_ippool`.
An IPPool whose object is deleted stays with its entries, so that nobody else gets their addresses,
and is shown (`ippool_gone`) until somebody deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import transaction

from claims.core import ippool
from claims.core.resources import CLUSTER_UDN, IPPOOL, NAD, UDN
from claims.entries import ippool_findings, ippool_sync, ippool_writes
from claims.models import IPPool
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import (
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import ObservedObject
from pools.models.connections import ManagedResource
from pools.models.fields import Now

KIND = ippool.KIND


class IPPoolHandler(Handler):
    """The handler; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (IPPOOL,)
    prompt = True
    # Their NADs are told in the status, their subnets say which entries can be used.
    follows = (CLUSTER_UDN.kind, UDN.kind, NAD.kind)

    def parse(self, manifest: Manifest) -> ippool.ParsedIPPool:
        return ippool.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        for observed in parsed_objects:
            _ingest(context, observed.row, observed.parsed)

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        ippools = IPPool.objects.filter(cluster=context.cluster, uid__in=[row.uid for row in rows])
        if context.connection.manages(ManagedResource.IPPOOL_STATUS):
            # What the register decides is made anew.
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
    if existing_ippool is None and _forgotten(context, row):
        return  # it was deleted here, or the register forgot it
    try:
        with transaction.atomic():
            ippool_sync.take_in(
                context.cluster,
                ippool_spec,
                uid=row.uid,
                decides=decides(context, existing_ippool),
                author=context.author,
            )
    except errors.AlreadyExists as error:
        row.problem_code, row.problem = "network_has_ippool", error.message


def decides(context: SyncContext, existing_ippool: IPPool | None) -> bool:
    """Whether the register is right where this IPPool and its object differ."""
    is_ours = existing_ippool is not None and not existing_ippool.follows_cluster
    return is_ours and context.connection.manages(ManagedResource.IPPOOL_STATUS)


def _forgotten(context: SyncContext, row: ObservedObject) -> bool:
    return context.connection.manages(ManagedResource.IPPOOL_STATUS) and ippool_writes.ours(
        row.manifest
    )


def catch_up(context: SyncContext) -> None:
    """What the cluster did not tell: the register, or the network, is another than last time."""
    for pair in ippool_writes.different(context):
        row = pair.row
        if row is None or row.problem_code or decides(context, pair.ippool):
            continue
        ippool_spec = ippool.parse(ippool_writes.manifest_of(row))
        with context.holding():
            ippool_sync.take_in(
                context.cluster, ippool_spec, uid=row.uid, decides=False, author=context.author
            )
            if not context.connection.manages(ManagedResource.IPPOOL_STATUS):
                ippool_writes.agree(pair)
