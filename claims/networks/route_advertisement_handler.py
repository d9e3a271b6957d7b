"""The handler of RouteAdvertisements of OVN-Kubernetes, which the pages of their networks show."""

from __future__ import annotations

from collections.abc import Sequence

from claims.core import resources
from claims.core.networks import route_advertisements
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Resource


class RouteAdvertisements(Handler):
    """Stores the observed objects; they change nothing else in the register."""

    kind = resources.ROUTE_ADVERTISEMENTS.kind
    resources: Sequence[Resource] = (resources.ROUTE_ADVERTISEMENTS,)

    def parse(self, manifest: Manifest) -> route_advertisements.RouteAdvertisements:
        return route_advertisements.parse(manifest)
