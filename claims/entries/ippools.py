"""IPPools: one for each network of a cluster; their conditions and who is right about them.

An IPPool that was only taken in from a cluster follows its object. In a managed cluster with the managed resource
`ippool-status` it becomes the register's with the first change that somebody makes here; in any other
cluster its object decides, and a change here is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError
from django.db.models import F, QuerySet

from claims.access import namespaces
from claims.address_index import conflicts, index
from claims.core import entries, ippool
from claims.models import NAD, Entry, IPPool, Network
from claims.networks import names
from pools.clusters.reconcile import leases
from pools.core import errors, holders
from pools.models import Cluster, Connection
from pools.models.connections import ManagedResource
from pools.platform import database, events

_CLUSTER = "cluster"  # the source of what passes over a cluster change


def create(
    cluster: Cluster, name: str, network_name: str, *, note: str = "", author: events.Author
) -> IPPool:
    """An IPPool without entries; a network that nobody has seen yet gets a row of its name.

    Raises AlreadyExists, naming the network's IPPool or the cluster's of that name, or InvalidInput.
    """
    with events.recorded(author):
        _announce(cluster.pk, author)
        network = names.network(
            cluster.pk, holders.parse_identifier(network_name, field="network_name")
        )
        refuse_second(network)
        ippool_row = IPPool(
            cluster=cluster,
            network=network,
            name=holders.parse_name(name, field="name"),
            note=note,
            follows_cluster=author.source == _CLUSTER,
        )
        _save(ippool_row)
        keep_conditions(ippool_row)
    return ippool_row


def refuse_second(network: Network, *, but: int | None = None) -> None:
    """AlreadyExists when the network has an IPPool (another one than `but`)."""
    other = IPPool.objects.filter(network=network).first()
    if other is not None and other.pk != but:
        raise errors.AlreadyExists(
            f"The network {network.name} has an IPPool already: {other.name}."
            " A logical network has one IPPool."
        )


def _save(ippool_row: IPPool) -> None:
    try:
        database.save(ippool_row)
    except IntegrityError as error:  # two at the same moment
        if "ippool" not in database.constraint(error):
            raise
        raise errors.AlreadyExists("The network, or the name, has an IPPool already.") from error


def change(
    ippool_id: int,
    *,
    name: str | None = None,
    note: str | None = None,
    author: events.Author,
    version: int | None = None,
) -> IPPool:
    """Rename it, as long as no cluster has it as an object, or note something about it.

    Raises NotFound, VersionMismatch, ClusterDecides, ImmutableInUse, AlreadyExists, InvalidInput.
    """
    with changing(ippool_id, author=author, version=version) as changed:
        ippool_row = changed.ippool
        if name is not None and name != ippool_row.name:
            if ippool_row.uid:
                message = "Its cluster has it under this name, and objects are not renamed."
                raise errors.ImmutableInUse(message)
            ippool_row.name = holders.parse_name(name, field="name")
        if note is not None:
            ippool_row.note = note
        _save(ippool_row)
    return IPPool.objects.get(pk=ippool_id)


def delete(ippool_id: int, *, author: events.Author, version: int | None = None) -> None:
    """Remove it with all its entries, which give their addresses back.

    Its object in a cluster stays, for the register may be the one that forgot. Raises NotFound,
    VersionMismatch, ClusterDecides.
    """
    with changing(ippool_id, author=author, version=version) as changed:
        ids = list(Entry.objects.filter(ippool=ippool_id).values_list("pk", flat=True))
        index.remove(entries=ids)
        database.fetch(_DELETE_ENTRIES, {"ippool": ippool_id})
        changed.ippool.delete()
        changed.deleted = True


# Not Django's way, which would read a hundred thousand rows first.
_DELETE_ENTRIES = "DELETE FROM claims_entry WHERE ippool_id = %(ippool)s RETURNING id"


@dataclass
class Changing:
    """A change of an IPPool that is under way; `values` are stored with it at its end."""

    ippool: IPPool
    deleted: bool = False
    values: dict[str, Any] = field(default_factory=dict)


@contextmanager
def changing(
    ippool_id: int, *, author: events.Author, version: int | None = None
) -> Iterator[Changing]:
    """The IPPool, locked; at the end its version rises and its conditions are kept.

    Raises NotFound, VersionMismatch, ClusterDecides.
    """
    with events.recorded(author):
        cluster_id = (
            IPPool.objects.filter(pk=ippool_id).values_list("cluster_id", flat=True).first()
        )
        if cluster_id is not None:
            _announce(cluster_id, author)  # before the row: passes take that row first
        ippool_row = (
            IPPool.objects.select_related("cluster", "network")
            .select_for_update(of=("self",))
            .filter(pk=ippool_id)
            .first()
        )
        if ippool_row is None:
            raise errors.NotFound("There is no such object.")
        if version is not None and ippool_row.version != version:
            raise errors.VersionMismatch
        follows = follows_after(ippool_row, author)
        change = Changing(ippool_row)
        yield change
        if change.deleted:
            return
        values = {"follows_cluster": follows, **change.values}
        IPPool.objects.filter(pk=ippool_id).update(version=F("version") + 1, **values)
        ippool_row.refresh_from_db(fields=["version", *values])
        keep_conditions(ippool_row)


def follows_after(ippool_row: IPPool, author: events.Author) -> bool:
    """Whether it follows its object after this change; ClusterDecides where it may not be changed."""
    if author.source == _CLUSTER:
        return ippool_row.follows_cluster
    if (
        ippool_row.follows_cluster
        and ippool_row.gone_at is None
        and not is_written(ippool_row.cluster_id)
    ):
        raise errors.ClusterDecides(
            f"The IPPool {ippool_row.name} is what its object in {ippool_row.cluster} says: change it there, or have"
            " the cluster managed with the managed resource ippool-status."
        )
    return False


def is_written(cluster_id: int) -> bool:
    """Whether IPPools are written to the cluster."""
    connection = Connection.objects.filter(cluster=cluster_id).first()
    return connection is not None and connection.manages(ManagedResource.IPPOOL_STATUS)


def _announce(cluster_id: int, author: events.Author) -> None:
    if author.source != _CLUSTER:
        leases.nudge(cluster_id, patient=True)


def keep_conditions(ippool_row: IPPool) -> None:
    """Work out its conditions anew, and store them when they say something else."""
    macs, ips = conflicts.entry_duplicates(ippool_row, limit=ippool.MOST_NAMED)
    standing = ippool.IPPoolStatus(macs, ips, ippool_row.problems)
    conditions = ippool.conditions(standing, before=ippool_row.conditions, now=_now())
    if conditions != ippool_row.conditions:
        ippool_row.conditions = conditions
        IPPool.objects.filter(pk=ippool_row.pk).update(conditions=conditions)


def _now() -> str:
    moment: datetime = database.now().astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def associated_nads(
    ippool_rows: Sequence[IPPool], scope: namespaces.Scope = namespaces.EVERYTHING
) -> dict[int, list[dict[str, str]]]:
    """The NADs of the networks of some IPPools, `{"namespace", "name"}`, by the IPPool's id."""
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
    """The object as the register would have it, entries of one MAC together.

    `rows` are those entries that may be shown, all without a word.
    """
    shown = (Entry.objects.all() if rows is None else rows).filter(ippool=ippool_row)
    written = shown.order_by("mac", "id").values_list("mac", "ips")
    rendered = ippool.render(
        ippool_row.name, ippool_row.network.name, written.iterator(chunk_size=10_000)
    )
    if status:
        nads = associated_nads([ippool_row])[ippool_row.pk]
        rendered["status"] = {"conditions": ippool_row.conditions, "associated-nads": nads}
    return rendered


def rules(network: Network, *, lenient: bool = False) -> entries.Rules:
    """How entries of this network are read."""
    return entries.rules(network.subnets, lenient=lenient)


def problems_of(problems: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """As many problems of an object as are kept."""
    return [dict(problem) for problem in problems[: ippool.MOST_PROBLEMS]]
