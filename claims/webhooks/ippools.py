"""What may become of a cluster's IPPools, as the register sees it.

Refused are a second IPPool of a logical network and entries that cannot be used; duplicates are warned
of, because the register takes them too. Judged is what a request changes, never what was there before,
so that an object which is wrong already can be labelled, repaired and deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from claims.address_index import duplicates
from claims.core import entries as core
from claims.core import ippool, resources
from claims.core.entries import EntrySpec
from claims.entries import ippools
from claims.models import Entry, IPPool, Network
from pools.core import errors, object_reader
from pools.models import AddressSpace
from pools.webhooks import reviews, views
from pools.webhooks.reviews import Review, Verdict

_TOLD = 20  # entries whose problems or duplicates are told


class ValidateIPPools(views.Webhook):
    group = resources.IPPOOL.group
    plurals = (resources.IPPOOL.plural,)

    def judge(self, review: Review, space: AddressSpace) -> Verdict:
        return judge(review, space.cluster_id)


def judge(review: Review, cluster_id: int) -> Verdict:
    """The verdict over one request. Reads only."""
    verdict = Verdict()
    if review.operation == reviews.DELETE:
        _judge_removal(review, cluster_id, verdict)
    elif review.old is None or review.old.get("spec") != (review.new or {}).get("spec"):
        try:
            said = ippool.parse(review.new or {})
        except errors.InvalidInput as error:
            verdict.refuse(error)
        else:
            _judge_change(said, review, cluster_id, verdict)
    return verdict


def _judge_removal(review: Review, cluster_id: int, verdict: Verdict) -> None:
    known = IPPool.objects.filter(cluster=cluster_id, name=review.name).first()
    count = Entry.objects.filter(ippool=known).count() if known else 0
    if count:
        entries = "one entry keeps its" if count == 1 else f"{count} entries keep their"
        verdict.warn(f"{entries} addresses in the register until its IPPool is deleted, too")


def _judge_change(said: ippool.Written, review: Review, cluster_id: int, verdict: Verdict) -> None:
    before = _spec(review.old)
    network = Network.objects.filter(cluster=cluster_id, name=said.network_name).first()
    if before.get("network-name") != said.network_name:
        _judge_network(said, network, cluster_id, verdict)
    if network is None:
        network = Network(cluster_id=cluster_id, name=said.network_name)
    moved = before.get("network-name") not in (None, said.network_name)
    there = {} if moved else _entries(before)
    fresh = [(key, ips) for key, ips in said.entries if there.get(key) != ips]
    known = ippools.rules(network)
    usable = _judge_entries(fresh, known, verdict)
    for at, message in _within(said, usable):
        verdict.warn(message, at)
    for at, message in _elsewhere(network, usable[:_TOLD]):
        verdict.warn(message, at)


def _spec(manifest: object_reader.Json | None) -> Mapping[str, object]:
    found = (manifest or {}).get("spec")
    return found if isinstance(found, dict) else {}


def _entries(spec: Mapping[str, object]) -> Mapping[str, object]:
    found = spec.get("entries")
    return found if isinstance(found, dict) else {}


def _judge_network(
    said: ippool.Written, network: Network | None, cluster_id: int, verdict: Verdict
) -> None:
    if network is None or not network.kind:
        verdict.warn(
            f"the register knows no logical network {said.network_name} in this cluster",
            "spec.network-name",
        )
    # One whose object is gone, or was never there, yields to a new object if it only follows.
    gone = Q(follows_cluster=True, uid="")
    others = IPPool.objects.filter(cluster=cluster_id, network__name=said.network_name)
    other = others.exclude(name=said.name).exclude(gone).first()
    if other is not None:
        message = f"the network {said.network_name} has an IPPool already: {other.name}"
        problem = errors.Problem("spec.network-name", "network_has_ippool", message)
        verdict.refuse(errors.AlreadyExists(message, problems=[problem]))


@dataclass(frozen=True)
class _Usable:
    """An entry of the object that the request brings, and where it stands."""

    at: str
    spec: EntrySpec


def _judge_entries(
    fresh: Sequence[tuple[str, object]], known: core.Rules, verdict: Verdict
) -> list[_Usable]:
    found = []
    problems: list[errors.Problem] = []
    for key, ips in fresh:
        at = f"spec.entries.{errors.shown(key)}"
        try:
            spec = core.parse_pair(key, ips, known, field=at)
        except errors.InvalidInput as error:
            problems += error.problems
            continue
        found.append(_Usable(at, spec))
        for warning in core.warnings(spec.ips, field=at):
            verdict.warn(warning.message, at)
    if problems:
        verdict.refuse(errors.InvalidInput.all(problems))
    return found


def _within(said: ippool.Written, usable: Sequence[_Usable]) -> Iterator[tuple[str, str]]:
    """Duplicates inside the object, of what the request brings."""
    repeated = set(ippool.repeated(said.entries))
    holders: dict[str, set[str]] = {}
    for key, ips in said.entries if usable else ():
        for ip in ips if isinstance(ips, list) else ():
            if isinstance(ip, str):
                holders.setdefault(ip.partition("/")[0].lower(), set()).add(key)
    for one in usable:
        if one.spec.mac in repeated:
            yield one.at, f"the MAC address {one.spec.mac} is there in several spellings"
        for ip in one.spec.ips:
            address = ip.partition("/")[0]
            if len(holders.get(address, ())) > 1:
                yield one.at, f"{address} is the address of several MAC addresses"


def _elsewhere(network: Network, usable: Sequence[_Usable]) -> Iterator[tuple[str, str]]:
    """Duplicates of IPAMClaims, of what runs, and of what the network uses itself."""
    if network.pk is None:
        return
    macs = [one.spec.mac for one in usable]
    own = dict(Entry.objects.filter(ippool__network=network, mac__in=macs).values_list("mac", "pk"))
    for one in usable:
        found = duplicates.of_candidate(
            network,
            mac=one.spec.mac,
            addresses=[ip.partition("/")[0] for ip in one.spec.ips],
            entry_id=own.get(one.spec.mac),
        )
        for duplicate in found:
            places = [where for where in duplicate.places if where.type != "entry"]
            if places:
                named = ", ".join(_place(where) for where in places)
                verb = "lies in" if duplicate.note else "is also that of"
                yield one.at, f"{duplicate.value} {verb} {named}"


def _place(where: duplicates.Where) -> str:
    name = f"{where.namespace}/{where.name}" if where.namespace else where.name
    return f"the {where.type.replace('_', ' ')} {name}".strip()
