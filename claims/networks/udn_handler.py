"""ClusterUserDefinedNetworks and UserDefinedNetworks of OVN-Kubernetes.

Who is right where the register and an object differ: the object, unless the network was made in the
register to be applied (`Network.applied`) to a managed cluster. Such a network is created, and its
namespace selector is kept; everything else of it is immutable in the cluster, so an object that says
otherwise is shown as a difference and never written. Objects are never deleted.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from claims.core import resources
from claims.core.networks import manifest as network_manifest
from claims.core.networks import udn
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import findings as network_findings
from claims.networks import networks as services
from claims.networks import pools
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import MANAGER, Found, Handler, Pass, Seen, Write
from pools.core import errors
from pools.core.kubernetes import differences
from pools.core.kubernetes.differences import Structure
from pools.core.kubernetes.resources import Resource
from pools.models import ObservedObject
from pools.models.connections import Mode

STRUCTURE = Structure(
    lists={("metadata", "finalizers"): ()}, atomic=frozenset({("spec", "namespaceSelector")})
)


class UserDefinedNetworks(Handler):
    """The handler of one of the two kinds; see the module."""

    def __init__(self, resource: Resource) -> None:
        self.kind = resource.kind
        self.resources: Sequence[Resource] = (resource,)
        self._row_kind = udn.CUDN if resource == resources.CLUSTER_UDN else udn.UDN_KIND

    def parse(self, manifest: Manifest) -> UDN:
        return udn.parse(manifest)

    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None:
        for one in seen:
            services.take_in(
                pass_.cluster, one.parsed, one.row.uid, author=pass_.author, is_managed=_managed(pass_)
            )

    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None:
        """Only networks of these very objects: a later one of a name is another."""
        found = Network.objects.filter(
            cluster=pass_.cluster, kind=self._row_kind, uid__in=[row.uid for row in rows]
        )
        for network in found.select_related("cluster", "pool"):
            if services.registers(network, is_managed=_managed(pass_)):
                Network.objects.filter(pk=network.pk).update(uid="", conditions=[])
            elif network.gone_at is None:
                services.lose(network, author=pass_.author)

    def desired(self, pass_: Pass) -> Iterator[Write]:
        if self._row_kind != udn.CUDN:
            return
        _keep_pools(pass_)
        if _managed(pass_) and self.kind in pass_.served:
            yield from _writes(pass_)

    def findings(self, pass_: Pass) -> Iterator[Found]:
        yield from pass_.notes.get(self.kind, ())
        yield from network_findings.of_conditions(pass_, self._row_kind)
        if self.kind in pass_.complete:
            yield from network_findings.not_in_cluster(pass_, self._row_kind)
        if self._row_kind == udn.CUDN:
            yield from network_findings.orphans(pass_)


def _managed(pass_: Pass) -> bool:
    return pass_.connection.mode == Mode.MANAGED


def _keep_pools(pass_: Pass) -> None:
    """What no object tells: orphans that nothing holds, pools that somebody changed."""
    if pools.has_orphans(pass_.cluster):
        with pass_.holding():
            pools.tidy(pass_.cluster, author=pass_.author)
    if pass_.told:
        return
    for network in pools.astray(pass_.cluster):
        with contextlib.suppress(errors.Conflict, errors.InvalidInput), pass_.holding():
            pools.bring(network, author=pass_.author)  # refused again: the object's problem says why


def _writes(pass_: Pass) -> Iterator[Write]:
    kind = resources.CLUSTER_UDN.kind
    notes: list[Found] = []
    pass_.notes[kind] = notes
    rows = Network.objects.filter(
        cluster=pass_.cluster, kind=udn.CUDN, applied=True, gone_at=None
    ).order_by("name")
    objects = {
        row.name: row.manifest
        for row in ObservedObject.objects.filter(
            cluster=pass_.cluster, kind=kind, name__in=rows.values("object_name")
        )
    }
    for network in rows:
        wanted = services.said(network)
        there = objects.get(network.object_name)
        differing = _immutable_differences(wanted, there) if there else ()
        if differing:
            notes.append(network_findings.differs(network, differing))
        make = functools.partial(_make, manifest=network_manifest.render(wanted))
        yield Write(
            pass_.served[kind], network.object_name, make, structure=STRUCTURE, send=not differing
        )


def _make(current: Manifest | None, manifest: Manifest) -> Manifest | None:
    if current is None:
        return manifest
    found = differences.find(manifest, current, structure=STRUCTURE, manager=MANAGER)
    return manifest if found else None


def _immutable_differences(wanted: UDN, manifest: Manifest) -> tuple[str, ...]:
    """The fields in which the cluster's object is another network than the one that is wanted."""
    try:
        there = replace(udn.parse(manifest), namespace_selector=wanted.namespace_selector)
    except errors.InvalidInput:
        return ("spec",)
    names = (name for name in services.SAID if getattr(there, name) != getattr(wanted, name))
    return tuple(names)
