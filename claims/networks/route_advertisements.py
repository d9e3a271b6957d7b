"""Lookup of the RouteAdvertisements that select a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from claims.core import resources
from claims.core.networks import udn
from claims.models import Network
from claims.models.networks import NetworkKind
from pools.clusters.reconcile import watchers
from pools.clusters.reconcile.handler import Handler
from pools.core import errors
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Connection, ObservedObject

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


class RouteAdvertisements(Handler):
    """Stores the observed objects; they change nothing else in the register."""

    kind = resources.ROUTE_ADVERTISEMENTS.kind
    resources: Sequence[Resource] = (resources.ROUTE_ADVERTISEMENTS,)

    def parse(self, manifest: Manifest) -> udn.RouteAdvertisements:
        return udn.parse_route_advertisements(manifest)
