"""IPPools of a cluster (spec/002, deploy/crds): entries read from and written to their spec.

Who is right where the register and an object differ is as with CiliumPodIPPools: the object, unless
the cluster is managed with the duty `ippool-status` and somebody made or changed the IPPool here.
Nothing of another field manager is forced, and no object is ever deleted. The status (conditions and
associated NADs) is written for every IPPool of a cluster with the duty.

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
from pools.clusters.reconcile.handler import Found, Handler, Pass, Seen, Write
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import ObservedObject
from pools.models.connections import Duty
from pools.models.fields import Now

KIND = ippool.KIND


class IPPools(Handler):
    """The handler; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (IPPOOL,)
    prompt = True
    # Their NADs are told in the status, their subnets say which entries can be used.
    follows = (CLUSTER_UDN.kind, UDN.kind, NAD.kind)

    def parse(self, manifest: Manifest) -> ippool.Written:
        return ippool.parse(manifest)

    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None:
        for one in seen:
            _absorb(pass_, one.row, one.parsed)

    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None:
        found = IPPool.objects.filter(cluster=pass_.cluster, uid__in=[row.uid for row in rows])
        if pass_.connection.does(Duty.IPPOOL_STATUS):
            # What the register decides is made anew.
            found.filter(follows_cluster=False).update(uid="", agreed="")
        found.filter(follows_cluster=True).update(uid="", agreed="", gone_at=Now())

    def desired(self, pass_: Pass) -> Iterator[Write]:
        notes: list[Found] = []
        pass_.notes[KIND] = notes
        catch_up(pass_)
        if pass_.connection.does(Duty.IPPOOL_STATUS):
            yield from ippool_writes.writes(pass_, notes)

    def findings(self, pass_: Pass) -> Iterator[Found]:
        yield from pass_.notes.get(KIND, ())
        yield from ippool_findings.of(pass_)


def _absorb(pass_: Pass, row: ObservedObject, said: ippool.Written) -> None:
    known = IPPool.objects.filter(cluster=pass_.cluster, name=said.name).first()
    if known is None and _forgotten(pass_, row):
        return  # it was deleted here, or the register forgot it
    try:
        with transaction.atomic():
            ippool_sync.take_in(
                pass_.cluster, said, uid=row.uid, decides=decides(pass_, known), author=pass_.author
            )
    except errors.AlreadyExists as error:
        row.problem_code, row.problem = "network_has_ippool", error.message


def decides(pass_: Pass, known: IPPool | None) -> bool:
    """Whether the register is right where this IPPool and its object differ."""
    own = known is not None and not known.follows_cluster
    return own and pass_.connection.does(Duty.IPPOOL_STATUS)


def _forgotten(pass_: Pass, row: ObservedObject) -> bool:
    return pass_.connection.does(Duty.IPPOOL_STATUS) and ippool_writes.ours(row.manifest)


def catch_up(pass_: Pass) -> None:
    """What the cluster did not tell: the register, or the network, is another than last time."""
    for pair in ippool_writes.different(pass_):
        row = pair.row
        if row is None or row.problem_code or decides(pass_, pair.ippool):
            continue
        said = ippool.parse(ippool_writes.manifest_of(row))
        with pass_.holding():
            ippool_sync.take_in(pass_.cluster, said, uid=row.uid, decides=False, author=pass_.author)
            if not pass_.connection.does(Duty.IPPOOL_STATUS):
                ippool_writes.agree(pair)
