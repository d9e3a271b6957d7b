"""RouteAdvertisements of OVN-Kubernetes: only read, for the pages of the networks they select."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from claims.core import resources
from claims.core.networks import route_advertisements
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import Found, Pass, Seen, Write
from pools.core.kubernetes.resources import Resource
from pools.models import ObservedObject


class RouteAdvertisements:
    """The engine keeps the objects; nothing else of the register follows from them."""

    kind = resources.ROUTE_ADVERTISEMENTS.kind
    resources: Sequence[Resource] = (resources.ROUTE_ADVERTISEMENTS,)

    def parse(self, manifest: Manifest) -> route_advertisements.RouteAdvertisements:
        return route_advertisements.parse(manifest)

    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None:
        """Nothing but the observed object is kept."""

    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None:
        """The observed object goes by itself."""

    def desired(self, pass_: Pass) -> Iterable[Write]:  # noqa: ARG002  # they are not written
        return ()

    def findings(self, pass_: Pass) -> Iterable[Found]:  # noqa: ARG002
        return ()
