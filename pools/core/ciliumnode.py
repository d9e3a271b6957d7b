"""CiliumNode manifests: what a node asks for and holds, and the way back into spec.ipam.pools.

The spec has two writers. The agent owns `requested` and takes entries from `allocated`; the
operator adds to `allocated` (spec/001). So nothing but `allocated` is ever changed here, and what
an entry of it has beside `pool` and `cidrs` (newer Cilium keeps allowFirstIP and allowLastIP
there) stays with its pool.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pools.core import addresses, errors, holders, reading

KIND = "CiliumNode"
NEEDED = {4: "ipv4-addrs", 6: "ipv6-addrs"}
MOST_NEEDED = (1 << 63) - 1  # Go's int
# How the operator begins what it writes to status.ipam.operator-status.error.
ERROR_PREFIX = "ipam-multi-pool-sync allocation failed: "


@dataclass(frozen=True)
class Allocated:
    """One entry of spec.ipam.pools.allocated; `rest` are its keys beside pool and cidrs."""

    pool: str
    cidrs: tuple[addresses.Network, ...]
    rest: reading.Json = field(default_factory=dict)


@dataclass(frozen=True)
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
        raise errors.InvalidInput.of("", "object_expected", "an object is expected", manifest)
    report = reading.Report(strict=False)
    node = reading.Fields(manifest, "", report)
    if manifest.get("kind", KIND) != KIND:
        report.add("kind", "unsupported_kind", f"a {KIND} is expected", manifest.get("kind"))
    metadata, ipam = node.section("metadata"), node.section("spec").section("ipam")
    pools = ipam.section("pools")
    status = node.section("status").section("ipam").section("operator-status")
    demand = NodeDemand(
        name=metadata.parse("name", _parse_name) or "",
        uid=_text(metadata, "uid"),
        resource_version=_text(metadata, "resourceVersion"),
        requested=_requested(pools),
        allocated=tuple(map(_allocated, pools.objects("allocated"))),
        pod_cidrs=_cidrs(ipam, "podCIDRs"),
        operator_error=_text(status, "error"),
    )
    report.raise_any()
    return demand


def with_allocated(
    manifest: reading.Json, pools: Mapping[str, Iterable[addresses.Network]]
) -> reading.Json:
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
    rests: dict[str, reading.Json] = {}
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


def _requested(pools: reading.Fields) -> dict[str, dict[int, int]]:
    requested: dict[str, dict[int, int]] = {}
    for entry in pools.objects("requested"):
        name = entry.parse("pool", _parse_name)
        needed = entry.section("needed")
        numbers = {family: _number(needed, key) for family, key in NEEDED.items()}
        known = requested.setdefault(name or "", {4: 0, 6: 0})
        known.update({family: max(known[family], number) for family, number in numbers.items()})
    return requested


def _allocated(entry: reading.Fields) -> Allocated:
    rest = {key: value for key, value in entry.data.items() if key not in ("pool", "cidrs")}
    name = entry.parse("pool", _parse_name) or ""
    return Allocated(name, _cidrs(entry, "cidrs"), rest)


def _cidrs(part: reading.Fields, key: str) -> tuple[addresses.Network, ...]:
    found = []
    for at, item in part.items(key):
        with part.report.collecting():
            # A whole pool may be one PodCIDR; how long a prefix must be is the pool's matter.
            found.append(addresses.parse_cidr(item, field=at, allow_short=True))
    return tuple(found)


def _number(part: reading.Fields, key: str) -> int:
    value = part.data.get(key)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        part.report.add(part.path(key), "wrong_type", "must be a whole number", value)
        return 0
    if not 0 <= value <= MOST_NEEDED:
        part.report.add(part.path(key), "out_of_range", f"must be 0 to {MOST_NEEDED}", value)
        return 0
    return value


def _text(part: reading.Fields, key: str) -> str:
    value = part.data.get(key)
    if value is not None and not isinstance(value, str):
        part.report.add(part.path(key), "wrong_type", "must be a text", value)
    return value if isinstance(value, str) else ""


def _parse_name(value: object, at: str) -> str:
    return holders.parse_name(value, field=at)
