"""Duplicates of entries, claims and workloads, with every other occurrence of a MAC or an address.

claims/address_index/conflicts.py defines when two occurrences conflict. This module lists them for
stored rows, and for an entry that a user is typing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import chain
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
    the occurrence. `name` is that of the IPPool, the claim, the workload, the span or the holder; `description`,
    which REST does not answer, is what a span is, or on which other network of the segment a block is.
    """

    type: str
    id: int | None = None
    name: str = ""
    namespace: str = ""
    vm: str = ""
    mac: str = ""
    description: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Any]:
        values = vars(self).items()
        return {
            key: value for key, value in values if value not in (None, "") and key != "description"
        }

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


@dataclass(frozen=True)
class Candidate:
    """The values of an entry or a claim that is not stored yet, or changes.

    `addresses` have no prefix length. `entry_id` is the entry that is being changed, which is no duplicate of itself, 0
    for a new one, None for no entry; `claim_id` likewise is that of a claim.
    """

    network: Network
    mac: str | None
    addresses: Sequence[str]
    vm: str = ""
    namespace: str = ""
    entry_id: int | None = 0
    claim_id: int | None = None


def of_candidate(candidate: Candidate, scope: Scope = EVERYTHING) -> list[Duplicate]:
    """Return the duplicates that an entry or a claim with these values would have."""
    return of_candidates([candidate], scope)[0]


_FEW = 200  # candidates up to which the planner chooses the join method


def of_candidates(
    candidates: Sequence[Candidate], scope: Scope = EVERYTHING
) -> list[list[Duplicate]]:
    """Return the duplicates of each candidate; candidates are not compared with each other."""
    unique_addresses = [list(dict.fromkeys(candidate.addresses)) for candidate in candidates]
    values: dict[str, Any] = {
        "owner": "candidate",
        "ids": "",
        "networks": [candidate.network.pk for candidate in candidates],
        "entries": [candidate.entry_id for candidate in candidates],
        "claims": [candidate.claim_id for candidate in candidates],
        "macs": [candidate.mac for candidate in candidates],
        "namespaces": [candidate.namespace for candidate in candidates],
        "vms": [candidate.vm for candidate in candidates],
        "addresses": [",".join(addresses) for addresses in unique_addresses],
    }
    collector = _DuplicateCollector(scope)
    with database.hash_joins_only(many=len(candidates) > _FEW):
        collector.add_rows(database.rows(_OF_OWNERS, values, prepare=False))
    address_rows: list[tuple[int, int, str, tuple[str, str] | None]] = []
    for number, (candidate, addresses) in enumerate(zip(candidates, unique_addresses, strict=True)):
        network, namespace, vm = candidate.network, candidate.namespace, candidate.vm
        collector.add_own_mac(number, network, candidate.mac)
        name = holder_name(namespace, vm, candidate.mac)
        for text in addresses:
            collector.add_own(number, network, text)
            address_rows.append((number, network.pk, text, name))
            if candidate.addresses.count(text) > 1:
                ippool_name = getattr(getattr(network, "ippool", None), "name", "")
                occurrence = Occurrence(
                    "entry",
                    candidate.entry_id or None,
                    ippool_name,
                    namespace,
                    vm,
                    candidate.mac or "",
                )
                collector.add_occurrence(number, IP, text, occurrence)
    _add_holders(collector, address_rows)
    return [collector.owner_duplicates(number) for number in range(len(candidates))]


def require_free(*candidates: Candidate, scope: Scope, reserved: str) -> None:
    """Raise ReservedAddress or AlreadyAllocated if a value is not free, without naming who has it.

    Conflicts with what the scope shows are allowed.
    """
    for duplicate in chain.from_iterable(of_candidates(candidates, scope)):
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
    columns = ("networks", "entries", "claims", "macs", "namespaces", "vms", "addresses")
    no_candidate: dict[str, list[object]] = {name: [] for name in columns}
    owners = {"owner": column, **values, **no_candidate}
    collector.add_rows(database.rows(_OF_OWNERS, owners, prepare=False))
    statement = _ADDRESSES.format(owner=sql.Identifier(f"{column}_id"))
    rows = database.rows(statement, values, prepare=False)
    networks = Network.objects.in_bulk({network for _, network, *_ in rows})
    for owner, network_id, address, mac in rows:
        collector.add_own_mac(owner, networks[network_id], mac)
        if address:
            collector.add_own(owner, networks[network_id], address)
    _add_holders(
        collector, [(owner, network, text, None) for owner, network, text, _ in rows if text]
    )
    return {owner: collector.owner_duplicates(owner) for owner in ids}


class _DuplicateCollector:
    """Collects duplicates by owner; an occurrence that the user may not see becomes `other`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._occurrences: dict[int, dict[tuple[str, str, bool], list[Occurrence]]] = {}
        self._own_spans: dict[int, _OwnSpans] = {}
        self._own_macs: dict[int, dict[str, KeptSpan]] = {}

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

    def add_own(self, owner: int, network: Network, text: str) -> None:
        """Add the spans of the network itself that have an address."""
        if network.pk not in self._own_spans:
            self._own_spans[network.pk] = _OwnSpans(conflicts.find_own_spans(network))
        for own_span in self._own_spans[network.pk].of_address(text):
            shown = self.everything or own_span.type != kept_addresses.RESERVED_RANGE
            name = own_span.name if shown else ""
            description = own_span.description
            occurrence = Occurrence(own_span.type, name=name, description=description)
            self.add_occurrence(owner, IP, text, occurrence, note=own_span.is_note)

    def add_own_mac(self, owner: int, network: Network, mac: str | None) -> None:
        if network.pk not in self._own_macs:
            self._own_macs[network.pk] = kept_addresses.kept_macs(network)
        if mac and (kept_span := self._own_macs[network.pk].get(mac)):
            occurrence = Occurrence(
                kept_span.type, name=kept_span.name, description=f"the network's {kept_span.port}"
            )
            self.add_occurrence(owner, MAC, mac, occurrence)

    @property
    def everything(self) -> bool:
        return self._scope.everything

    def owner_duplicates(self, owner: int) -> list[Duplicate]:
        occurrences_by_value = self._occurrences.get(owner, {})
        return [
            Duplicate(kind, value, tuple(occurrences[:_MAX_SHOWN]), note)
            for (kind, value, note), occurrences in sorted(
                occurrences_by_value.items(),
                key=lambda pair: (pair[0][2], pair[0][0] != MAC, pair[0][1]),
            )
        ]


class _OwnSpans:
    """The spans of a network: those of one address, which may be thousands, by it, and the wider ones."""

    def __init__(self, spans: Iterable[KeptSpan]) -> None:
        self._of_host: dict[str, list[KeptSpan]] = {}
        self._wide: list[tuple[int, int, int, KeptSpan]] = []
        for own_span in spans:
            first, last = own_span.span.first, own_span.span.last
            if first == last:
                self._of_host.setdefault(str(first), []).append(own_span)
            else:
                self._wide.append((first.version, int(first), int(last), own_span))

    def of_address(self, text: str) -> list[KeptSpan]:
        address = ip_address(text)
        version, value = address.version, int(address)
        return self._of_host.get(text, []) + [
            own_span
            for family, first, last, own_span in self._wide
            if family == version and first <= value <= last
        ]


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
    for number, block, kind, holder, network_name in database.rows(_HOLDERS, values, prepare=False):
        owner, _, text, name = address_rows[number - 1]
        if (kind, holder) != name:
            occurrence = Occurrence("block", block, f"{kind} {holder}", description=network_name)
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
