"""The handler of ClusterUserDefinedNetworks and UserDefinedNetworks of OVN-Kubernetes.

The object decides if the register and an object differ, unless the network was created here to be
applied (`Network.applied`) to a managed cluster. Such a network is created in the cluster, and its
namespace selector is updated. All other fields are immutable in the cluster: an object that differs in
them is a finding and is not written. Objects are never deleted.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from claims.core import resources
from claims.core.networks import udn
from claims.core.networks import udn as network_manifest
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import findings as network_findings
from claims.networks import networks as services
from claims.networks import pools
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import (
    MANAGER,
    Handler,
    ParsedObject,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.core import errors
from pools.core.kubernetes import differences
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import ObservedObject
from pools.models.connections import Mode

STRUCTURE = Structure(
    lists={("metadata", "finalizers"): ()}, atomic=frozenset({("spec", "namespaceSelector")})
)


class UserDefinedNetworks(Handler):
    """Handler of one of the two kinds; see the module."""

    def __init__(self, resource: Resource) -> None:
        self.kind = resource.kind
        self.resources: Sequence[Resource] = (resource,)
        self._row_kind = udn.CUDN if resource == resources.CLUSTER_UDN else udn.UDN_KIND

    def parse(self, manifest: Manifest) -> UDN:
        return udn.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        for parsed_object in parsed_objects:
            services.upsert_network(
                context.cluster,
                parsed_object.parsed,
                parsed_object.row.uid,
                author=context.author,
                is_managed=_managed(context),
            )

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        """Forget networks by uid, because a later object with the same name is another network."""
        networks = Network.objects.filter(
            cluster=context.cluster, kind=self._row_kind, uid__in=[row.uid for row in rows]
        )
        for network in networks.select_related("cluster", "pool"):
            if services.register_decides(network, is_managed=_managed(context)):
                Network.objects.filter(pk=network.pk).update(uid="", conditions=[])
            elif network.gone_at is None:
                services.mark_gone(network, author=context.author)

    def desired(self, context: SyncContext) -> Iterator[Write]:
        if self._row_kind != udn.CUDN:
            return
        _sync_pools(context)
        if _managed(context) and self.kind in context.served:
            yield from _writes(context)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from context.notes.get(self.kind, ())
        yield from network_findings.condition_findings(context, self._row_kind)
        yield from network_findings.contradictions(context, self._row_kind)
        if self.kind in context.complete:
            yield from network_findings.missing_networks(context, self._row_kind)
        if self._row_kind == udn.CUDN:
            yield from network_findings.orphaned_subnets(context)


def _managed(context: SyncContext) -> bool:
    return context.connection.mode == Mode.MANAGED


def _sync_pools(context: SyncContext) -> None:
    """Remove unused orphans, and restore pools that were changed; no object triggers either."""
    if pools.has_orphans(context.cluster):
        with context.transaction():
            pools.remove_unused_orphans(context.cluster, author=context.author)
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


def _writes(context: SyncContext) -> Iterator[Write]:
    kind = resources.CLUSTER_UDN.kind
    notes: list[ReconcileFinding] = []
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
            make = functools.partial(
                _desired_manifest, manifest=network_manifest.render(desired_network)
            )
            yield Write(
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
        manifest, current, structure=STRUCTURE, manager=MANAGER
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
