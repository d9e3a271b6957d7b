"""IPPools, at most one for each network of a cluster, and their conditions.

An IPPool that was observed in a cluster follows its object. In a managed cluster with the managed
resource `ippool-status` the register decides from the first change here on; in any other cluster the
object decides, and changes here are refused.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError
from django.db.models import F, QuerySet

from claims.access import namespaces
from claims.address_index import block_sync, conflicts, index
from claims.core import entries, ippool
from claims.models import NAD, Entry, IPPool, Network
from claims.networks import networks
from pools.clusters.reconcile import leases
from pools.core import errors, holders
from pools.models import Cluster, ManagedResource
from pools.platform import database, events

_CLUSTER = "cluster"  # source of the changes of sync runs


def create(
    cluster: Cluster, name: str, network_name: str, *, note: str = "", author: events.Author
) -> IPPool:
    """Create an IPPool without entries; a network that is not known yet gets a row.

    Raises AlreadyExists, with the name of the network's IPPool or of the cluster's IPPool of that name,
    and InvalidInput.
    """
    with events.recorded_by(author):
        _announce(cluster.pk, author)
        network = networks.get_or_create(
            cluster.pk, holders.parse_identifier(network_name, field="network_name")
        )
        require_no_ippool(network)
        ippool_row = IPPool(
            cluster=cluster,
            network=network,
            name=holders.parse_name(name, field="name"),
            note=note,
            follows_cluster=author.source == _CLUSTER,
        )
        _save(ippool_row)
        update_conditions(ippool_row)
    return ippool_row


def require_no_ippool(network: Network, *, except_id: int | None = None) -> None:
    """Raise AlreadyExists if the network has an IPPool other than `except_id`."""
    other = IPPool.objects.filter(network=network).first()
    if other is not None and other.pk != except_id:
        message = (
            f"The network {network.name} already has an IPPool: {other.name}."
            " A logical network can have one IPPool."
        )
        problem = errors.FieldProblem("network_name", "network_has_ippool", message)
        raise errors.AlreadyExists(message, problems=[problem])


# By the constraint that a concurrent request violates.
_PROBLEMS = {
    "ippool_name_unique": errors.FieldProblem(
        "name", "already_exists", "The cluster already has an IPPool of this name."
    ),
    "claims_ippool_network_id_key": errors.FieldProblem(
        "network_name", "network_has_ippool", "The network already has an IPPool."
    ),
}


def _save(ippool_row: IPPool) -> None:
    try:
        database.save(ippool_row)
    except IntegrityError as error:  # a concurrent request
        if (problem := _PROBLEMS.get(database.constraint(error))) is None:
            raise
        raise errors.AlreadyExists(problem.message, problems=[problem]) from error


def change(
    ippool_id: int,
    *,
    name: str | None = None,
    note: str | None = None,
    author: events.Author,
    version: database.Version = None,
) -> IPPool:
    """Change the note of an IPPool, or its name if it has no object in the cluster.

    Raises NotFound, VersionMismatch, ClusterDecides, ImmutableInUse, AlreadyExists, InvalidInput.
    """
    with lock_for_change(ippool_id, author=author, version=version) as ippool_change:
        ippool_row = ippool_change.ippool
        if name is not None and name != ippool_row.name:
            if ippool_row.uid:
                message = "The IPPool exists in its cluster under this name, and objects cannot be renamed."
                raise errors.ImmutableInUse(message)
            ippool_row.name = holders.parse_name(name, field="name")
        if note is not None:
            ippool_row.note = note
        _save(ippool_row)
    return IPPool.objects.get(pk=ippool_id)


def delete(ippool_id: int, *, author: events.Author, version: database.Version = None) -> None:
    """Delete an IPPool and its entries, and release their addresses.

    The object in the cluster stays, because the register may have lost data in a restore. Raises
    NotFound, VersionMismatch, ClusterDecides.
    """
    with lock_for_change(ippool_id, author=author, version=version) as ippool_change:
        ids = list(Entry.objects.filter(ippool=ippool_id).values_list("pk", flat=True))
        index.remove(entries=ids)
        database.fetch(_DELETE_ENTRIES, {"ippool": ippool_id})
        ippool_change.ippool.delete()
        ippool_change.deleted = True


# Not by Django, which would read up to a hundred thousand rows first.
_DELETE_ENTRIES = "DELETE FROM claims_entry WHERE ippool_id = %(ippool)s RETURNING id"


@dataclass
class IPPoolChange:
    """A change in progress of a locked IPPool; `values` are columns to store at its end."""

    ippool: IPPool
    deleted: bool = False
    values: dict[str, Any] = field(default_factory=dict)


@contextmanager
def lock_for_change(
    ippool_id: int, *, author: events.Author, version: database.Version = None
) -> Iterator[IPPoolChange]:
    """Lock an IPPool for a change; at the end increment its version and update its conditions.

    Raises NotFound, VersionMismatch, ClusterDecides.
    """
    with events.recorded_by(author):
        take_locks(Network.objects.filter(ippool=ippool_id), author=author)
        ippool_row = (
            IPPool.objects.select_related("cluster", "network")
            .select_for_update(of=("self",))
            .filter(pk=ippool_id)
            .first()
        )
        if ippool_row is None:
            raise errors.NotFound("There is no such object.")
        database.require_version(ippool_row, version)
        follows = follows_after(ippool_row, author)
        ippool_change = IPPoolChange(ippool_row)
        yield ippool_change
        if ippool_change.deleted:
            return
        values = {"follows_cluster": follows, **ippool_change.values}
        IPPool.objects.filter(pk=ippool_id).update(version=F("version") + 1, **values)
        ippool_row.refresh_from_db(fields=["version", *values])
        update_conditions(ippool_row)


def take_locks(networks: QuerySet[Network], *, author: events.Author) -> None:
    """Lock what a change of networks' IPPools locks before their rows: the clusters, then the pools, as sync runs do."""
    clusters = dict(networks.values_list("pk", "cluster_id"))
    for cluster_id in sorted({*clusters.values()}):
        _announce(cluster_id, author)
    block_sync.lock_pools(clusters)


def follows_after(ippool_row: IPPool, author: events.Author) -> bool:
    """Return True if the IPPool follows its object after a change by `author`.

    Raises ClusterDecides if the object decides and `author` may not change the IPPool.
    """
    if author.source == _CLUSTER:
        return ippool_row.follows_cluster
    if (
        ippool_row.follows_cluster
        and ippool_row.gone_at is None
        and not writes_ippools(ippool_row.cluster)
    ):
        raise errors.ClusterDecides(
            f"The IPPool {ippool_row.name} follows its object in {ippool_row.cluster}: change it there, or manage the"
            " cluster with the managed resource ippool-status."
        )
    return False


def writes_ippools(cluster: Cluster) -> bool:
    """Return True if Cadastre writes IPPools to the cluster."""
    connection = getattr(cluster, "connection", None)
    return connection is not None and connection.manages(ManagedResource.IPPOOL_STATUS)


def _announce(cluster_id: int, author: events.Author) -> None:
    if author.source != _CLUSTER:
        leases.nudge(cluster_id, patient=True)


def update_conditions(ippool_row: IPPool) -> None:
    """Compute the conditions of an IPPool, and store them if they differ."""
    macs, ips = conflicts.entry_duplicates(ippool_row, limit=ippool.MAX_NAMED)
    conditions = ippool.conditions(
        macs=macs,
        ips=ips,
        unusable=ippool_row.problems,
        before=ippool_row.conditions,
        now=now_text(),
    )
    if conditions != ippool_row.conditions:
        ippool_row.conditions = conditions
        IPPool.objects.filter(pk=ippool_row.pk).update(conditions=conditions)


def now_text() -> str:
    """Return the database's time as the conditions of an object show it."""
    now: datetime = database.now().astimezone(UTC)
    return f"{now:%Y-%m-%dT%H:%M:%SZ}"


def associated_nads(
    ippool_rows: Sequence[IPPool], scope: namespaces.Scope = namespaces.EVERYTHING
) -> dict[int, list[dict[str, str]]]:
    """Return the NADs of each IPPool's network as `{"namespace", "name"}`, by IPPool id."""
    by_network: dict[int, list[tuple[str, str]]] = {}
    rows = NAD.objects.filter(network__in={ippool_row.network_id for ippool_row in ippool_rows})
    for network, namespace, name in namespaces.visible(rows, scope).values_list(
        "network_id", "namespace", "name"
    ):
        by_network.setdefault(network, []).append((namespace, name))
    return {
        ippool_row.pk: ippool.associated_nads(by_network.get(ippool_row.network_id, ()))
        for ippool_row in ippool_rows
    }


def manifest(
    ippool_row: IPPool, *, rows: QuerySet[Entry] | None = None, status: bool = True
) -> dict[str, Any]:
    """Return the object of an IPPool, with the addresses of one MAC under one key.

    `rows` are the entries that may be shown; by default all.
    """
    visible = (Entry.objects.all() if rows is None else rows).filter(ippool=ippool_row)
    pairs = visible.order_by("mac", "id").values_list("mac", "ips")
    rendered = ippool.render(
        ippool_row.name, ippool_row.network.name, pairs.iterator(chunk_size=10_000)
    )
    if status:
        nads = associated_nads([ippool_row])[ippool_row.pk]
        rendered["status"] = {"conditions": ippool_row.conditions, "associated-nads": nads}
    return rendered


def rules(network: Network, *, lenient: bool = False, observed: bool = False) -> entries.Rules:
    """Return the rules by which entries of a network are parsed, also those `observed` in its cluster."""
    return entries.rules(network.subnets, lenient=lenient, one_per_family=not observed)
