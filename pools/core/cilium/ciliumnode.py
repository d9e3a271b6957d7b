"""Parser and writer of CiliumNode manifests: requested and allocated PodCIDRs in spec.ipam.pools.

The spec has two writers. The agent owns `requested` and removes entries of `allocated`; the operator
adds to `allocated`. So only `allocated` is changed here (rule `only-allocated-is-written`).

Cilium since 1.20 repeats the pool's allowFirstIP and allowLastIP in each entry, and the agent reads nothing
else: which addresses of a block pods can use is what the entry says. The agent ignores a change of them
while addresses are in use, so an entry keeps the members that it has (rule `entry-says-what-is-usable`).
"""

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
_ALLOW_KEYS = ("allowFirstIP", "allowLastIP")
_POOLS = "spec.ipam.pools"
# The operator's prefix of status.ipam.operator-status.error.
ERROR_PREFIX = "ipam-multi-pool-sync allocation failed: "


# Not frozen: ten thousand are created at a time, and frozen instances take five times as long.
@dataclass(slots=True)
class AllocatedEntry:
    """One entry of spec.ipam.pools.allocated."""

    pool: str
    cidrs: tuple[addresses.Network, ...]
    allow_first: bool = False
    allow_last: bool = False


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

    def allowed_edges(self, pool: str) -> tuple[bool, bool] | None:
        """Return whether pods can use the first and the last address of the node's blocks of a pool.

        None if the node has no block of the pool yet: its entry will get what the pool says.
        """
        entries = [entry for entry in self.allocated if entry.pool == pool and entry.cidrs]
        if not entries:
            return None
        return any(entry.allow_first for entry in entries), any(
            entry.allow_last for entry in entries
        )

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
    manifest: object_reader.Json,
    pools: Mapping[str, Iterable[addresses.Network]],
    allowed_edges: Mapping[str, tuple[bool, bool]] | None = None,
) -> object_reader.Json:
    """Return a copy of the manifest with `pools` as spec.ipam.pools.allocated.

    The format is the operator's: sorted by pool, within a pool IPv4 before IPv6 and then by string. A
    pool without CIDRs is omitted. `allowed_edges` are allowFirstIP and allowLastIP of the pools: an entry
    that has no CIDRs yet gets them, any other one keeps all of its members.
    """
    changed = copy.deepcopy(manifest)
    section = changed
    for key in ("spec", "ipam", "pools"):
        if section.get(key) is None:
            section[key] = {}
        section = section[key]
    extra_by_pool = _extra_fields(section.get("allocated") or [], allowed_edges or {})
    written = []
    for pool, networks in sorted(pools.items()):
        if texts := [str(network) for network in sorted(networks, key=_written_order)]:
            written.append({"pool": pool, "cidrs": texts, **extra_by_pool.get(pool, {})})
    section.pop("allocated", None)
    if written:
        section["allocated"] = written
    return changed


def _extra_fields(
    entries: Iterable[object_reader.Json], allowed_edges: Mapping[str, tuple[bool, bool]]
) -> dict[str, object_reader.Json]:
    """Return the members of the entries besides pool and CIDRs, by pool."""
    extra_by_pool: dict[str, object_reader.Json] = {}
    in_use = set()
    for entry in entries:
        extra_fields = {key: value for key, value in entry.items() if key not in ("pool", "cidrs")}
        extra_by_pool.setdefault(entry["pool"], {}).update(extra_fields)
        if entry.get("cidrs"):
            in_use.add(entry["pool"])
    for pool in allowed_edges.keys() - in_use:
        flags = dict(zip(_ALLOW_KEYS, allowed_edges[pool], strict=True))
        extra_fields = extra_by_pool.get(pool, {}) | flags
        extra_by_pool[pool] = {
            key: value
            for key, value in extra_fields.items()
            if value or key not in flags  # the operator omits false flags
        }
    return extra_by_pool


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
        entries.append(
            AllocatedEntry(
                name,
                _cidrs(entry, "cidrs", path, report),
                *(_flag(entry, key, path, report) for key in _ALLOW_KEYS),
            )
        )
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


def _flag(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> bool:
    value = part.get(key)
    if value is not None and not isinstance(value, bool):
        report.add(_path(path, key), "wrong_type", "must be true or false", value)
    return value is True


def _path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
