"""Parser and writer of CiliumNode manifests: requested and allocated PodCIDRs in spec.ipam.pools.

The spec has two writers. The agent owns `requested` and removes entries of `allocated`; the operator
adds to `allocated`. So only `allocated` is changed here (rule `only-allocated-is-written`). Other keys
of its entries (newer Cilium has allowFirstIP and allowLastIP there) stay with their pool.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pools.core import addresses, errors, holders, object_reader
from pools.core.observed.uses import AddressUse, ObservedUses, Role

KIND = "CiliumNode"
NEEDED = {4: "ipv4-addrs", 6: "ipv6-addrs"}
MOST_NEEDED = (1 << 63) - 1  # Go's int
_POOLS = "spec.ipam.pools"
# The operator's prefix of status.ipam.operator-status.error.
ERROR_PREFIX = "ipam-multi-pool-sync allocation failed: "


# Not frozen: ten thousand are created at a time, and frozen instances take five times as long.
@dataclass(slots=True)
class AllocatedEntry:
    """One entry of spec.ipam.pools.allocated."""

    pool: str
    cidrs: tuple[addresses.Network, ...]


@dataclass(slots=True)
class NodeDemand:
    """The IPAM fields of a CiliumNode.

    `requested` maps a pool to the total number of requested addresses of the families 4 and 6.
    `pod_cidrs` is spec.ipam.podCIDRs of the cluster-pool mode. `operator_error` is
    status.ipam.operator-status.error, "" without an error.
    """

    name: str
    uid: str = ""
    resource_version: str = ""
    requested: dict[str, dict[int, int]] = field(default_factory=dict)
    allocated: tuple[AllocatedEntry, ...] = ()
    pod_cidrs: tuple[addresses.Network, ...] = ()
    operator_error: str = ""

    def held_cidrs(self) -> dict[str, list[addresses.Network]]:
        """Return the allocated CIDRs by pool in the order of the manifest; entries of one pool are joined."""
        held: dict[str, list[addresses.Network]] = {}
        for entry in self.allocated:
            held.setdefault(entry.pool, []).extend(entry.cidrs)
        return held

    def observed_uses(self) -> ObservedUses:
        """Return the pod CIDRs of a node outside of multi-pool mode, in which they are blocks of pools.

        Cilium leaves `podCIDRs` in place when a node changes to multi-pool mode. `spec.addresses` is not read:
        it repeats the addresses of the Node, and Cilium's own address lies inside a pod CIDR.
        """
        if self.requested or self.allocated:
            return ObservedUses()
        return ObservedUses(tuple(AddressUse(Role.PODS, cidr) for cidr in self.pod_cidrs))


def parse(manifest: object) -> NodeDemand:
    """Return the IPAM fields of a CiliumNode of any version of Cilium; absent fields are empty.

    Of a pool that is requested twice the larger number counts, because the operator serves one entry
    after the other. Raises one InvalidInput with the paths of all problems: object_expected,
    unsupported_kind, required, wrong_type, out_of_range, and the codes of names and CIDRs.
    """
    if not isinstance(manifest, dict):
        raise errors.InvalidInput.for_field(
            "", "object_expected", "an object is expected", manifest
        )
    report = object_reader.ProblemReport(strict=False)
    if manifest.get("kind", KIND) != KIND:
        report.add("kind", "unsupported_kind", f"a {KIND} is expected", manifest.get("kind"))
    metadata = _section(manifest, "metadata", "", report)
    ipam = _section(_section(manifest, "spec", "", report), "ipam", "spec", report)
    pools = _section(ipam, "pools", "spec.ipam", report)
    status = _section(manifest, "status", "", report)
    status = _section(status, "ipam", "status", report)
    status = _section(status, "operator-status", "status.ipam", report)
    demand = NodeDemand(
        name=_name(metadata, "name", "metadata", report, holders.parse_name),
        uid=_text(metadata, "uid", "metadata", report),
        resource_version=_text(metadata, "resourceVersion", "metadata", report),
        requested=_parse_requested(pools, report),
        allocated=_parse_allocated(pools, report),
        pod_cidrs=_cidrs(ipam, "podCIDRs", "spec.ipam", report),
        operator_error=_text(status, "error", "status.ipam.operator-status", report),
    )
    report.raise_any()
    return demand


def set_allocated(
    manifest: object_reader.Json, pools: Mapping[str, Iterable[addresses.Network]]
) -> object_reader.Json:
    """Return a copy of the manifest with `pools` as spec.ipam.pools.allocated.

    The format is the operator's: sorted by pool, within a pool IPv4 before IPv6 and then by string. A
    pool without CIDRs is omitted.
    """
    changed = copy.deepcopy(manifest)
    section = changed
    for key in ("spec", "ipam", "pools"):
        if section.get(key) is None:
            section[key] = {}
        section = section[key]
    extra_by_pool: dict[str, object_reader.Json] = {}
    for entry in section.get("allocated") or []:
        extra_fields = {key: value for key, value in entry.items() if key not in ("pool", "cidrs")}
        extra_by_pool.setdefault(entry["pool"], {}).update(extra_fields)
    written = []
    for pool, networks in sorted(pools.items()):
        if texts := [str(network) for network in sorted(networks, key=_written_order)]:
            written.append({"pool": pool, "cidrs": texts, **extra_by_pool.get(pool, {})})
    section.pop("allocated", None)
    if written:
        section["allocated"] = written
    return changed


def error_text(failures: Iterable[str]) -> str:
    """Return the operator's status.ipam.operator-status.error; "" without failures."""
    joined = "\n".join(failures)
    return f"{ERROR_PREFIX}{joined}" if joined else ""


def _written_order(network: addresses.Network) -> tuple[int, str]:
    return network.version, str(network)


# Ten thousand nodes are read at a time, so a path is built only for a problem.


def _parse_requested(
    pools: object_reader.Json, report: object_reader.ProblemReport
) -> dict[str, dict[int, int]]:
    requested: dict[str, dict[int, int]] = {}
    for index, entry in _objects(pools, "requested", _POOLS, report):
        path = f"{_POOLS}.requested.{index}"
        name = _name(entry, "pool", path, report, _pool_name)
        needed = _section(entry, "needed", path, report)
        needs = requested.setdefault(name, {4: 0, 6: 0})
        for family, key in NEEDED.items():
            needs[family] = max(needs[family], _number(needed, key, path, report))
    return requested


def _parse_allocated(
    pools: object_reader.Json, report: object_reader.ProblemReport
) -> tuple[AllocatedEntry, ...]:
    entries = []
    for index, entry in _objects(pools, "allocated", _POOLS, report):
        path = f"{_POOLS}.allocated.{index}"
        name = _name(entry, "pool", path, report, _pool_name)
        entries.append(AllocatedEntry(name, _cidrs(entry, "cidrs", path, report)))
    return tuple(entries)


def _cidrs(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> tuple[addresses.Network, ...]:
    cidrs = []
    for index, item in enumerate(_list(part, key, path, report)):
        try:
            # A PodCIDR may be as large as its pool; the pool limits the prefix length.
            cidrs.append(addresses.parse_cidr(item, allow_short=True))
        except errors.InvalidInput as error:
            report.problems += error.under(f"{path}.{key}.{index}").problems
    return tuple(cidrs)


def _section(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> object_reader.Json:
    value = part.get(key)
    if isinstance(value, dict):
        return value
    if value is not None:
        report.add(_path(path, key), "wrong_type", "an object is expected", value)
    return {}


def _list(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> list[Any]:
    value = part.get(key)
    if isinstance(value, list):
        return value
    if value is not None:
        report.add(_path(path, key), "wrong_type", "a list is expected", value)
    return []


def _objects(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> Iterator[tuple[int, object_reader.Json]]:
    for index, item in enumerate(_list(part, key, path, report)):
        if isinstance(item, dict):
            yield index, item
        else:
            report.add(f"{path}.{key}.{index}", "wrong_type", "an object is expected", item)


def _name(
    part: object_reader.Json,
    key: str,
    path: str,
    report: object_reader.ProblemReport,
    parse: Callable[[Any], str],
) -> str:
    value = part.get(key)
    if value is None:
        report.add(_path(path, key), "required", "is required")
        return ""
    try:
        return parse(value)
    except errors.InvalidInput as error:
        report.problems += error.under(_path(path, key)).problems
        return ""


def _pool_name(value: object) -> str:
    return _parse_cached_name(value) if isinstance(value, str) else holders.parse_name(value)


@functools.lru_cache(maxsize=256)
def _parse_cached_name(text: str) -> str:
    """Parse a pool name; cached, because all nodes of a cluster name the same few pools."""
    return holders.parse_name(text)


def _number(
    needed: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> int:
    value = needed.get(key)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        report.add(f"{path}.needed.{key}", "wrong_type", "must be a whole number", value)
        return 0
    if not 0 <= value <= MOST_NEEDED:
        message = f"must be 0 to {MOST_NEEDED}"
        report.add(f"{path}.needed.{key}", "out_of_range", message, value)
        return 0
    return value


def _text(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> str:
    value = part.get(key)
    if isinstance(value, str):
        return value
    if value is not None:
        report.add(_path(path, key), "wrong_type", "must be a text", value)
    return ""


def _path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
