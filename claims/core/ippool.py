"""The IPPool of the enhancement proposal (ippool.k8s.cni.cncf.io/v1alpha): its manifest and its conditions.

No project has this CRD; ours (deploy/crds) keeps the names of the proposal. A map cannot hold two equal
keys, so that duplicates in an object are MAC addresses that are equal after normalising; a text that
has a key twice is caught before a map is made of it (pools/platform/documents.py, entries.pairs).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from claims.core import entries, macs
from claims.core.entries import EntrySpec, Rules
from pools.core import errors, holders, object_reader

KIND = "IPPool"
GROUP = "ippool.k8s.cni.cncf.io"
API_VERSION = f"{GROUP}/v1alpha"
ENTRIES = ("spec", "entries")  # where a text may have a key twice
LARGEST = 1_400_000  # bytes of a manifest; etcd stores 1.5 MiB with what the server adds
MOST_PROBLEMS = 1000

SUCCESS = "Success"
MACS = "DuplicateMACAddresses"
IPS = "DuplicateIPAddresses"
UNUSABLE = "UnusableEntries"  # the reason of Success when entries of the object cannot be used
_LONGEST = 32_000  # characters of a message; metav1.Condition allows 32768
MOST_NAMED = 1000  # of each kind of duplicate; whoever asks for the conditions gives no more
_NAMED = 50  # values that a message names
_MACS_NAMED = 20  # MAC addresses of one duplicate address


@dataclass(frozen=True)
class ParsedIPPool:
    """An IPPool's object, its entries not yet judged: `(key, value)` as they are written."""

    name: str
    network_name: str
    entries: tuple[tuple[str, object], ...]

    def read(self, entry_rules: Rules) -> tuple[list[EntrySpec], list[dict[str, str]]]:
        """The entries that can be used, and `[{"mac", "code", "message"}]` of those that cannot."""
        return parse_entries(self.entries, entry_rules)


def parse_entries(
    written: Iterable[tuple[str, object]], entry_rules: Rules
) -> tuple[list[EntrySpec], list[dict[str, str]]]:
    """Of some entries of an object those that can be used, and the problems of the others."""
    specs: list[EntrySpec] = []
    problems: list[dict[str, str]] = []
    for mac, ips in written:
        try:
            specs.append(entries.parse_pair(mac, ips, entry_rules))
        except errors.InvalidInput as error:
            first = error.problems[0]
            problems.append(
                {"mac": errors.shown(mac), "code": first.code, "message": error.message[:500]}
            )
    return specs, problems


def parse(manifest: Mapping[str, object]) -> ParsedIPPool:
    """An IPPool's object, whatever it says more. Raises InvalidInput for its name, network-name
    and entries that are no map; single entries are judged by Written.read."""
    report = object_reader.ProblemReport(strict=False)
    body = object_reader.Fields(dict(manifest), "", report)
    name = body.section("metadata").parse("name", _name)
    spec = body.section("spec")
    network = spec.parse("network-name", _network_name)
    written = spec.section("entries")
    report.raise_any()
    return ParsedIPPool(name or "", network or "", tuple(entries.pairs(written.data)))


def parse_strict(manifest: Mapping[str, object]) -> ParsedIPPool:
    """What a person wrote: another kind, and any field that an IPPool has not, are refused, too."""
    report = object_reader.ProblemReport()
    body = object_reader.Fields(dict(manifest), "", report)
    body.only("apiVersion", "kind", "metadata", "spec", "status")
    if (manifest.get("apiVersion"), manifest.get("kind")) != (API_VERSION, KIND):
        message = f"an {KIND} of {API_VERSION} is expected"
        report.add("kind", "unsupported_kind", message, manifest.get("kind"))
    body.section("spec").only("network-name", "entries")
    with report.collecting():
        ippool = parse(manifest)
    report.raise_any()
    return ippool


def _name(value: object, path: str) -> str:
    return holders.parse_name(value, field=path)


def _network_name(value: object, path: str) -> str:
    return holders.parse_identifier(value, field=path)


def render(
    name: str,
    network_name: str,
    written: Iterable[tuple[str, Sequence[str]]],
    *,
    status: object_reader.Json | None = None,
) -> object_reader.Json:
    """The manifest; the addresses of entries with one MAC address stand together."""
    ips_by_mac: dict[str, list[str]] = {}
    for mac, ips in written:
        mac_ips = ips_by_mac.setdefault(mac, [])
        mac_ips += [ip for ip in ips if ip not in mac_ips]
    manifest: object_reader.Json = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"network-name": network_name, "entries": ips_by_mac},
    }
    return manifest | {"status": status} if status is not None else manifest


def too_large(manifest: object_reader.Json) -> bool:
    """Whether no API server could store it."""
    return len(json.dumps(manifest, separators=(",", ":"))) > LARGEST


def repeated_macs(written: Iterable[tuple[str, object]]) -> list[str]:
    """MAC addresses that several keys of an object name, in other spellings."""
    counts_by_mac: dict[str, int] = {}
    for key, _ in written:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        counts_by_mac[mac] = counts_by_mac.get(mac, 0) + 1
    return [mac for mac, count in counts_by_mac.items() if count > 1]


@dataclass(frozen=True)
class IPPoolStatus:
    """What the conditions tell of: MAC addresses and in how many entries they are; addresses and
    the MAC addresses that have them; and entries that cannot be used."""

    macs: Sequence[tuple[str, int]] = ()
    ips: Sequence[tuple[str, Sequence[str]]] = ()
    unusable: Sequence[Mapping[str, str]] = ()


def conditions(
    status: IPPoolStatus, *, before: Sequence[object_reader.Json] = (), now: str
) -> list[object_reader.Json]:
    """Success, DuplicateMACAddresses and DuplicateIPAddresses as metav1.Conditions.

    `now` is an RFC 3339 text; a condition whose status is as `before` keeps its time. Without
    observedGeneration, which is that of an object.
    """
    new_conditions = (_success(status), _macs(status.macs), _ips(status.ips))
    times = {
        condition.get("type"): condition["lastTransitionTime"]
        for condition in before
        for new_condition in new_conditions
        if (condition.get("type"), condition.get("status"))
        == (new_condition["type"], new_condition["status"])
        and condition.get("lastTransitionTime")
    }
    return [
        condition | {"lastTransitionTime": times.get(condition["type"], now)}
        for condition in new_conditions
    ]


def status_conditions(
    new_conditions: Sequence[object_reader.Json], generation: object, before: Sequence[object] = ()
) -> list[object_reader.Json]:
    """Conditions for the status of an object of this generation.

    Of a condition whose status an object has already the object's time counts: somebody may have
    restored the register.
    """
    times = {
        (condition.get("type"), condition.get("status")): condition["lastTransitionTime"]
        for condition in before
        if isinstance(condition, dict) and condition.get("lastTransitionTime")
    }
    extra = {"observedGeneration": generation} if isinstance(generation, int) else {}
    return [
        condition
        | extra
        | {
            "lastTransitionTime": times.get(
                (condition["type"], condition["status"]), condition["lastTransitionTime"]
            )
        }
        for condition in new_conditions
    ]


def _condition(kind: str, status: bool, reason: str, message: str) -> object_reader.Json:
    return {
        "type": kind,
        "status": "True" if status else "False",
        "reason": reason,
        "message": message[:_LONGEST],
    }


def _success(status: IPPoolStatus) -> object_reader.Json:
    messages = []
    if status.macs:
        messages += _shorten([f"Duplicate MAC {mac} found in entries" for mac, _ in status.macs])
    if status.ips:
        messages += _shorten([f"Duplicate IP {ip} found in entries" for ip, _ in status.ips])
    reason = "DuplicatesExist" if messages else UNUSABLE
    if status.unusable:
        count = len(status.unusable)
        messages.append(f"{count} {'entry' if count == 1 else 'entries'} cannot be used")
        messages += _shorten([f"{entry['mac']}: {entry['message']}" for entry in status.unusable])
    if messages:
        return _condition(SUCCESS, False, reason, "; ".join(messages))
    return _condition(SUCCESS, True, "NoDuplicates", "No duplicate MAC or IP addresses in entries")


def _macs(duplicate_macs: Sequence[tuple[str, int]]) -> object_reader.Json:
    if not duplicate_macs:
        message = "All MAC addresses are unique"
        return _condition(MACS, False, "NoMACDuplicates", message)
    messages = [f"MAC address {mac} appears {count} times" for mac, count in duplicate_macs]
    return _condition(MACS, True, "DuplicateMACFound", "; ".join(_shorten(messages)))


def _ips(duplicate_ips: Sequence[tuple[str, Sequence[str]]]) -> object_reader.Json:
    if not duplicate_ips:
        message = "All IP addresses are unique per MAC"
        return _condition(IPS, False, "NoIPDuplicates", message)
    messages = [
        f"IP address {ip} appears for MAC addresses {_join_names(names)}"
        for ip, names in duplicate_ips
    ]
    return _condition(IPS, True, "DuplicateIPFound", "; ".join(_shorten(messages)))


def _shorten(messages: Sequence[str]) -> list[str]:
    if len(messages) <= _NAMED:
        return list(messages)
    more = f"{len(messages) - _NAMED}" if len(messages) < MOST_NAMED else "many"
    return [*messages[:_NAMED], f"and {more} more"]


def _join_names(names: Sequence[str]) -> str:
    omitted_count = len(names) - _MACS_NAMED
    if omitted_count > 0:
        return f"{', '.join(names[:_MACS_NAMED])} and {omitted_count} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def associated_nads(nads: Iterable[tuple[str, str]]) -> list[object_reader.Json]:
    """Namespaces and names of the network's NADs, as the status lists them."""
    return [{"namespace": namespace, "name": name} for namespace, name in sorted(nads)]
