"""NetworkAttachmentDefinitions: through which namespaces networks are used.

Those of other plugins than OVN-Kubernetes are known to be foreign, and left alone. A network that has
NADs and no (Cluster)UserDefinedNetwork was made by hand: its first NAD says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import QuerySet

from claims.core import nads, resources
from claims.core.nads import Attachment
from claims.core.networks import UDN
from claims.handlers import network_findings
from claims.models import NAD, Network
from claims.services import named
from claims.services import networks as services
from pools.clusters.client import Manifest
from pools.core import errors
from pools.core.resources import Resource
from pools.models import ObservedObject
from pools.reconcile.kinds import Found, Pass, Seen, Write


class NetworkAttachmentDefinitions:
    """The handler; see the module."""

    kind = resources.NAD.kind
    resources: Sequence[Resource] = (resources.NAD,)
    optional = True

    def parse(self, manifest: Manifest) -> Attachment:
        return nads.parse(manifest)

    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None:
        uids = [one.row.uid for one in seen]
        known = {nad.uid: nad for nad in _of(pass_).filter(uid__in=uids)}
        touched: set[int] = set()
        for one in seen:
            touched |= _take_in(pass_, one, known.get(one.row.uid))
        _define(pass_, touched)

    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None:
        found = _of(pass_).filter(uid__in=[row.uid for row in rows])
        touched = set(found.values_list("network_id", flat=True))
        found.delete()
        _define(pass_, touched)

    def desired(self, pass_: Pass) -> Iterable[Write]:  # noqa: ARG002  # NADs are not written
        return ()

    def findings(self, pass_: Pass) -> Iterator[Found]:
        yield from network_findings.of_nads(pass_)


def _of(pass_: Pass) -> QuerySet[NAD]:
    return NAD.objects.filter(network__cluster=pass_.cluster)


def _take_in(pass_: Pass, one: Seen, known: NAD | None) -> set[int]:
    """The row says what the NAD says; the networks that may be other ones now."""
    said: Attachment = one.parsed
    touched = {known.network_id} if known is not None else set[int]()
    if said.network is None:
        if known is not None:
            known.delete()
        return touched
    network = named.network(pass_.cluster.pk, said.network.name)
    if known is not None and known.network_id != network.pk:
        known.delete()
    NAD.objects.update_or_create(
        network=network,
        namespace=said.namespace,
        name=said.name,
        defaults={
            "uid": one.row.uid,
            "role": said.network.role[:16],
            "allow_persistent_ips": said.allow_persistent_ips,
            "subnets": list(said.network.subnets),
            "config": said.config,
        },
    )
    return touched | {network.pk}


def _define(pass_: Pass, network_ids: set[int]) -> None:
    rows = Network.objects.filter(pk__in=network_ids).select_related("cluster", "pool")
    for network in rows.prefetch_related("nads").order_by("pk"):
        services.define_by_nads(network, list(_said(network)), by=pass_.by)


def _said(network: Network) -> Iterator[UDN]:
    for nad in network.nads.all():
        try:
            yield nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
        except errors.InvalidInput:
            continue  # it could be read once
