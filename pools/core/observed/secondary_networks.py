"""Parser of the IPAM of NetworkAttachmentDefinitions that other plugins than OVN-Kubernetes run.

`spec.config` is the JSON text of a CNI configuration, or of a list of plugins. Read are whereabouts
(`range`, `range_start`, `range_end`, `exclude`, `ipRanges`), host-local (`ranges`, or `subnet`,
`rangeStart`, `rangeEnd`) and static (`addresses`); of another IPAM the addresses are not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_network

from pools.core import addresses, errors
from pools.core.object_reader import Fields, ProblemReport
from pools.core.observed.uses import Json, ObservedUses, Role, UseReader, texts

_CONFIG = "spec.config"
_OVN = "ovn-k8s-cni-overlay"  # its networks are in the register
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
        if plugin.data.get("type") != _OVN and plugin.has("ipam"):
            yield plugin.section("ipam")


def _ignore(_reader: UseReader, _ipam: Fields) -> None:
    return


def _read_whereabouts(reader: UseReader, ipam: Fields) -> None:
    without = []
    for path, text in texts(ipam, "exclude"):
        with reader.report.collect():
            without.append(addresses.parse_used_network(text, field=path))
    ranges = [ipam] if ipam.has("range") else []
    for part in (*ranges, *ipam.objects("ipRanges")):
        _add_subnet(reader, part, "range", "range_start", "range_end", without)


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
    without: list[addresses.Network] | None = None,
) -> None:
    """Add a subnet from its first to its last address; whereabouts also writes `first-last/length`."""
    with reader.report.collect():
        text = part.data.get(subnet_key)
        first, _, rest = text.partition("-") if isinstance(text, str) else ("", "", "")
        subnet = addresses.parse_used_network(rest or text, field=part.path(subnet_key))
        span = addresses.AddressRange.from_network(subnet)
        if rest:
            last = rest.partition("/")[0]
            span = addresses.parse_range(f"{first}-{last}", field=part.path(subnet_key))
        ends = [
            addresses.parse_address(part.data[key], field=part.path(key)) if part.has(key) else end
            for key, end in ((first_key, span.first), (last_key, span.last))
        ]
        reader.add_range(Role.SECONDARY, addresses.AddressRange(*ends), without=without or ())


def _read_static(reader: UseReader, ipam: Fields) -> None:
    for entry in ipam.objects("addresses"):
        with reader.report.collect():
            value = entry.data.get("address")
            head = value.partition("/")[0] if isinstance(value, str) else value
            address = addresses.parse_address(head, field=entry.path("address"))
            reader.add(Role.SECONDARY, [ip_network(address)])


_READERS = {
    "whereabouts": _read_whereabouts,
    "host-local": _read_host_local,
    "static": _read_static,
}
