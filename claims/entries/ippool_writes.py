"""What is written of IPPools: the register's own entries, and the status of all."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from claims.core import ippool, resources
from claims.entries import ippool_sync, ippools
from claims.models import IPPool
from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile.handler import MANAGER, STATUS_MANAGER, Found, Pass, Write
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import Structure
from pools.models import ObservedObject
from pools.models.observed import Severity

KIND = ippool.KIND
STRUCTURE = Structure(lists={("status", "conditions"): ("type",)})
_FIRST = 20  # MAC addresses in a message


def ours(manifest: Manifest) -> bool:
    """Whether the object has fields that the register wrote."""
    return any(owner.manager == MANAGER for owner in managed_fields.parse(manifest))


@dataclass(frozen=True)
class Pair:
    """An IPPool and its object (`row`, without its manifest), which may not say the same.

    `nads` are those of its network.
    """

    ippool: IPPool
    row: ObservedObject | None
    nads: Sequence[dict[str, str]]

    @property
    def agreement(self) -> str:
        """What `IPPool.agreed` is when they say the same; the network decides that, too."""
        one = self.ippool
        known = json.dumps([one.network.subnets, self.nads, one.conditions], sort_keys=True)
        digest = hashlib.sha256(known.encode()).hexdigest()[:16]
        row = f"{self.row.uid} {self.row.resource_version}" if self.row else ""
        return f"{row} {one.version} {digest}"


def different(pass_: Pass) -> list[Pair]:
    """IPPools that may not agree with their object, or have none."""
    rows = ObservedObject.objects.filter(cluster=pass_.cluster, kind=KIND, missed_at=None)
    objects = {row.name: row for row in rows.defer("manifest")}
    ippools_ = IPPool.objects.filter(cluster=pass_.cluster).select_related("network")
    found = list(ippools_.defer("problems").order_by("name"))
    nads = ippools.associated_nads(found)
    pairs = [Pair(one, objects.get(one.name), nads[one.pk]) for one in found]
    return [pair for pair in pairs if pair.ippool.agreed != pair.agreement]


def manifest_of(row: ObservedObject) -> Manifest:
    """The object, which `different` leaves in the database."""
    found: Manifest = ObservedObject.objects.values_list("manifest", flat=True).get(pk=row.pk)
    return found


def agree(pair: Pair) -> None:
    """Remember that they say the same. Stands in a transaction of the pass."""
    version = IPPool.objects.filter(pk=pair.ippool.pk, version=pair.ippool.version)
    version.update(agreed=pair.agreement)


def writes(pass_: Pass, notes: list[Found]) -> Iterator[Write]:
    """Spec and status of what does not agree; what turns out to be well agrees from now on."""
    for pair in different(pass_):
        one, row = pair.ippool, pair.row
        if one.follows_cluster if row is None else row.problem_code:
            continue  # its object is gone, or is of no use
        manifest = None if row is None else manifest_of(row)
        wanted = [*_spec(one, notes), _status(pair)]
        due = wanted if manifest is None else [each for each in wanted if _is_due(each, manifest)]
        more = [] if manifest is None or one.follows_cluster else [*_more(one, manifest)]
        notes += more
        yield from due
        if not (due or more):
            with pass_.holding():
                agree(pair)


def _is_due(write: Write, manifest: Manifest) -> bool:
    made = write.make(manifest)
    manager = "" if write.subresource else write.manager
    found = made and differences.find(made, manifest, structure=STRUCTURE, manager=manager)
    return bool(found)


def _spec(one: IPPool, notes: list[Found]) -> Iterator[Write]:
    if one.follows_cluster:
        return
    wanted = ippools.manifest(one, status=False)
    if ippool.too_large(wanted):
        message = (
            f"The IPPool {one.name} is not written: with {len(wanted['spec']['entries'])} MAC"
            " addresses it is larger than what API servers store."
        )
        notes.append(Found("ippool_too_large", one.name, message, Severity.ERROR))
        return
    make = functools.partial(_written, wanted=wanted)
    yield Write(resources.IPPOOL, one.name, make, structure=STRUCTURE)


def _written(current: Manifest | None, wanted: Manifest) -> Manifest:
    """In the words of the object, where these say the same."""
    there = (current or {}).get("spec", {}).get("entries") or {}
    keys = ippool_sync.keys_of(there)
    found = {}
    for mac, ips in wanted["spec"]["entries"].items():
        key = keys.get(mac, mac)
        said = there.get(key)
        found[key] = said if said != ips and ippool_sync.same_ips(said, ips) else ips
    spec = {"network-name": wanted["spec"]["network-name"]}
    # An empty object would not be kept: an API server makes null of it when the last entry goes.
    return wanted | {"spec": spec | ({"entries": found} if found else {})}


def _status(pair: Pair) -> Write:
    said, name = pair.ippool.conditions, pair.ippool.name
    make = functools.partial(_told, name=name, said=said, nads=pair.nads)
    return Write(
        resources.IPPOOL,
        name,
        make,
        subresource="status",
        manager=STATUS_MANAGER,
        structure=STRUCTURE,
    )


def _told(
    current: Manifest | None, name: str, said: Sequence[dict[str, Any]], nads: Sequence[Any]
) -> Manifest | None:
    if current is None:
        return None  # there is nothing yet that could have a status
    there = (current.get("status") or {}).get("conditions") or ()
    generation = current["metadata"].get("generation")
    return {
        "apiVersion": ippool.API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "status": {
            "conditions": ippool.observed(said, generation, there),
            "associated-nads": list(nads),
        },
    }


def _more(one: IPPool, manifest: Manifest) -> Iterator[Found]:
    """MAC addresses that others have in the object, and the register has not."""
    there = (manifest.get("spec") or {}).get("entries") or {}
    known = set(one.entries.values_list("mac", flat=True))
    owners = managed_fields.parse(manifest)
    more = sorted(mac for mac in ippool_sync.keys_of(there) if mac not in known)
    theirs = [
        mac
        for mac in more
        if not any(
            owner.manager == MANAGER and owner.owns(("spec", "entries", mac)) for owner in owners
        )
    ]
    if theirs:
        named = ", ".join(theirs[:_FIRST])
        left = f" and {len(theirs) - _FIRST} more" if len(theirs) > _FIRST else ""
        message = (
            f"The object {one.name} has entries that the register has not: {named}{left}. Others own"
            " them; adopt the object, or remove them there."
        )
        details = {"macs": theirs[:1000], "count": len(theirs)}
        yield Found("more_in_cluster", one.name, message, details=details)
