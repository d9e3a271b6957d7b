"""The handler of IPPools (deploy/crds): reads entries from their spec and writes them to it.

As with CiliumPodIPPools, the object decides if the register and the object differ, unless the cluster
is managed with the managed resource `ippool-status` and the IPPool was created or changed here. Fields
of other field managers are never forced, and objects are never deleted. The status (conditions and
associated NADs) is written for every IPPool of a cluster with the managed resource.

A network has one IPPool: a second object for it is ignored, with the finding `network_has_ippool` and a status
that says so. An
IPPool whose object is deleted stays with its entries, so that their addresses are not allocated to
others, and has the finding `ippool_gone` until it is deleted here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q

from claims.address_index import conflicts
from claims.core import ippool
from claims.core.resources import CLUSTER_UDN, IPPOOL, NAD, UDN
from claims.entries import ippool_writes, ippools as services
from claims.models import IPPool, Network
from claims.models.networks import NetworkKind
from pools.clusters import drift
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
from pools.models import ManagedResource, Now, ObservedObject, Severity
from pools.platform import database, events
from pools.sql import statements

KIND = ippool.KIND
T = TypeVar("T")


def cluster_findings(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield duplicates, unknown networks, deleted objects, and objects that are not in the register."""
    values = {"cluster": context.cluster.pk}
    ippools = IPPool.objects.filter(cluster=context.cluster).select_related("network")
    objects = ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, problem_code="", missed_at=None
    ).exclude(name__in=ippools.values("name"))

    def find_each(
        rows: Iterable[T], find: Callable[[T], Iterator[ReconcileFinding]]
    ) -> Iterator[ReconcileFinding]:
        return ingest.find_each(context, KIND, rows, find, name=_name)

    yield from find_each(ippools.order_by("name"), _row_findings)
    yield from find_each(database.rows(_OUTSIDE, values), _outside_network)
    yield from find_each(database.rows(_ONE_PER_FAMILY, values), _one_per_family)
    yield from find_each(ippool_writes.second_ippools(context).defer("manifest"), _second)
    yield from find_each(objects.order_by("name"), _not_in_register)


def _name(row: Any) -> str:
    name: str = row[0] if isinstance(row, tuple) else row.name
    return name


def _outside_network(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    name, count, examples = row
    message = (
        f"{_count(count, 'address', 'addresses')} of entries of the IPPool {name} "
        f"{'is' if count == 1 else 'are'} outside of the network's subnets, for example {examples[0]}."
    )
    yield ReconcileFinding("ippool_outside_network", name, message, details={"entries": examples})


def _one_per_family(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    name, count, examples = row
    message = (
        f"{_count(count, 'entry', 'entries')} of the IPPool {name} {'has' if count == 1 else 'have'} several"
        f" addresses of one family, for example {examples[0]}: OVN-Kubernetes refuses such a VM."
    )
    yield ReconcileFinding("ippool_one_per_family", name, message, details={"entries": examples})


def _second(row: ObservedObject) -> Iterator[ReconcileFinding]:
    message = f"The IPPool {row.name} is left out. {row.problem}"
    yield ReconcileFinding(ippool_writes.SECOND, row.name, message, Severity.ERROR)


def _not_in_register(row: ObservedObject) -> Iterator[ReconcileFinding]:
    if ippool_writes.has_register_fields(row.manifest):
        message = (
            f"The register has no IPPool {row.name}: it was deleted here, or lost by a restore."
            " Delete the object, or adopt it."
        )
        yield ReconcileFinding("ippool_not_in_register", row.name, message)


# Such entries were created before the subnets of the network were known; later ones are refused.
_OUTSIDE = statements.read("claims/entries_outside_subnets")
# Such entries come from the cluster's object, or are older than their refusal.
_ONE_PER_FAMILY = statements.read("claims/entries_with_several_of_a_family")


def _row_findings(ippool_row: IPPool) -> Iterator[ReconcileFinding]:
    if ippool_row.duplicate_macs or ippool_row.duplicate_ips:
        yield from _duplicates(ippool_row)
    if ippool_row.problems:
        message = (
            f"{_count(len(ippool_row.problems), 'entry', 'entries')} of the IPPool {ippool_row.name} cannot be"
            f" used, for example {ippool_row.problems[0]['mac']}: {ippool_row.problems[0]['message']}"
        )
        yield ReconcileFinding(
            "ippool_unusable_entries",
            ippool_row.name,
            message,
            details={"entries": ippool_row.problems[:20]},
        )
    if ippool_row.network.kind == NetworkKind.UNKNOWN:
        message = (
            f"The IPPool {ippool_row.name} names the logical network {ippool_row.network.name}, which the cluster"
            " does not have: no network attachment definition has this name."
        )
        yield ReconcileFinding("network_unknown", ippool_row.name, message)
    if ippool_row.gone_at is not None:
        message = (
            f"The object of the IPPool {ippool_row.name} was deleted in the cluster. Its entries still hold their"
            " addresses: delete the IPPool here, or create the object again."
        )
        yield ReconcileFinding("ippool_gone", ippool_row.name, message, Severity.WARNING)


def _duplicates(ippool_row: IPPool) -> Iterator[ReconcileFinding]:
    """Yield conflicts between entries (as in the conditions), and conflicts with other objects."""
    macs, ips = conflicts.count_entry_duplicates(ippool_row)
    if macs or ips:
        message = f"Entries of the IPPool {ippool_row.name} conflict with each other: {_values(macs, ips)}."
        yield ReconcileFinding(
            "ippool_duplicates", ippool_row.name, message, details={"macs": macs, "ips": ips}
        )
    macs, ips = ippool_row.duplicate_macs - macs, ippool_row.duplicate_ips - ips
    if macs > 0 or ips > 0:
        message = (
            f"Entries of the IPPool {ippool_row.name} conflict with IPAMClaims, running workloads, or addresses"
            f" that the network uses itself: {_values(macs, ips)}. The page of the IPPool lists them."
        )
        yield ReconcileFinding(
            "ippool_conflicts", ippool_row.name, message, details={"macs": macs, "ips": ips}
        )


def _values(macs: int, ips: int) -> str:
    counted = ((macs, "MAC address"), (ips, "IP address"))
    return ", ".join(_count(count, word) for count, word in counted if count > 0)


def _count(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 'es'}"


KIND = ippool.KIND


class IPPoolHandler(Handler):
    """Handler of IPPools; see the module."""

    kind = KIND
    resources: Sequence[Resource] = (IPPOOL,)
    prompt = True
    # The status lists the NADs of networks; the subnets of networks decide which entries are valid.
    follows = (CLUSTER_UDN.kind, UDN.kind, NAD.kind)

    def parse(self, manifest: Manifest) -> ippool.ParsedIPPool:
        return ippool.parse(manifest)

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:
        names = [observed.parsed.name for observed in parsed_objects]
        network_names = [observed.parsed.network_name for observed in parsed_objects]
        _take_locks(context, Q(name__in=network_names) | Q(ippool__name__in=names))
        for observed in parsed_objects:
            _ingest(context, observed.row, observed.parsed)

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:
        uids = [row.uid for row in rows]
        _take_locks(context, Q(ippool__uid__in=uids))
        ippools = IPPool.objects.filter(cluster=context.cluster, uid__in=uids)
        if context.connection.manages(ManagedResource.IPPOOL_STATUS):
            # Objects that the register decides are created again.
            ippools.filter(follows_cluster=False).update(uid="", agreed="")
        ippools.filter(follows_cluster=True).update(uid="", agreed="", gone_at=Now())

    def desired(self, context: SyncContext) -> Iterator[Write]:
        notes: list[ReconcileFinding] = []
        context.notes[KIND] = notes
        catch_up(context)
        if context.connection.manages(ManagedResource.IPPOOL_STATUS):
            yield from ippool_writes.writes(context, notes)

    def findings(self, context: SyncContext) -> Iterator[ReconcileFinding]:
        yield from context.notes.get(KIND, ())
        yield from cluster_findings(context)


def _take_locks(context: SyncContext, networks: Q) -> None:
    rows = Network.objects.filter(networks, cluster=context.cluster)
    services.take_locks(rows, author=context.author)


def _ingest(context: SyncContext, row: ObservedObject, ippool_spec: ippool.ParsedIPPool) -> None:
    existing_ippool = IPPool.objects.filter(cluster=context.cluster, name=ippool_spec.name).first()
    if existing_ippool is None and _was_deleted_here(context, row):
        return  # deleted here, or lost by a restore
    try:
        with transaction.atomic():
            ippool_writes.upsert_ippool(
                context.cluster,
                ippool_spec,
                uid=row.uid,
                register_decides=register_decides(context, existing_ippool),
                author=context.author,
            )
    except errors.AlreadyExists as error:
        row.problem_code, row.problem = ippool_writes.SECOND, error.message


def register_decides(context: SyncContext, existing_ippool: IPPool | None) -> bool:
    """Return True if the register decides, not the object, where this IPPool and its object differ."""
    is_ours = existing_ippool is not None and not existing_ippool.follows_cluster
    return is_ours and context.connection.manages(ManagedResource.IPPOOL_STATUS)


def _was_deleted_here(context: SyncContext, row: ObservedObject) -> bool:
    return context.connection.manages(
        ManagedResource.IPPOOL_STATUS
    ) and ippool_writes.has_register_fields(row.manifest)


def catch_up(context: SyncContext) -> None:
    """Ingest objects again whose IPPool or network changed here without a watch event."""
    for pair in ippool_writes.list_outdated(context):
        row = pair.row
        if row is None or row.problem_code or register_decides(context, pair.ippool):
            continue
        with ingest.isolate_object(context, KIND, pair.ippool.name):
            ippool_spec = ippool.parse(ippool_writes.manifest_of(row))
            with context.transaction():
                ippool_writes.upsert_ippool(
                    context.cluster,
                    ippool_spec,
                    uid=row.uid,
                    register_decides=False,
                    author=context.author,
                )
                if not context.connection.manages(ManagedResource.IPPOOL_STATUS):
                    ippool_writes.mark_in_sync(pair)


def _keep(drift_object: drift.ClusterObject) -> int:
    ippools = IPPool.objects.filter(cluster=drift_object.cluster, name=drift_object.name)
    return ippools.update(follows_cluster=False, agreed="")


def _adopt(
    drift_object: drift.ClusterObject, observed_object: ObservedObject, author: events.Author
) -> int:
    """Adopt the object. Raises InvalidInput (the object), AlreadyExists (the network has another IPPool)."""
    ippool_spec = ippool.parse(observed_object.manifest)
    ippools = IPPool.objects.filter(cluster=drift_object.cluster, name=drift_object.name)
    follows = ippools.values_list("follows_cluster", flat=True).first()
    adopted_ippool = ippool_writes.upsert_ippool(
        drift_object.cluster,
        ippool_spec,
        uid=observed_object.uid,
        register_decides=False,
        author=author,
    )
    # The register keeps control of an IPPool that it controlled; only the contents are adopted.
    IPPool.objects.filter(pk=adopted_ippool.pk).update(follows_cluster=bool(follows), agreed="")
    return adopted_ippool.pk


RESOLVER = drift.DriftResolver(
    IPPOOL.kind,
    ManagedResource.IPPOOL_STATUS,
    _keep,
    _adopt,
    ("claims.add_ippool", "claims.change_ippool", "claims.change_entry"),
)
