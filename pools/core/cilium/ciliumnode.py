"""CiliumNode manifests: what a node asks for and holds, and the way back into spec.ipam.pools.

The spec has two writers. The agent owns `requested` and takes entries from `allocated`; the
operator adds to `allocated`. So nothing else is ever changed here (rule `only-allocated-is-written`), and what
an entry of it has beside `pool` and `cidrs` (newer Cilium keeps allowFirstIP and allowLastIP
there) stays with its pool.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pools.core import addresses, errors, holders, object_reader

KIND = "CiliumNode"
NEEDED = {4: "ipv4-addrs", 6: "ipv6-addrs"}
MOST_NEEDED = (1 << 63) - 1  # Go's int
_POOLS = "spec.ipam.pools"
# How the operator begins what it writes to status.ipam.operator-status.error.
ERROR_PREFIX = "ipam-multi-pool-sync allocation failed: "


# Neither is frozen: ten thousand are made at a time, and it takes five times as long then.
@dataclass(slots=True)
class Allocated:
    """One entry of spec.ipam.pools.allocated; `rest` are its keys beside pool and cidrs."""

    pool: str
    cidrs: tuple[addresses.Network, ...]
    rest: object_reader.Json = field(default_factory=dict)


@dataclass(slots=True)
class NodeDemand:
    """What a CiliumNode says about addresses.

    `requested` has for each pool the addresses wanted in total of the families 4 and 6;
    `pod_cidrs` is spec.ipam.podCIDRs of the cluster-pool mode; `operator_error` is
    status.ipam.operator-status.error, "" when all is well.
    """

    name: str
    uid: str = ""
    resource_version: str = ""
    requested: dict[str, dict[int, int]] = field(default_factory=dict)
    allocated: tuple[Allocated, ...] = ()
    pod_cidrs: tuple[addresses.Network, ...] = ()
    operator_error: str = ""

    def held(self) -> dict[str, list[addresses.Network]]:
        """The CIDRs of each pool in the manifest's order, also of a pool that is listed twice."""
        held: dict[str, list[addresses.Network]] = {}
        for entry in self.allocated:
            held.setdefault(entry.pool, []).extend(entry.cidrs)
        return held


def parse(manifest: object) -> NodeDemand:
    """A CiliumNode of any version of Cilium; absent parts are empty.

    A pool that is requested twice counts with the larger number, as the operator serves one after
    the other. Raises one InvalidInput with the paths of all problems: object_expected,
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
        requested=_requested(pools, report),
        allocated=_allocated(pools, report),
        pod_cidrs=_cidrs(ipam, "podCIDRs", "spec.ipam", report),
        operator_error=_text(status, "error", "status.ipam.operator-status", report),
    )
    report.raise_any()
    return demand


def with_allocated(
    manifest: object_reader.Json, pools: Mapping[str, Iterable[addresses.Network]]
) -> object_reader.Json:
    """A copy of the manifest in which spec.ipam.pools.allocated says what `pools` says.

    Written as the operator writes it: sorted by pool, in a pool IPv4 before IPv6 and each in the
    order of their texts, and a pool without CIDRs is left out.
    """
    changed = copy.deepcopy(manifest)
    section = changed
    for key in ("spec", "ipam", "pools"):
        if section.get(key) is None:
            section[key] = {}
        section = section[key]
    rests: dict[str, object_reader.Json] = {}
    for entry in section.get("allocated") or []:
        rest = {key: value for key, value in entry.items() if key not in ("pool", "cidrs")}
        rests.setdefault(entry["pool"], {}).update(rest)
    written = []
    for pool, networks in sorted(pools.items()):
        if texts := [str(network) for network in sorted(networks, key=_written_order)]:
            written.append({"pool": pool, "cidrs": texts, **rests.get(pool, {})})
    section.pop("allocated", None)
    if written:
        section["allocated"] = written
    return changed


def error_text(failures: Iterable[str]) -> str:
    """What the operator writes to status.ipam.operator-status.error; "" when nothing failed."""
    joined = "\n".join(failures)
    return f"{ERROR_PREFIX}{joined}" if joined else ""


def _written_order(network: addresses.Network) -> tuple[int, str]:
    return network.version, str(network)


# Ten thousand nodes are read at a time: a path is put together for what is wrong only.


def _requested(
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


def _allocated(
    pools: object_reader.Json, report: object_reader.ProblemReport
) -> tuple[Allocated, ...]:
    entries = []
    for index, entry in _objects(pools, "allocated", _POOLS, report):
        path = f"{_POOLS}.allocated.{index}"
        rest = {key: value for key, value in entry.items() if key not in ("pool", "cidrs")}
        name = _name(entry, "pool", path, report, _pool_name)
        entries.append(Allocated(name, _cidrs(entry, "cidrs", path, report), rest))
    return tuple(entries)


def _cidrs(
    part: object_reader.Json, key: str, path: str, report: object_reader.ProblemReport
) -> tuple[addresses.Network, ...]:
    cidrs = []
    for index, item in enumerate(_list(part, key, path, report)):
        try:
            # A whole pool may be one PodCIDR; how long a prefix must be is the pool's matter.
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
    return _known_name(value) if isinstance(value, str) else holders.parse_name(value)


@functools.lru_cache(maxsize=256)
def _known_name(text: str) -> str:
    """All nodes of a cluster name the same few pools."""
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
