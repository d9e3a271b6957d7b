"""Duplicates of entries, claims and workloads, with every other occurrence of a MAC or an address.

claims/address_index/conflicts.py defines when two occurrences conflict. This module lists them for
stored rows, and for an entry that a user is typing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from psycopg import sql

from claims.access.namespaces import EVERYTHING, Scope
from claims.address_index import conflicts
from claims.address_index.block_sync import holder_name
from claims.core.networks import kept_addresses
from claims.core.networks.kept_addresses import KeptSpan
from claims.models import Entry, IPAMClaim, Network
from pools.core import errors
from pools.platform import database
from pools.sql import statements

MAC, IP = "mac", "ip"
_MAX_SHOWN = 20  # occurrences of one value


@dataclass(frozen=True)
class Occurrence:
    """Another occurrence of a MAC or an address.

    `type` is entry, ipamclaim, workload, vm_template, that of an own span of the network (`own_addresses`), block
    (the address is held in the network's pool by another holder), or `other` if the user may not see
    the occurrence. `name` is that of the IPPool, the claim, the workload, the span or the holder.
    """

    type: str
    id: int | None = None
    name: str = ""
    namespace: str = ""
    vm: str = ""
    mac: str = ""

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value not in (None, "")}

    @property
    def is_own(self) -> bool:
        """True if the network itself has the MAC or the address."""
        return self.type not in {"entry", "ipamclaim", "workload", "block", "other"}


@dataclass(frozen=True)
class Duplicate:
    """A MAC or an address with other occurrences; a `note` is shown to users but is not a conflict."""

    kind: str
    value: str
    occurrences: tuple[Occurrence, ...]
    note: bool = False

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "kind": self.kind,
            "value": self.value,
            "with": [occurrence.as_json() for occurrence in self.occurrences],
        }
        return fields | {"note": True} if self.note else fields


_TYPE_NAMES = {"ipamclaim": "IPAMClaim", "vm_template": "template of the VM"}


def describe(duplicate: Duplicate) -> str:
    """Return a sentence about a duplicate, which names nobody whom the user may not see."""
    names = [
        f"the {_TYPE_NAMES.get(occurrence.type, occurrence.type.replace('_', ' '))} "
        + "/".join(filter(None, (occurrence.namespace, occurrence.vm or occurrence.name)))
        for occurrence in duplicate.occurrences
        if occurrence.type != "other"
    ]
    if len(names) < len(duplicate.occurrences):
        names.append("another owner")
    kind = "The MAC address" if duplicate.kind == MAC else "The address"
    return f"{kind} {duplicate.value} is also used by {', '.join(names)}."


def of_entries(entries: Sequence[Entry], scope: Scope = EVERYTHING) -> dict[int, list[Duplicate]]:
    """Return the duplicates of each entry, by entry id; [] for an entry without duplicates."""
    return _duplicates_by_owner("entry", [entry.pk for entry in entries], scope)


def of_workloads(ids: Sequence[int], scope: Scope = EVERYTHING) -> dict[int, list[Duplicate]]:
    """Return the duplicates of workloads, by the workload's id."""
    return _duplicates_by_owner("workload", ids, scope)


def of_claims(claims: Sequence[IPAMClaim], scope: Scope = EVERYTHING) -> dict[int, list[Duplicate]]:
    return _duplicates_by_owner("claim", [claim.pk for claim in claims], scope)


def of_candidate(
    network: Network,
    *,
    mac: str | None,
    addresses: Collection[str],
    vm: str = "",
    namespace: str = "",
    entry_id: int | None = None,
    claim_id: int | None = None,
    scope: Scope = EVERYTHING,
) -> list[Duplicate]:
    """Return the duplicates that an entry or a claim with these values would have.

    `addresses` have no prefix length. `entry_id` is the entry that is being changed, which is no
    duplicate of itself; `claim_id` is the claim that is being changed, 0 for a new one.
    """
    unique_addresses = list(dict.fromkeys(addresses))
    values = {
        "owner": "candidate",
        "ids": "",
        "network": network.pk,
        "entry": entry_id or 0,
        "claim": claim_id,
        "mac": mac,
        "vm": vm,
        "namespace": namespace,
        "addresses": database.join_values(unique_addresses),
    }
    collector = _DuplicateCollector(scope)
    collector.add_rows(database.rows(_OF_OWNERS, values, prepare=False))
    _add_own_mac(collector, 0, network, mac)
    for text in unique_addresses:
        _add_own(collector, 0, network, text)
        if list(addresses).count(text) > 1:
            ippool_name = getattr(getattr(network, "ippool", None), "name", "")
            occurrence = Occurrence("entry", entry_id, ippool_name, namespace, vm, mac or "")
            collector.add_occurrence(0, IP, text, occurrence)
    name = holder_name(namespace, vm, mac)
    _add_holders(collector, [(0, network.pk, text, name) for text in unique_addresses])
    return collector.owner_duplicates(0)


def require_free(
    network: Network, ips: Iterable[str], *, reserved: str, scope: Scope, **candidate: Any
) -> None:
    """Raise ReservedAddress or AlreadyAllocated if a value is not free, without naming who has it.

    `candidate` has the other values of `of_candidate`. Conflicts with what the scope shows are allowed.
    """
    addresses = [text.partition("/")[0] for text in ips]
    for duplicate in of_candidate(network, addresses=addresses, scope=scope, **candidate):
        if duplicate.note:
            continue
        if any(occurrence.is_own for occurrence in duplicate.occurrences):
            raise errors.ReservedAddress(f"{duplicate.value} is reserved {reserved}.")
        if any(occurrence.type == "other" for occurrence in duplicate.occurrences):
            raise errors.AlreadyAllocated(f"{duplicate.value} is already in use.")


def _duplicates_by_owner(
    column: str, ids: Sequence[int], scope: Scope
) -> dict[int, list[Duplicate]]:
    if not ids:
        return {}
    collector = _DuplicateCollector(scope)
    values = {"ids": database.join_values(ids)}
    no_candidate = dict.fromkeys(
        ("network", "entry", "claim", "mac", "namespace", "vm", "addresses")
    )
    owners = {"owner": column, **values, **no_candidate}
    collector.add_rows(database.rows(_OF_OWNERS, owners, prepare=False))
    statement = _ADDRESSES.format(owner=sql.Identifier(f"{column}_id"))
    rows = database.rows(statement, values, prepare=False)
    networks = Network.objects.in_bulk({network for _, network, *_ in rows})
    for owner, network_id, address, mac in rows:
        _add_own_mac(collector, owner, networks[network_id], mac)
        if address:
            _add_own(collector, owner, networks[network_id], address)
    _add_holders(
        collector, [(owner, network, text, None) for owner, network, text, _ in rows if text]
    )
    return {owner: collector.owner_duplicates(owner) for owner in ids}


class _DuplicateCollector:
    """Collects duplicates by owner; an occurrence that the user may not see becomes `other`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._occurrences: dict[int, dict[tuple[str, str, bool], list[Occurrence]]] = {}
        self._own_spans: dict[int, list[KeptSpan]] = {}

    def add_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for owner, kind, value, type_, row_id, name, cluster_id, namespace, vm, mac in rows:
            visible = self._scope.has(cluster_id, namespace)
            occurrence = Occurrence(type_, row_id, name, namespace, vm, str(mac or ""))
            self.add_occurrence(owner, kind, value, occurrence if visible else Occurrence("other"))

    def add_occurrence(
        self, owner: int, kind: str, value: str, occurrence: Occurrence, *, note: bool = False
    ) -> None:
        occurrences = self._occurrences.setdefault(owner, {}).setdefault((kind, value, note), [])
        if occurrence not in occurrences:
            occurrences.append(occurrence)

    @property
    def everything(self) -> bool:
        return self._scope.everything

    def own_spans(self, network: Network) -> list[KeptSpan]:
        if network.pk not in self._own_spans:
            self._own_spans[network.pk] = conflicts.find_own_spans(network)
        return self._own_spans[network.pk]

    def owner_duplicates(self, owner: int) -> list[Duplicate]:
        occurrences_by_value = self._occurrences.get(owner, {})
        return [
            Duplicate(kind, value, tuple(occurrences[:_MAX_SHOWN]), note)
            for (kind, value, note), occurrences in sorted(
                occurrences_by_value.items(),
                key=lambda pair: (pair[0][2], pair[0][0] != MAC, pair[0][1]),
            )
        ]


def _add_own(collector: _DuplicateCollector, owner: int, network: Network, text: str) -> None:
    address = ip_address(text)
    for own_span in collector.own_spans(network):
        if own_span.has(address):
            name = (
                own_span.name
                if collector.everything or own_span.type != kept_addresses.RESERVED_RANGE
                else ""
            )
            collector.add_occurrence(
                owner, IP, text, Occurrence(own_span.type, name=name), note=own_span.is_note
            )


def _add_own_mac(
    collector: _DuplicateCollector, owner: int, network: Network, mac: str | None
) -> None:
    if mac and (kept_span := kept_addresses.kept_macs(network).get(mac)):
        collector.add_occurrence(owner, MAC, mac, Occurrence(kept_span.type, name=kept_span.name))


def _add_holders(
    collector: _DuplicateCollector,
    address_rows: Sequence[tuple[int, int, str, tuple[str, str] | None]],
) -> None:
    """Add blocks of the pool with a holder that no entry, claim or workload explains."""
    if not address_rows:
        return
    values = {
        "networks": database.join_values(network for _, network, _, _ in address_rows),
        "addresses": database.join_values(text for _, _, text, _ in address_rows),
    }
    for number, block, kind, holder in database.rows(_HOLDERS, values, prepare=False):
        owner, _, text, name = address_rows[number - 1]
        if (kind, holder) != name:
            occurrence = Occurrence("block", block, f"{kind} {holder}")
            collector.add_occurrence(
                owner, IP, text, occurrence if collector.everything else Occurrence("other")
            )


_OF_OWNERS = statements.read("claims/duplicates_of_owners")
_ADDRESSES = sql.SQL(
    """
    SELECT {owner}, network_id, host(address), mac::text FROM claims_indexentry
    WHERE {owner} = ANY(string_to_array(%(ids)s, ',')::bigint[])
    """
)
_HOLDERS = statements.read("claims/holders_of_duplicates")
