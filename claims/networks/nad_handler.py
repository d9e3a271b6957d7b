"""The handler of NetworkAttachmentDefinitions, through which namespaces use networks.

Of NADs of plugins other than OVN-Kubernetes only the addresses of their IPAM are recorded. A network with NADs and without a
(Cluster)UserDefinedNetwork is defined by its first NAD.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.db.models import QuerySet

from claims.address_index import segments
from claims.core import resources
from claims.core.networks import nads, udn
from claims.core.networks.nads import Attachment
from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.networks import findings as network_findings
from claims.networks import networks as network_names
from claims.networks import networks as services
from claims.networks import pools as network_pools
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
from pools.core.observed import secondary_networks
from pools.core.observed.uses import ObservedUses
from pools.models import ObservedObject
from pools.observed import cidrs
from pools.observed import cidrs as observed_findings


class ParsedNAD(NamedTuple):
    """What a NAD says of a network of OVN-Kubernetes, and of addresses that another IPAM hands out."""

    attachment: Attachment
    uses: ObservedUses


class NetworkAttachmentDefinitions(Handler):
    """Handler of NADs; see the module."""

    kind = resources.NAD.kind
    resources: Sequence[Resource] = (resources.NAD,)

    problems_are_findings = True

    def parse(self, manifest: Manifest) -> ParsedNAD:
        return ParsedNAD(nads.parse(manifest), secondary_networks.parse(manifest))

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        """Upsert NADs in bulk: a network for all namespaces of a cluster has a NAD in each."""
        uids = [parsed_object.row.uid for parsed_object in parsed_objects]
        former_nads = {nad.uid: nad for nad in _cluster_nads(context).filter(uid__in=uids)}
        network_ids = {nad.network_id for nad in former_nads.values()}
        desired_rows = [
            _row(parsed_object, network)
            for parsed_object, network in _with_networks(context, parsed_objects)
        ]
        changed_namespaces = {
            nad.namespace
            for nad in desired_rows
            if nad.uid not in former_nads or _key(former_nads[nad.uid]) != _key(nad)
        }
        for nad in desired_rows:
            if nad.uid in former_nads and _key(former_nads[nad.uid]) == _key(nad):
                del former_nads[nad.uid]
        NAD.objects.filter(pk__in=[nad.pk for nad in former_nads.values()]).delete()
        NAD.objects.bulk_create(
            desired_rows,
            update_conflicts=True,
            unique_fields=["network", "namespace", "name"],
            update_fields=["uid", "role", "allow_persistent_ips", "subnets", "config"],
        )
        _define(context, network_ids | {nad.network_id for nad in desired_rows})
        _ingest_vms_again(context, changed_namespaces)
        _sync_segments(context, network_ids | {nad.network_id for nad in desired_rows})
        cidrs.store(
            context.cluster,
            self.kind,
            [(observed.row, observed.parsed.uses) for observed in parsed_objects],
        )

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        nad_rows = _cluster_nads(context).filter(uid__in=[row.uid for row in rows])
        network_ids = set(nad_rows.values_list("network_id", flat=True))
        _ingest_vms_again(context, set(nad_rows.values_list("namespace", flat=True)))
        nad_rows.delete()
        _define(context, network_ids)
        _sync_segments(context, network_ids)
        cidrs.forget(context.cluster, self.kind, rows)

    def desired(self, context: SyncContext) -> Iterable[Write]:
        """Share what was allocated on a segment without an entry or a claim; NADs are not written."""
        if not context.from_watch:
            localnets = Network.objects.filter(cluster=context.cluster, topology=udn.LOCALNET)
            for network in segments.with_peers(list(localnets)):
                with (
                    ingest.isolate_object(context, self.kind, network.name, kind="network"),
                    context.transaction(),
                ):
                    segments.sync_blocks(network)
        return ()

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from network_findings.nad_findings(context)
        yield from network_findings.shared_segments(context)
        yield from network_findings.contradictions(context, udn.NAD_KIND)
        yield from observed_findings.find_problems(context, self.kind)
        yield from observed_findings.find_clashes(context, self.kind)


def _cluster_nads(context: SyncContext) -> QuerySet[NAD]:
    return NAD.objects.filter(network__cluster=context.cluster)


def _ingest_vms_again(context: SyncContext, namespaces: set[str]) -> None:
    """Mark the VMs of namespaces whose NADs changed: their templates may name other networks now."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=resources.VM.kind)
    rows.filter(namespace__in=namespaces, problem_code="").update(pending=True)


def _sync_segments(context: SyncContext, network_ids: set[int]) -> None:
    """Localnet networks may share a segment, or no longer, since their NADs changed."""
    if Network.objects.filter(pk__in=network_ids, topology=udn.LOCALNET).exists():
        network_pools.sync_segments(context.cluster, author=context.author)


def _key(nad: NAD) -> tuple[int, str, str]:
    return nad.network_id, nad.namespace, nad.name


def _with_networks(
    context: SyncContext, parsed_objects: Sequence[ParsedObject]
) -> Iterator[tuple[ParsedObject, Network]]:
    """Yield the NADs of OVN-Kubernetes, each with its network's row."""
    ovn_nads = [
        parsed_object
        for parsed_object in parsed_objects
        if parsed_object.parsed.attachment.network is not None
    ]
    names = sorted({parsed_object.parsed.attachment.network.name for parsed_object in ovn_nads})
    networks = {name: network_names.get_or_create(context.cluster.pk, name) for name in names}
    for parsed_object in ovn_nads:
        yield parsed_object, networks[parsed_object.parsed.attachment.network.name]


def _row(parsed_object: ParsedObject, network: Network) -> NAD:
    attachment: Attachment = parsed_object.parsed.attachment
    return NAD(
        network=network,
        namespace=attachment.namespace,
        name=attachment.name,
        uid=parsed_object.row.uid,
        role=attachment.network.role[:16] if attachment.network else "",
        allow_persistent_ips=attachment.allow_persistent_ips,
        subnets=list(attachment.network.subnets) if attachment.network else [],
        config=attachment.config,
    )


def _define(context: SyncContext, network_ids: set[int]) -> None:
    rows = Network.objects.filter(pk__in=network_ids).exclude(kind__in=services.UDN_KINDS)
    for network in rows.select_related("cluster", "pool").prefetch_related("nads"):
        services.define_by_nads(network, list(_nad_networks(network)), author=context.author)


def _nad_networks(network: Network) -> Iterator[UDN]:
    for nad in network.nads.all():
        try:
            yield nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
        except errors.InvalidInput:
            continue  # the stored config is no longer valid
