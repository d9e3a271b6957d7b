"""The handlers of what defines and uses networks: UDNs, NetworkAttachmentDefinitions, RouteAdvertisements.

A (Cluster)UserDefinedNetwork decides if the register and the object differ, unless the network was created here to be
applied (`Network.applied`) to a managed cluster. Such a network is created in the cluster, and its
namespace selector is updated. All other fields are immutable in the cluster: an object that differs in
them is a finding and is not written. Objects are never deleted.

Namespaces use networks through NADs. Of NADs of plugins other than OVN-Kubernetes only the addresses of their IPAM are
recorded. A network with NADs and without a (Cluster)UserDefinedNetwork is defined by its first NAD.
"""

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db.models import Q, QuerySet

from claims.address_index import block_sync
from claims.core import resources
from claims.core.networks import nads, udn
from claims.core.networks.nads import Attachment
from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.networks import findings as network_findings, networks as services, pools
from pools.cilium import pool_sync
from pools.clusters.reconcile import handler, ingest, watchers
from pools.core import errors
from pools.core.kubernetes import differences
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest, Resource
from pools.core.observed import secondary_networks
from pools.core.observed.uses import ObservedUses
from pools.models import Connection, Mode, ObservedObject
from pools.observed import cidrs

STRUCTURE = Structure(
    lists={("metadata", "finalizers"): ()}, atomic=frozenset({("spec", "namespaceSelector")})
)


class UserDefinedNetworks(handler.Handler):
    """Handler of one of the two kinds; see the module."""

    def __init__(self, resource: Resource) -> None:
        self.kind = resource.kind
        self.resources: Sequence[Resource] = (resource,)
        self._row_kind = udn.CUDN if resource == resources.CLUSTER_UDN else udn.UDN_KIND

    def parse(self, manifest: Manifest) -> UDN:
        return udn.parse(manifest)

    def ingest(
        self, context: handler.SyncContext, parsed_objects: Sequence[handler.ParsedObject]
    ) -> None:
        _lock_pools(context, Q(name__in=[observed.parsed.name for observed in parsed_objects]))
        for parsed_object in parsed_objects:
            services.upsert_network(
                context.cluster,
                parsed_object.parsed,
                parsed_object.row.uid,
                author=context.author,
                is_managed=_managed(context),
            )

    def forget(self, context: handler.SyncContext, rows: Sequence[ObservedObject]) -> None:
        """Forget networks by uid, because a later object with the same name is another network."""
        ours = Q(kind=self._row_kind, uid__in=[row.uid for row in rows])
        _lock_pools(context, ours)
        networks = Network.objects.filter(ours, cluster=context.cluster)
        for network in networks.select_related("cluster", "pool"):
            if services.register_decides(network, is_managed=_managed(context)):
                Network.objects.filter(pk=network.pk).update(uid="", conditions=[])
            elif network.gone_at is None:
                services.mark_gone(network, author=context.author)

    def desired(self, context: handler.SyncContext) -> Iterator[handler.Write]:
        if self._row_kind != udn.CUDN:
            return
        _sync_pools(context)
        if _managed(context) and self.kind in context.served:
            yield from _writes(context)

    def findings(self, context: handler.SyncContext) -> Iterator[handler.ReconcileFinding]:
        yield from context.notes.get(self.kind, ())
        yield from network_findings.network_findings(context, self._row_kind)
        if self._row_kind == udn.CUDN:
            yield from network_findings.orphaned_subnets(context)


def _lock_pools(context: handler.SyncContext, networks: Q) -> None:
    """Take the pools' locks of what an ingest may change: of these networks, and of those that may share a segment."""
    rows = Network.objects.filter(networks | Q(topology=udn.LOCALNET), cluster=context.cluster)
    block_sync.lock_pools(rows.values_list("pk", flat=True))


def _managed(context: handler.SyncContext) -> bool:
    return context.connection.mode == Mode.MANAGED


def _sync_pools(context: handler.SyncContext) -> None:
    """Remove unused orphans, and restore pools that were changed; no object triggers either."""
    if orphaned_cidrs := pools.orphaned_cidrs(context.cluster):
        with context.transaction():
            pool_sync.remove_unused_orphans(orphaned_cidrs, author=context.author)
    if context.from_watch:
        return
    for network in pools.diverged_networks(context.cluster):
        # A network that is refused again has a problem that gives the reason.
        with (
            ingest.isolate_object(
                context, resources.CLUSTER_UDN.kind, network.name, kind="network"
            ),
            contextlib.suppress(errors.Conflict, errors.InvalidInput),
            context.transaction(),
        ):
            pools.sync_pool(network, author=context.author)


def _writes(context: handler.SyncContext) -> Iterator[handler.Write]:
    kind = resources.CLUSTER_UDN.kind
    notes: list[handler.ReconcileFinding] = []
    context.notes[kind] = notes
    rows = Network.objects.filter(
        cluster=context.cluster, kind=udn.CUDN, applied=True, gone_at=None
    ).order_by("name")
    objects = {
        row.name: row.manifest
        for row in ObservedObject.objects.filter(
            cluster=context.cluster, kind=kind, name__in=rows.values("object_name")
        )
    }
    for network in rows:
        with ingest.isolate_object(context, kind, network.object_name):
            desired_network = services.as_udn(network)
            current_manifest = objects.get(network.object_name)
            differing = (
                _immutable_differences(desired_network, current_manifest)
                if current_manifest
                else ()
            )
            if differing:
                notes.append(network_findings.network_differs(network, differing))
            make = functools.partial(_desired_manifest, manifest=udn.render(desired_network))
            yield handler.Write(
                context.served[kind],
                network.object_name,
                make,
                structure=STRUCTURE,
                send=not differing,
            )


def _desired_manifest(current: Manifest | None, manifest: Manifest) -> Manifest | None:
    if current is None:
        return manifest
    field_differences = differences.find_differences(
        manifest, current, structure=STRUCTURE, manager=handler.MANAGER
    )
    return manifest if field_differences else None


def _immutable_differences(desired_network: UDN, manifest: Manifest) -> tuple[str, ...]:
    """Return the immutable fields in which the cluster's object differs from the desired network."""
    try:
        current_network = replace(
            udn.parse(manifest), namespace_selector=desired_network.namespace_selector
        )
    except errors.InvalidInput:
        return ("spec",)
    names = (
        name
        for name in services.OBJECT_FIELDS
        if getattr(current_network, name) != getattr(desired_network, name)
    )
    return tuple(names)


class ParsedNAD(NamedTuple):
    """What a NAD says of a network of OVN-Kubernetes, and of addresses that another IPAM hands out."""

    attachment: Attachment
    uses: ObservedUses


class NetworkAttachmentDefinitions(handler.Handler):
    """Handler of NADs; see the module."""

    kind = resources.NAD.kind
    resources: Sequence[Resource] = (resources.NAD,)

    problems_are_findings = True

    def parse(self, manifest: Manifest) -> ParsedNAD:
        return ParsedNAD(nads.parse(manifest), secondary_networks.parse(manifest))

    def ingest(
        self, context: handler.SyncContext, parsed_objects: Sequence[handler.ParsedObject]
    ) -> None:
        """Upsert NADs in bulk: a network for all namespaces of a cluster has a NAD in each."""
        uids = [parsed_object.row.uid for parsed_object in parsed_objects]
        attachments = [parsed_object.parsed.attachment.network for parsed_object in parsed_objects]
        names = [network.name for network in attachments if network is not None]
        _lock_pools(context, Q(name__in=names) | Q(nads__uid__in=uids))
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

    def forget(self, context: handler.SyncContext, rows: Sequence[ObservedObject]) -> None:
        uids = [row.uid for row in rows]
        _lock_pools(context, Q(nads__uid__in=uids))
        nad_rows = _cluster_nads(context).filter(uid__in=uids)
        network_ids = set(nad_rows.values_list("network_id", flat=True))
        _ingest_vms_again(context, set(nad_rows.values_list("namespace", flat=True)))
        nad_rows.delete()
        _define(context, network_ids)
        _sync_segments(context, network_ids)
        cidrs.forget(context.cluster, self.kind, rows)

    def desired(self, context: handler.SyncContext) -> Iterable[handler.Write]:
        """Share what was allocated on a segment without an entry or a claim; NADs are not written."""
        if not context.from_watch:
            localnets = Network.objects.filter(cluster=context.cluster, topology=udn.LOCALNET)
            for network in block_sync.with_peers(list(localnets)):
                with (
                    ingest.isolate_object(context, self.kind, network.name, kind="network"),
                    context.transaction(),
                ):
                    block_sync.sync_segment(network)
        return ()

    def findings(self, context: handler.SyncContext) -> Iterator[handler.ReconcileFinding]:
        yield from network_findings.nad_findings(context)
        yield from network_findings.shared_segments(context)
        yield from network_findings.network_findings(context, udn.NAD_KIND)
        yield from cidrs.find_problems(context, self.kind)
        yield from cidrs.find_clashes(context, self.kind)


def _cluster_nads(context: handler.SyncContext) -> QuerySet[NAD]:
    return NAD.objects.filter(network__cluster=context.cluster)


def _ingest_vms_again(context: handler.SyncContext, namespaces: set[str]) -> None:
    """Mark the VMs of namespaces whose NADs changed: their templates may name other networks now."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=resources.VM.kind)
    rows.filter(namespace__in=namespaces, problem_code="").update(pending=True)


def _sync_segments(context: handler.SyncContext, network_ids: set[int]) -> None:
    """Localnet networks may share a segment, or no longer, since their NADs changed."""
    if Network.objects.filter(pk__in=network_ids, topology=udn.LOCALNET).exists():
        pools.sync_segments(context.cluster, author=context.author)


def _key(nad: NAD) -> tuple[int, str, str]:
    return nad.network_id, nad.namespace, nad.name


def _with_networks(
    context: handler.SyncContext, parsed_objects: Sequence[handler.ParsedObject]
) -> Iterator[tuple[handler.ParsedObject, Network]]:
    """Yield the NADs of OVN-Kubernetes, each with its network's row."""
    ovn_nads = [
        parsed_object
        for parsed_object in parsed_objects
        if parsed_object.parsed.attachment.network is not None
    ]
    names = sorted({parsed_object.parsed.attachment.network.name for parsed_object in ovn_nads})
    networks = {name: services.get_or_create(context.cluster.pk, name) for name in names}
    for parsed_object in ovn_nads:
        yield parsed_object, networks[parsed_object.parsed.attachment.network.name]


def _row(parsed_object: handler.ParsedObject, network: Network) -> NAD:
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


def _define(context: handler.SyncContext, network_ids: set[int]) -> None:
    rows = Network.objects.filter(pk__in=network_ids).exclude(kind__in=services.UDN_KINDS)
    for network in rows.select_related("cluster", "pool").prefetch_related("nads"):
        services.define_by_nads(network, list(_nad_networks(network)), author=context.author)


def _nad_networks(network: Network) -> Iterator[UDN]:
    for nad in network.nads.all():
        try:
            yield nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
        except errors.InvalidInput:
            continue  # the stored config is no longer valid


_KIND = resources.ROUTE_ADVERTISEMENTS.kind


def of_networks(
    networks: Iterable[Network],
) -> dict[int, list[udn.RouteAdvertisements] | None]:
    """Return, by network id, the RouteAdvertisements that select the network, in order of their names.

    None means unknown: the kind was never listed in the network's cluster, or is not served there. Runs
    three queries for any number of networks.
    """
    rows = list(networks)
    clusters = {network.cluster_id for network in rows}
    connections = Connection.objects.filter(cluster__in=clusters)
    read = {
        connection.cluster_id
        for connection in connections.only("cluster_id", "positions")
        if watchers.read(connection.positions, _KIND)
    }
    objects = _objects(read)
    labels = _labels([network for network in rows if objects.get(network.cluster_id)])
    return {
        network.pk: [
            advertisement
            for advertisement in objects.get(network.cluster_id, ())
            if network.pk in labels and advertisement.selects(labels[network.pk])
        ]
        if network.cluster_id in read
        else None
        for network in rows
    }


def _objects(clusters: Iterable[int]) -> dict[int, list[udn.RouteAdvertisements]]:
    rows = ObservedObject.objects.filter(cluster__in=clusters, kind=_KIND, missed_at=None)
    objects: dict[int, list[udn.RouteAdvertisements]] = {}
    for row in rows.order_by("name"):
        try:
            objects.setdefault(row.cluster_id, []).append(
                udn.parse_route_advertisements(row.manifest)
            )
        except errors.InvalidInput:
            continue  # the object's own problem reports it
    return objects


def _labels(networks: list[Network]) -> dict[int, dict[str, str]]:
    """Return the labels of the ClusterUserDefinedNetworks of these networks, by network id."""
    by_object = {
        (network.cluster_id, network.object_name): network.pk
        for network in networks
        if network.kind == NetworkKind.CUDN
    }
    rows = ObservedObject.objects.filter(
        cluster__in={cluster for cluster, _ in by_object},
        kind=resources.CLUSTER_UDN.kind,
        name__in={name for _, name in by_object},
    )
    values = rows.values_list("cluster_id", "name", "manifest__metadata__labels")
    return {
        by_object[cluster, name]: labels or {}
        for cluster, name, labels in values
        if (cluster, name) in by_object
    }


class RouteAdvertisements(handler.Handler):
    """Stores the observed objects; they change nothing else in the register."""

    kind = resources.ROUTE_ADVERTISEMENTS.kind
    resources: Sequence[Resource] = (resources.ROUTE_ADVERTISEMENTS,)

    def parse(self, manifest: Manifest) -> udn.RouteAdvertisements:
        return udn.parse_route_advertisements(manifest)
