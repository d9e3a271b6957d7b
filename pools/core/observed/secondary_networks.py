"""Parsers of the IPAM of NetworkAttachmentDefinitions that other plugins than OVN-Kubernetes run, and of its pools.

`spec.config` is the JSON text of a CNI configuration, or of a list of plugins; a plugin such as flannel has
the configuration of the plugin that it calls in `delegate`. Read are whereabouts (`range`, `range_start`,
`range_end`, `exclude`, and the same in `ipRanges`; `addresses`), host-local (`ranges`, or `subnet`,
`rangeStart`, `rangeEnd`) and static (`addresses`); of another IPAM the addresses are not known.

What a NAD does not say whereabouts reads on the node, of a file. Its `IPPool` (whereabouts.cni.cncf.io/v1alpha1) has
the addresses in use: `spec.allocations` by their distance to the address of `spec.range`. The range itself says less
than the NAD, whose `range_start`, `range_end` and `exclude` it does not have, and is not in use.
"""

import json
import re
from collections.abc import Iterator, Sequence
from ipaddress import collapse_addresses, ip_network
from typing import Any

from pools.core import addresses, errors
from pools.core.object_reader import Fields, ProblemReport
from pools.core.observed.uses import MOST, Json, ObservedUses, Role, UseReader, texts

_CONFIG = "spec.config"
_OVN = "ovn-k8s-cni-overlay"  # its networks are in the register
_POD_CIDRS = ("usePodCidr", "usePodCidrIPv6")  # of host-local under Calico
_LONGEST = 1 << 18  # characters of a config


def parse(manifest: Json) -> ObservedUses:
    """Return the addresses that the IPAM of a NAD hands out."""
    spec = manifest.get("spec")
    text = spec.get("config") if isinstance(spec, dict) else None
    if text is None or (isinstance(text, str) and not text.strip()):
        return ObservedUses()  # the nodes have the config, as a file
    report = ProblemReport(strict=False)
    with report.collect():
        reader = UseReader(_read_config(text), report)
        for ipam in _ipam_sections(Fields(reader.manifest, _CONFIG, report)):
            _READERS.get(str(ipam.data.get("type")), _ignore)(reader, ipam)
        return reader.result()
    return ObservedUses(problems=tuple(report.problems))


def _read_config(text: object) -> Json:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise errors.InvalidInput.for_field(_CONFIG, "config_syntax", "is no text, or is too long")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInput.for_field(
            _CONFIG, "config_syntax", f"is not valid JSON: {error}", text
        ) from None
    if not isinstance(config, dict):
        raise errors.InvalidInput.for_field(_CONFIG, "config_syntax", "is not a JSON object", text)
    return config


def _ipam_sections(config: Fields) -> Iterator[Fields]:
    for plugin in (config, *config.objects("plugins")):
        for called in (plugin, plugin.section("delegate")):
            if called.data.get("type") != _OVN and called.has("ipam"):
                yield called.section("ipam")


def _ignore(_reader: UseReader, _ipam: Fields) -> None:
    return


def _read_whereabouts(reader: UseReader, ipam: Fields) -> None:
    """Add the ranges, each without what it excludes itself, and the fixed addresses."""
    for part in ([ipam] if ipam.data.get("range") else []) + list(ipam.objects("ipRanges")):
        without = part.parse_each("exclude", addresses.parse_used_network)
        _add_subnet(reader, part, "range", "range_start", "range_end", without)
    _read_static(reader, ipam)


def _read_host_local(reader: UseReader, ipam: Fields) -> None:
    if ipam.has("subnet"):
        _add_subnet(reader, ipam, "subnet", "rangeStart", "rangeEnd")
    for path, members in texts(ipam, "ranges"):
        if not isinstance(members, list):
            reader.report.add(path, "wrong_type", "a list is expected", members)
            continue
        for part in Fields({"ranges": members}, path, reader.report).objects("ranges"):
            _add_subnet(reader, part, "subnet", "rangeStart", "rangeEnd")


def _add_subnet(
    reader: UseReader,
    part: Fields,
    subnet_key: str,
    first_key: str,
    last_key: str,
    without: Sequence[addresses.Network] = (),
) -> None:
    """Add a subnet from its first to its last address; whereabouts also writes `first-last/length`.

    A first or last address outside of the subnet, or a last one before the first, is a problem and does not count:
    whereabouts takes no notice of it either.
    """
    text = part.data.get(subnet_key)
    if text in _POD_CIDRS:
        return  # those of the node, which are read from it
    with reader.report.collect():
        first, _, rest = text.partition("-") if isinstance(text, str) else ("", "", "")
        subnet = addresses.parse_used_network(rest or text, field=part.path(subnet_key))
        span = addresses.AddressRange.from_network(subnet)
        if rest:
            last = rest.partition("/")[0]
            span = addresses.parse_range(f"{first}-{last}", field=part.path(subnet_key))
            addresses.require_within(span, subnet, part.path(subnet_key))
        else:
            lowest = _read_end(part, first_key, subnet) or span.first
            highest = _read_end(part, last_key, subnet) or span.last
            if int(highest) < int(lowest):
                message = f"lies before the first address, {lowest}"
                reader.report.add(part.path(last_key), "range_reversed", message, str(highest))
                highest = span.last
            span = addresses.AddressRange(lowest, highest)
        reader.add_range(Role.SECONDARY, span, without=without)


def _read_end(part: Fields, key: str, subnet: addresses.Network) -> addresses.Address | None:
    if not part.data.get(key):
        return None
    with part.report.collect():
        address = addresses.parse_address(part.data[key], field=part.path(key))
        addresses.require_within(addresses.AddressRange(address, address), subnet, part.path(key))
        return address
    return None


def _read_static(reader: UseReader, ipam: Fields) -> None:
    for entry in ipam.objects("addresses"):
        with reader.report.collect():
            value = entry.data.get("address")
            head = value.partition("/")[0] if isinstance(value, str) else value
            address = addresses.parse_address(head, field=entry.path("address"))
            reader.add(Role.SECONDARY, [ip_network(address)])


def parse_whereabouts_pool(manifest: Json) -> ObservedUses:
    """Return the addresses that pods have of a pool of whereabouts; `detail` is the pod, `namespace/name`."""
    reader = UseReader(manifest)
    spec = reader.fields.section("spec")
    allocations = spec.section("allocations")
    pods: dict[Any, str] = {}  # by network, all of one family
    with reader.report.collect():
        subnet = addresses.parse_used_network(spec.data.get("range"), field=spec.path("range"))
        base = addresses.parse_address(str(spec.data["range"]).partition("/")[0])
        for offset in allocations.data:
            with reader.report.collect():
                address = _allocated(base, subnet, offset, allocations.path(offset))
                pods[ip_network(address)] = str(
                    allocations.section(offset).data.get("podref") or ""
                )
    if len(pods) > MOST:
        reader.add(Role.SECONDARY, collapse_addresses(pods))
    else:
        for network, pod in sorted(pods.items()):
            reader.add(Role.SECONDARY, [network], pod)
    return reader.result()


def _allocated(
    base: addresses.Address, subnet: addresses.Network, offset: str, path: str
) -> addresses.Address:
    """Return the address of an allocation. Raises InvalidInput bad_number, range_outside_cidr."""
    if not re.fullmatch("[0-9]{1,20}", offset):
        message = "a distance to the address of the range is expected"
        raise errors.InvalidInput.for_field(path, "bad_number", message, offset)
    number = int(base) + int(offset)
    if number > int(subnet.broadcast_address):
        message = f"{offset} is outside of {subnet}"
        raise errors.InvalidInput.for_field(path, "range_outside_cidr", message, offset)
    return type(base)(number)


def project_whereabouts_pool(manifest: Json) -> Json:
    """Return a pool without the ids of containers."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("allocations"), dict):
        return manifest
    pods = {
        offset: {"podref": allocation.get("podref")} if isinstance(allocation, dict) else allocation
        for offset, allocation in spec["allocations"].items()
    }
    return {
        "metadata": manifest.get("metadata"),
        "spec": {"range": spec.get("range"), "allocations": pods},
    }


_READERS = {
    "whereabouts": _read_whereabouts,
    "host-local": _read_host_local,
    "static": _read_static,
}
