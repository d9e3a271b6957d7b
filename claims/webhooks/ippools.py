"""Validating webhook for IPPools.

It refuses a second IPPool of a logical network and unusable entries. Duplicates are warnings, because the
register accepts them too. Only what a request changes is validated, so that an object that is already
invalid can still be labelled, repaired and deleted.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from django.db.models import Q

from claims.address_index import duplicates
from claims.core import entries as core, ippool, resources
from claims.core.entries import EntrySpec
from claims.entries import ippools
from claims.models import Entry, IPPool, Network
from pools.core import errors, object_reader
from pools.models import AddressSpace
from pools.webhooks import reviews, views
from pools.webhooks.reviews import Review, ReviewResult

_MOST_CHECKED = 20  # entries that are checked for duplicates elsewhere


class ValidateIPPools(views.Webhook):
    group = resources.IPPOOL.group
    plurals = (resources.IPPOOL.plural,)

    def evaluate(self, review: Review, space: AddressSpace) -> ReviewResult:
        return validate(review, space.cluster_id)


def validate(review: Review, cluster_id: int) -> ReviewResult:
    """Return the result of one admission review. Reads only."""
    result = ReviewResult()
    if review.operation == reviews.DELETE:
        _validate_removal(review, cluster_id, result)
    elif review.old is None or review.old.get("spec") != (review.new or {}).get("spec"):
        try:
            ippool_spec = ippool.parse(review.new or {})
        except errors.InvalidInput as error:
            result.refuse(error)
        else:
            _validate_change(ippool_spec, review, cluster_id, result)
    return result


def _validate_removal(review: Review, cluster_id: int, result: ReviewResult) -> None:
    existing_ippool = IPPool.objects.filter(cluster=cluster_id, name=review.name).first()
    count = Entry.objects.filter(ippool=existing_ippool).count() if existing_ippool else 0
    if count:
        entries = "one entry keeps its" if count == 1 else f"{count} entries keep their"
        result.warn(f"{entries} addresses until the IPPool is deleted in the register, too")


def _validate_change(
    ippool_spec: ippool.ParsedIPPool, review: Review, cluster_id: int, result: ReviewResult
) -> None:
    before = _spec(review.old)
    network = Network.objects.filter(cluster=cluster_id, name=ippool_spec.network_name).first()
    if before.get("network-name") != ippool_spec.network_name:
        _validate_network(ippool_spec, network, cluster_id, result)
    if network is None:
        network = Network(cluster_id=cluster_id, name=ippool_spec.network_name)
    has_moved = before.get("network-name") not in (None, ippool_spec.network_name)
    existing_entries = {} if has_moved else _entries(before)
    new_entries = [
        (key, ips) for key, ips in ippool_spec.entries if existing_entries.get(key) != ips
    ]
    rules = ippools.rules(network, observed=True)
    usable = _validate_entries(new_entries, rules, result)
    for path, message in _duplicates_within(ippool_spec, usable):
        result.warn(message, path)
    for path, message in _duplicates_elsewhere(network, usable[:_MOST_CHECKED]):
        result.warn(message, path)


def _spec(manifest: object_reader.Json | None) -> Mapping[str, object]:
    spec = (manifest or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _entries(spec: Mapping[str, object]) -> Mapping[str, object]:
    entries = spec.get("entries")
    return entries if isinstance(entries, dict) else {}


def _validate_network(
    ippool_spec: ippool.ParsedIPPool,
    network: Network | None,
    cluster_id: int,
    result: ReviewResult,
) -> None:
    if network is None or not network.kind:
        result.warn(
            f"this cluster has no logical network {ippool_spec.network_name} in the register",
            "spec.network-name",
        )
    # An IPPool without an object in the cluster is replaced by a new object if it follows the cluster.
    is_replaceable = Q(follows_cluster=True, uid="")
    ippools_of_network = IPPool.objects.filter(
        cluster=cluster_id, network__name=ippool_spec.network_name
    )
    other_ippool = ippools_of_network.exclude(name=ippool_spec.name).exclude(is_replaceable).first()
    if other_ippool is not None:
        message = (
            f"the network {ippool_spec.network_name} already has an IPPool: {other_ippool.name}"
        )
        problem = errors.FieldProblem("spec.network-name", "network_has_ippool", message)
        result.refuse(errors.AlreadyExists(message, problems=[problem]))


@dataclass(frozen=True)
class _Usable:
    """A valid entry that the request adds or changes, and its path in the object."""

    path: str
    spec: EntrySpec


def _validate_entries(
    new_entries: Sequence[tuple[str, object]], rules: core.Rules, result: ReviewResult
) -> list[_Usable]:
    usable_entries = []
    problems: list[errors.FieldProblem] = []
    for key, ips in new_entries:
        path = f"spec.entries.{errors.display_value(key)}"
        try:
            spec = core.parse_pair(key, ips, rules, field=path)
        except errors.InvalidInput as error:
            problems += error.problems
            continue
        usable_entries.append(_Usable(path, spec))
        for warning in core.warnings(spec.ips, field=path):
            result.warn(warning.message, path)
    if problems:
        result.refuse(errors.InvalidInput.all(problems))
    return usable_entries


def _duplicates_within(
    ippool_spec: ippool.ParsedIPPool, usable: Sequence[_Usable]
) -> Iterator[tuple[str, str]]:
    """Yield path and message of the duplicates within the object."""
    repeated_macs = set(ippool.repeated_macs(ippool_spec.entries))
    macs_by_address: dict[str, set[str]] = {}
    for key, ips in ippool_spec.entries if usable else ():
        for ip in ips if isinstance(ips, list) else ():
            with contextlib.suppress(ValueError):
                host = str(ip_address(str(ip).partition("/")[0]))
                macs_by_address.setdefault(host, set()).add(key)
    for entry in usable:
        if entry.spec.mac in repeated_macs:
            yield entry.path, f"the MAC address {entry.spec.mac} occurs in several notations"
        for ip in entry.spec.ips:
            address = ip.partition("/")[0]
            if len(macs_by_address.get(address, ())) > 1:
                yield entry.path, f"{address} is assigned to several MAC addresses"


def _duplicates_elsewhere(network: Network, usable: Sequence[_Usable]) -> Iterator[tuple[str, str]]:
    """Yield path and message of duplicates with IPAMClaims, workloads and the network's own addresses."""
    if network.pk is None:
        return
    macs = [entry.spec.mac for entry in usable]
    entry_ids = dict(
        Entry.objects.filter(ippool__network=network, mac__in=macs).values_list("mac", "pk")
    )
    candidates = [
        duplicates.Candidate(
            network,
            entry.spec.mac,
            [ip.partition("/")[0] for ip in entry.spec.ips],
            entry_id=entry_ids.get(entry.spec.mac, 0),
        )
        for entry in usable
    ]
    for entry, entry_duplicates in zip(usable, duplicates.of_candidates(candidates), strict=True):
        for duplicate in entry_duplicates:
            occurrences = [
                occurrence for occurrence in duplicate.occurrences if occurrence.type != "entry"
            ]
            if occurrences:
                names = ", ".join(dict.fromkeys(map(_occurrence_name, occurrences)))
                verb = "is in" if duplicate.note else "is also used by"
                yield entry.path, f"{duplicate.value} {verb} {names}"


_UNNAMED = {
    "ipamclaim": "an IPAMClaim",
    "workload": "a running VM or pod",
    "vm_template": "a VM that may be stopped",
    "block": "another holder",
    "reserved_range": "a reserved range",  # its reason may name anybody
}


def _occurrence_name(occurrence: duplicates.Occurrence) -> str:
    """Return what uses a value, without names of namespaces: an IPPool has none, so its author may see none."""
    unnamed = _UNNAMED.get(occurrence.type)
    return unnamed or f"the {occurrence.type.replace('_', ' ')} {occurrence.name}".strip()
