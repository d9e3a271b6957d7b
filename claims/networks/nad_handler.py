"""NetworkAttachmentDefinitions: through which namespaces networks are used.

Those of other plugins than OVN-Kubernetes are known to be foreign, and left alone. A network that has
NADs and no (Cluster)UserDefinedNetwork was made by hand: its first NAD says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import QuerySet

from claims.core import resources
from claims.core.networks import nads
from claims.core.networks.nads import Attachment
from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.networks import findings as network_findings
from claims.networks import names as network_names
from claims.networks import networks as services
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


class NetworkAttachmentDefinitions(Handler):
    """The handler; see the module."""

    kind = resources.NAD.kind
    resources: Sequence[Resource] = (resources.NAD,)

    def parse(self, manifest: Manifest) -> Attachment:
        return nads.parse(manifest)

    def ingest(self, context: SyncContext, seen: Sequence[ParsedObject]) -> None:
        """Many at once: a network for all namespaces of a cluster has a NAD in each."""
        uids = [one.row.uid for one in seen]
        gone = {nad.uid: nad for nad in _of(context).filter(uid__in=uids)}
        touched = {nad.network_id for nad in gone.values()}
        wanted = [_row(one, network) for one, network in _with_networks(context, seen)]
        for nad in wanted:
            if nad.uid in gone and _place(gone[nad.uid]) == _place(nad):
                del gone[nad.uid]
        NAD.objects.filter(pk__in=[nad.pk for nad in gone.values()]).delete()
        NAD.objects.bulk_create(
            wanted,
            update_conflicts=True,
            unique_fields=["network", "namespace", "name"],
            update_fields=["uid", "role", "allow_persistent_ips", "subnets", "config"],
        )
        _define(context, touched | {nad.network_id for nad in wanted})

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        found = _of(context).filter(uid__in=[row.uid for row in rows])
        touched = set(found.values_list("network_id", flat=True))
        found.delete()
        _define(context, touched)

    def desired(self, context: SyncContext) -> Iterable[Write]:  # noqa: ARG002  # NADs are not written
        return ()

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from network_findings.of_nads(context)


def _of(context: SyncContext) -> QuerySet[NAD]:
    return NAD.objects.filter(network__cluster=context.cluster)


def _place(nad: NAD) -> tuple[int, str, str]:
    return nad.network_id, nad.namespace, nad.name


def _with_networks(
    context: SyncContext, seen: Sequence[ParsedObject]
) -> Iterator[tuple[ParsedObject, Network]]:
    """Those that are read by OVN-Kubernetes, each with its network's row."""
    ours = [one for one in seen if one.parsed.network is not None]
    names = sorted({one.parsed.network.name for one in ours})
    networks = {name: network_names.network(context.cluster.pk, name) for name in names}
    for one in ours:
        yield one, networks[one.parsed.network.name]


def _row(one: ParsedObject, network: Network) -> NAD:
    said: Attachment = one.parsed
    return NAD(
        network=network,
        namespace=said.namespace,
        name=said.name,
        uid=one.row.uid,
        role=said.network.role[:16] if said.network else "",
        allow_persistent_ips=said.allow_persistent_ips,
        subnets=list(said.network.subnets) if said.network else [],
        config=said.config,
    )


def _define(context: SyncContext, network_ids: set[int]) -> None:
    rows = Network.objects.filter(pk__in=network_ids).exclude(kind__in=services.MADE)
    for network in rows.select_related("cluster", "pool").prefetch_related("nads"):
        services.define_by_nads(network, list(_said(network)), author=context.author)


def _said(network: Network) -> Iterator[UDN]:
    for nad in network.nads.all():
        try:
            yield nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
        except errors.InvalidInput:
            continue  # it could be read once
