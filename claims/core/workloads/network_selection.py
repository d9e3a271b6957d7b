"""Parsers and renderers of the annotations that select networks and addresses of a pod.

`k8s.v1.cni.cncf.io/networks` and `v1.multus-cni.io/default-network` hold network selection elements
(the multi-network specification of the Network Plumbing WG, 4.1), `network.kubevirt.io/addresses`
the addresses from which kubevirt/ipam-extensions makes such an element (pkg/ips).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface
from typing import Any

from claims.core import macs
from pools.core import addresses, errors, object_reader
from pools.core.errors import InvalidAnnotation

NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK = "v1.multus-cni.io/default-network"
ADDRESSES = "network.kubevirt.io/addresses"
MAX_BYTES = 262_144  # of all annotations of an object together; API servers refuse more
CLAIM = "ipam-claim-reference"
_MAX_INTERFACE_LENGTH = 15  # Linux: IFNAMSIZ without its final zero
_OTHER_KEYS = (
    "interface", "portMappings", "bandwidth", "cni-args", "default-route", "infiniband-guid",
)  # fmt: skip
_KEYS = ("name", "namespace", "mac", "ips", CLAIM, *_OTHER_KEYS)
_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SHORT = re.compile(rf"(?:({_LABEL})/)?({_LABEL}(?:\.{_LABEL})*)(?:@([^\s/@]+))?")
_JSON_BEGINS = re.compile(r'[\[{"]')


@dataclass(frozen=True)
class Element:
    """A network selection element: a NAD and the requested MAC, addresses and claim.

    `ips` are canonical, with a prefix length if the annotation has one. `other` are members that are
    copied unchanged (`interface`, `cni-args`, …).
    """

    name: str
    namespace: str = ""
    mac: str | None = None
    ips: tuple[str, ...] = ()
    claim: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the members that are not empty, in the order of the enhancement proposal."""
        members = {
            "name": self.name,
            "namespace": self.namespace,
            "mac": self.mac,
            "ips": list(self.ips),
            CLAIM: self.claim,
        }
        return {key: value for key, value in members.items() if value} | dict(self.other)


def networks(text: object, *, namespace: str = "") -> list[Element]:
    """Parse the elements of `k8s.v1.cni.cncf.io/networks`: a JSON list, or `ns/name@if,…`.

    An element without a namespace gets `namespace`, the namespace of the pod. Raises InvalidAnnotation:
    wrong_type, too_large, json_syntax (with line and column), too_deep, duplicate_key, and with the
    position list_expected, wrong_type, required, unknown_field, short_form and those of a MAC or an
    address.
    """
    annotation = _text(text, NETWORKS)
    if not _JSON_BEGINS.search(annotation):
        parts = [part.strip() for part in annotation.split(",")]
        return [_short(part, index, namespace) for index, part in enumerate(parts)]
    return _elements(annotation, NETWORKS, namespace)


def default_network(text: object) -> Element:
    """Parse the single element of `v1.multus-cni.io/default-network`.

    Raises InvalidAnnotation as `networks` does, one_element_expected, and short_form_has_no_ips for the
    short form, which Multus accepts and which cannot request addresses.
    """
    annotation = _text(text, DEFAULT_NETWORK)
    if not _JSON_BEGINS.search(annotation):
        message = "the short form has no addresses: write a JSON list of one element"
        raise InvalidAnnotation.for_field(
            DEFAULT_NETWORK, "short_form_has_no_ips", message, annotation
        )
    elements = _elements(annotation, DEFAULT_NETWORK, "")
    if len(elements) != 1:
        message = f"a list of exactly one element is expected, not of {len(elements)}"
        raise InvalidAnnotation.for_field(DEFAULT_NETWORK, "one_element_expected", message)
    return elements[0]


def ignored_request(
    annotations: Mapping[str, Any], pod_networks: object
) -> tuple[list[str], list[str]] | None:
    """Return what a pod asked for on its primary network (addresses, MAC) and what it got instead, or None.

    `pod_networks` is the value of OVN-Kubernetes' annotation. None, too, where one of both is absent or invalid.
    """
    try:
        element = default_network(annotations[DEFAULT_NETWORK])
        networks = json.loads(str(pod_networks))
        (primary,) = [value for value in networks.values() if value.get("role") == "primary"]
        listed = primary.get("ip_addresses") or [primary.get("ip_address")]
        ips = [ip_interface(str(ip)).ip for ip in listed if ip] if element.ips else []
        listed_mac = element.mac and primary.get("mac_address")
        mac = macs.parse_mac(listed_mac) if listed_mac else None
    except (
        errors.InvalidInput,
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
        RecursionError,
    ):
        return None
    requested_ips = [ip_interface(ip).ip for ip in element.ips]
    has_other_ips = bool(ips) and not set(requested_ips) <= set(ips)
    if not has_other_ips and mac in {None, element.mac}:
        return None
    requested, got = [str(ip) for ip in requested_ips], [str(ip) for ip in ips]
    return (requested, got) if mac is None else ([*requested, str(element.mac)], [*got, mac])


def vm_addresses(text: object) -> dict[str, tuple[str, ...]]:
    """Parse `network.kubevirt.io/addresses`: addresses without prefix length by interface of a VM.

    Raises InvalidAnnotation as `networks` does, and object_expected.
    """
    data = _json(_text(text, ADDRESSES), ADDRESSES)
    if not isinstance(data, dict):
        message = 'an object such as {"default": ["10.0.0.5"]} is expected'
        raise InvalidAnnotation.for_field(ADDRESSES, "object_expected", message, data)
    report = object_reader.ProblemReport()
    fields = object_reader.Fields(data, ADDRESSES, report)
    ips_by_interface = {
        key: fields.parse_each(key, lambda v, path: str(addresses.parse_address(v, path)))
        for key in data
    }
    _raise(report)
    return ips_by_interface


def render(elements: Iterable[Element]) -> str:
    """Return the elements as JSON; equal elements give equal strings."""
    return _dump([element.as_json() for element in elements])


def render_addresses(ips_by_interface: Mapping[str, Sequence[str]]) -> str:
    """Return the JSON of `network.kubevirt.io/addresses`, sorted by interface."""
    return _dump({name: list(ips_by_interface[name]) for name in sorted(ips_by_interface)})


def _dump(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidAnnotation.for_field(path, "wrong_type", "a string is expected", value)
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        message = f"has {size} bytes; all annotations together may have {MAX_BYTES}"
        raise InvalidAnnotation.for_field(path, "too_large", message)
    if not value.strip():
        raise InvalidAnnotation.for_field(path, "blank", "is empty")
    return value.strip()


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_not_finite)
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InvalidAnnotation.for_field(path, "json_syntax", message) from None
    except RecursionError:
        raise InvalidAnnotation.for_field(path, "too_deep", "is nested too deeply") from None
    except errors.InvalidInput as error:
        raise InvalidAnnotation.all(error.under(path).problems) from None
    except ValueError:  # an integer of more digits than Python reads
        raise InvalidAnnotation.for_field(
            path, "bad_number", "has a number of too many digits"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            message = "the key occurs twice"
            raise errors.InvalidInput.for_field(errors.display_value(key), "duplicate_key", message)
        members[key] = value
    return members


def _not_finite(text: str) -> float:
    raise errors.InvalidInput.for_field("", "not_finite", f"{text} is not a finite number")


def _elements(text: str, path: str, namespace: str) -> list[Element]:
    data = _json(text, path)
    if not isinstance(data, list):
        message = "a list of network selection elements is expected"
        raise InvalidAnnotation.for_field(path, "list_expected", message, data)
    report = object_reader.ProblemReport()
    elements = [
        _element(element_fields, namespace)
        for element_fields in object_reader.Fields({path: data}, "", report).objects(path)
    ]
    _raise(report)
    return elements


def _raise(report: object_reader.ProblemReport) -> None:
    if report.problems:
        raise InvalidAnnotation.all(report.problems)


def _element(fields: object_reader.Fields, namespace: str) -> Element:
    fields.allow_only(*_KEYS)
    name = fields.parse("name", _word) or ""
    return Element(
        name=name,
        namespace=_optional(fields, "namespace") or namespace,
        mac=fields.parse("mac", macs.parse_mac) if _is_set(fields, "mac") else None,
        ips=fields.parse_each("ips", _requested),
        claim=_optional(fields, CLAIM),
        other={key: fields.data[key] for key in _OTHER_KEYS if fields.data.get(key) is not None},
    )


def _is_set(fields: object_reader.Fields, key: str) -> bool:
    """Return True if the member is not empty; Go's omitempty does not distinguish "" and absent."""
    return fields.data.get(key) not in (None, "")


def _optional(fields: object_reader.Fields, key: str) -> str:
    return (fields.parse(key, _word) or "") if _is_set(fields, key) else ""


def _word(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise errors.InvalidInput.for_field(path, "wrong_type", "a string is expected", value)
    return value


def _requested(value: object, path: str) -> str:
    """Parse an address with or without a prefix length; plugins differ in what they require."""
    if isinstance(value, str) and "/" in value:
        return str(addresses.parse_interface(value, field=path))
    return str(addresses.parse_address(value, path))


def _short(text: str, index: int, namespace: str) -> Element:
    match = _SHORT.fullmatch(text)
    if match is None or len(match[3] or "") > _MAX_INTERFACE_LENGTH:
        message = "namespace/name@interface is expected, or a JSON list"
        raise InvalidAnnotation.for_field(f"{NETWORKS}.{index}", "short_form", message, text)
    other = {"interface": match[3]} if match[3] else {}
    return Element(name=match[2], namespace=match[1] or namespace, other=other)


def same_addresses(ips: Iterable[str], other_ips: Iterable[str]) -> bool:
    """Return True if both have the same host addresses, in any order and with any prefix lengths."""
    return {ip_interface(ip).ip for ip in ips} == {ip_interface(ip).ip for ip in other_ips}


def strip_prefix(address: str) -> str:
    """Return the address without its prefix length."""
    return str(ip_address(address.partition("/")[0]))
