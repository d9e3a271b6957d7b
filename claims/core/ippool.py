"""The IPPool of the enhancement proposal (ippool.k8s.cni.cncf.io/v1alpha): its manifest and its conditions.

No other project ships this CRD; the one in deploy/crds keeps the names of the proposal. A map cannot
hold equal keys, so duplicates in an object are MAC addresses in different spellings. A document that
repeats a key is recognised when it is parsed (pools/platform/documents.py, entries.pairs).
"""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from claims.core import entries, macs
from claims.core.entries import EntrySpec, Rules
from pools.core import errors, holders, object_reader

KIND = "IPPool"
GROUP = "ippool.k8s.cni.cncf.io"
API_VERSION = f"{GROUP}/v1alpha"
ENTRIES = ("spec", "entries")  # where documents may repeat a key
MAX_BYTES = 1_400_000  # of a manifest; etcd stores 1.5 MiB with the fields that the server adds
MAX_PROBLEMS = 1000

SUCCESS = "Success"
MACS = "DuplicateMACAddresses"
IPS = "DuplicateIPAddresses"
UNUSABLE = "UnusableEntries"  # reason of Success=False if entries of the object are not valid
_MAX_MESSAGE = 32_000  # characters; metav1.Condition allows 32768
MAX_NAMED = 1000  # of each kind of duplicate; callers of `conditions` pass at most these
_NAMED = 50  # values that a message names
_MACS_NAMED = 20  # MAC addresses of one duplicate address


@dataclass(frozen=True)
class ParsedIPPool:
    """An IPPool's object; its entries are `(key, value)` as written, not validated yet."""

    name: str
    network_name: str
    entries: tuple[tuple[str, object], ...]


def parse_entries(
    pairs: Iterable[tuple[str, object]], entry_rules: Rules
) -> tuple[list[EntrySpec], list[dict[str, Any]]]:
    """Return the valid entries of an object, and `[{"mac", "code", "message", "hosts"}]` of the others.

    `hosts` are the readable addresses of such an entry, which count as duplicates all the same.
    """
    specs: list[EntrySpec] = []
    problems: list[dict[str, Any]] = []
    for mac, ips in pairs:
        try:
            specs.append(entries.parse_pair(mac, ips, entry_rules))
        except errors.InvalidInput as error:
            first = error.problems[0]
            problems.append(
                {
                    "mac": errors.display_value(mac),
                    "code": first.code,
                    "message": error.message[:500],
                    "hosts": _readable_hosts(ips),
                }
            )
    return specs, problems


def _readable_hosts(ips: object) -> list[str]:
    """Return the host addresses, in canonical form, among the values of an entry; at most as many as an entry has."""
    hosts = []
    for text in (ips if isinstance(ips, list) else [])[: entries.MAX_ADDRESSES]:
        with contextlib.suppress(ValueError, TypeError):
            hosts.append(str(ip_address(str(text).partition("/")[0])))
    return hosts


def parse(manifest: Mapping[str, object]) -> ParsedIPPool:
    """Parse an IPPool's object; unknown fields are ignored.

    Raises InvalidInput for its name, network-name, and entries that are no map. `parse_entries`
    validates single entries.
    """
    report = object_reader.ProblemReport(strict=False)
    body = object_reader.Fields(dict(manifest), "", report)
    name = body.section("metadata").parse("name", holders.parse_name)
    spec = body.section("spec")
    network = spec.parse("network-name", holders.parse_identifier)
    written = spec.section("entries")
    report.raise_any()
    return ParsedIPPool(name or "", network or "", tuple(entries.pairs(written.data)))


def parse_strict(manifest: Mapping[str, object]) -> ParsedIPPool:
    """Parse a user's manifest. Raises InvalidInput also for another kind and for unknown fields."""
    report = object_reader.ProblemReport()
    body = object_reader.Fields(dict(manifest), "", report)
    body.allow_only("apiVersion", "kind", "metadata", "spec", "status")
    if (manifest.get("apiVersion"), manifest.get("kind")) != (API_VERSION, KIND):
        message = f"an {KIND} of {API_VERSION} is expected"
        report.add("kind", "unsupported_kind", message, manifest.get("kind"))
    body.section("spec").allow_only("network-name", "entries")
    with report.collect():
        ippool = parse(manifest)
    report.raise_any()
    return ippool


def render(
    name: str, network_name: str, pairs: Iterable[tuple[str, Sequence[str]]]
) -> object_reader.Json:
    """Return the manifest; the addresses of several entries with one MAC are merged."""
    ips_by_mac: dict[str, list[str]] = {}
    for mac, ips in pairs:
        mac_ips = ips_by_mac.setdefault(mac, [])
        mac_ips += [ip for ip in ips if ip not in mac_ips]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"network-name": network_name, "entries": ips_by_mac},
    }


def is_too_large(manifest: object_reader.Json) -> bool:
    """Return True if the manifest is too large for an API server."""
    return len(json.dumps(manifest, separators=(",", ":"))) > MAX_BYTES


def repeated_macs(pairs: Iterable[tuple[str, object]]) -> list[str]:
    """Return the MAC addresses that several keys of an object spell differently."""
    counts_by_mac: dict[str, int] = {}
    for key, _ in pairs:
        try:
            mac = macs.parse_mac(key)
        except errors.InvalidInput:
            continue
        counts_by_mac[mac] = counts_by_mac.get(mac, 0) + 1
    return [mac for mac, count in counts_by_mac.items() if count > 1]


def conditions(
    *,
    macs: Sequence[tuple[str, int]] = (),
    ips: Sequence[tuple[str, Sequence[str]]] = (),
    unusable: Sequence[Mapping[str, str]] = (),
    before: Sequence[object_reader.Json] = (),
    now: str,
) -> list[object_reader.Json]:
    """Return Success, DuplicateMACAddresses and DuplicateIPAddresses as metav1.Conditions.

    They are about duplicate MACs with the number of their entries, duplicate addresses with their MACs, and
    entries that are not valid. `now` is an RFC 3339 string; a condition with the same status as in `before`
    keeps its time. The conditions have no observedGeneration, which belongs to an object.
    """
    new_conditions = (_success(macs, ips, unusable), _macs(macs), _ips(ips))
    times = _times(before)
    return [
        condition | {"lastTransitionTime": times.get((condition["type"], condition["status"]), now)}
        for condition in new_conditions
    ]


def _times(before: Sequence[object]) -> dict[tuple[object, object], object]:
    """Return the transition times of conditions by type and status."""
    return {
        (condition.get("type"), condition.get("status")): condition["lastTransitionTime"]
        for condition in before
        if isinstance(condition, dict) and condition.get("lastTransitionTime")
    }


def status_conditions(
    new_conditions: Sequence[object_reader.Json], generation: object, before: Sequence[object] = ()
) -> list[object_reader.Json]:
    """Return the conditions for the status of an object of this generation.

    A condition that the object already has with the same status keeps the object's time, because the
    register may have been restored.
    """
    times = _times(before)
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


def refusal(reason: str, message: str, *, now: str) -> object_reader.Json:
    """Return the condition Success=False of an object that is left out as a whole."""
    return _condition(SUCCESS, False, reason, message) | {"lastTransitionTime": now}


def _condition(kind: str, status: bool, reason: str, message: str) -> object_reader.Json:
    return {
        "type": kind,
        "status": "True" if status else "False",
        "reason": reason,
        "message": message[:_MAX_MESSAGE],
    }


def _success(
    macs: Sequence[tuple[str, int]],
    ips: Sequence[tuple[str, Sequence[str]]],
    unusable: Sequence[Mapping[str, str]],
) -> object_reader.Json:
    messages = _shorten([f"Duplicate MAC {mac} found in entries" for mac, _ in macs])
    messages += _shorten([f"Duplicate IP {ip} found in entries" for ip, _ in ips])
    reason = "DuplicatesExist" if messages else UNUSABLE
    if unusable:
        count = len(unusable)
        messages.append(f"{count} {'entry' if count == 1 else 'entries'} cannot be used")
        messages += _shorten([f"{entry['mac']}: {entry['message']}" for entry in unusable])
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
    more = f"{len(messages) - _NAMED}" if len(messages) < MAX_NAMED else "many"
    return [*messages[:_NAMED], f"and {more} more"]


def _join_names(names: Sequence[str]) -> str:
    omitted_count = len(names) - _MACS_NAMED
    if omitted_count > 0:
        return f"{', '.join(names[:_MACS_NAMED])} and {omitted_count} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def associated_nads(nads: Iterable[tuple[str, str]]) -> list[object_reader.Json]:
    """Return namespaces and names of NADs in the form of the status, sorted."""
    return [{"namespace": namespace, "name": name} for namespace, name in sorted(nads)]
