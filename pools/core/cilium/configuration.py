"""State of Cilium in a cluster: its ConfigMap, pools, nodes and release.

Beside it: parser of `auto-create-cilium-pod-ip-pools`: the pools that Cilium's operator creates at its
start. The pod pools that Cilium's BGP control plane announces to routers.

The keys are those of the ConfigMap kube-system/cilium-config (pkg/option/config.go of
cilium/cilium); older releases had other names for some.

The chart renders the Helm value autoCreateCiliumPodIPPools as
`default=ipv4-cidrs:10.10.0.0/16,10.11.0.0/16;ipv4-mask-size:24,other=…`. The operator never changes
an existing pool.

A CiliumBGPAdvertisement (a CiliumBGPPeeringPolicy before Cilium 1.16) selects pools by their labels
and by their name; an entry without a selector announces no pool (cilium/cilium,
Documentation/network/bgp-control-plane).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pools.core import addresses, errors, object_reader
from pools.core.cilium import ciliumnode, multipool, pod_pool, podippool
from pools.core.kubernetes import label_selector
from pools.core.kubernetes.resources import Resource

SKIP_MASQUERADE = "ipam.cilium.io/skip-masquerade"  # an annotation of a pool
Release = tuple[int, int]


@dataclass(frozen=True)
class CiliumState:
    """The state of Cilium in a cluster; `config` is None if the ConfigMap could not be read.

    `release` is Cilium's version (`1.18.2`, `v1.19.0-rc.1`), "" if unknown. `announced` has the selectors
    of the pools that BGP announces; None if its objects could not be read.
    """

    config: Mapping[str, str] | None
    pools: Sequence[podippool.PodIPPool] = ()
    nodes: Sequence[ciliumnode.NodeDemand] = ()
    release: str = ""
    announced: Sequence[label_selector.Selector] | None = None

    def text(self, *keys: str, default: str = "") -> str:
        """Return the value of the first key that is set."""
        values = (str((self.config or {}).get(key) or "").strip() for key in keys)
        return next(filter(None, values), default)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Return True for a string that Go parses as true, False for any other string."""
        text = self.text(*keys)
        return text in ("1", "t", "T", "true", "TRUE", "True") if text else default

    def release_at_least(self, release: Release) -> bool:
        """Return True if the release is known and at least `release`."""
        match = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})", self.release)
        return match is not None and (int(match[1]), int(match[2])) >= release

    @property
    def default_pool(self) -> str:
        return self.text(multipool.DEFAULT_POOL, default=pod_pool.DEFAULT)

    def families(self) -> list[int]:
        """Return the families of the pools; without pools, the enabled families."""
        used = {family for pool in self.pools for family in pool.families}
        return sorted(used) or [n for n in (4, 6) if self.flag(f"enable-ipv{n}", default=n == 4)]

    def routing_mode(self) -> str:
        """Return `native` or `tunnel`; before 1.14, native routing was `tunnel: disabled`."""
        before = "native" if self.text("tunnel") == "disabled" else "tunnel"
        return self.text("routing-mode", default=before)

    def masqueraded_families(self) -> list[int]:
        """Return the families whose packets are masqueraded when they leave the cluster."""
        everything = self.flag("masquerade", default=True)  # before 1.10
        return [
            family
            for family in self.families()
            if self.flag(f"enable-ipv{family}-masquerade", default=everything)
        ]

    def native_routing_cidr(self, family: int) -> addresses.Network | None:
        """Return the CIDR without masquerading; None if it is unset or invalid."""
        older = ["native-routing-cidr"] if family == 4 else []
        try:
            text = self.text(f"ipv{family}-native-routing-cidr", *older)
            return addresses.parse_cidr(text, allow_short=True)
        except errors.InvalidInput:
            return None

    def skips_masquerading(self, pool: podippool.PodIPPool) -> bool:
        """Return True if eBPF masquerading skips the pool."""
        if not self.flag("enable-bpf-masquerade"):
            return False
        restricted_to_default = (
            self.flag("only-masquerade-default-pool") and pool.name != self.default_pool
        )
        return restricted_to_default or pool.annotations.get(SKIP_MASQUERADE) == "true"


KEY = "auto-create-cilium-pod-ip-pools"  # of cilium-config; operator/option of cilium/cilium

# A comma separates CIDRs too: only a comma before `name=` separates pools.
_NEXT_POOL = re.compile(r",(?=[^,=;:]+=)")
_PARTS = {
    "ipv4-cidrs": ("ipv4", "cidrs"),
    "ipv4-mask-size": ("ipv4", "maskSize"),
    "ipv6-cidrs": ("ipv6", "cidrs"),
    "ipv6-mask-size": ("ipv6", "maskSize"),
}
_FLAGS = {"allow-first-ip": "allowFirstIP", "allow-last-ip": "allowLastIP"}


def parse(value: object, *, field: str = KEY) -> list[podippool.PodIPPool]:
    """Return the pools in the order of the value; an empty value has none.

    Raises InvalidInput wrong_type, auto_create_syntax, duplicate_key, and those of
    podippool.parse_document.
    """
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text", value)
    text = "".join(value.split())
    if not text:
        return []
    specs: object_reader.Json = {}
    for part in _NEXT_POOL.split(text):
        name, equals, spec = part.partition("=")
        if not (name and equals):
            raise _syntax(field, part)
        if name in specs:
            message = f'pool "{errors.display_value(name)}" is in the map twice'
            raise errors.InvalidInput.for_field(field, "duplicate_key", message, name)
        specs[name] = _spec(spec, field)
    try:
        return podippool.parse_document({podippool.HELM_VALUE: specs})
    except errors.InvalidInput as error:
        raise error.under(field) from None


def _spec(text: str, field: str) -> object_reader.Json:
    spec: object_reader.Json = {}
    for part in filter(None, text.split(";")):
        key, _, value = part.partition(":")
        if key in _FLAGS:
            spec[_FLAGS[key]] = _flag(value, field)
        elif key in _PARTS:
            family, name = _PARTS[key]
            parsed = value.split(",") if name == "cidrs" else _number(value, field)
            spec.setdefault(family, {})[name] = parsed
        else:
            raise _syntax(field, part)
    return spec


def _number(text: str, field: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise _syntax(field, text)
    return int(text)


def _flag(text: str, field: str) -> bool:
    if text not in ("true", "false"):
        raise _syntax(field, text)
    return text == "true"


def _syntax(field: str, text: str) -> errors.InvalidInput:
    message = "write pools as name=ipv4-cidrs:<cidr>,<cidr>;ipv4-mask-size:<number>,name=…"
    return errors.InvalidInput.for_field(field, "auto_create_syntax", message, text)


ADVERTISEMENT = Resource("cilium.io", "v2", "ciliumbgpadvertisements", "CiliumBGPAdvertisement")
ADVERTISEMENT_V2ALPHA1 = Resource(
    "cilium.io", "v2alpha1", "ciliumbgpadvertisements", "CiliumBGPAdvertisement"
)
PEERING_POLICY = Resource(
    "cilium.io", "v2alpha1", "ciliumbgppeeringpolicies", "CiliumBGPPeeringPolicy"
)
NAME_LABEL = "io.cilium.podippool.name"


def pool_selectors(manifests: Iterable[Mapping[str, Any]]) -> list[label_selector.Selector]:
    """Return the pool selectors in these manifests, without malformed ones."""
    selectors = []
    for value in (value for manifest in manifests for value in _selectors(manifest)):
        try:
            selectors.append(label_selector.parse(value))
        except errors.InvalidInput:
            continue  # Cilium's agents reject it too
    return selectors


def is_announced(pool: podippool.PodIPPool, selectors: Iterable[label_selector.Selector]) -> bool:
    """Return True if one of the selectors matches the pool."""
    labels = pool.labels | {NAME_LABEL: pool.name}
    return any(selector.matches(labels) for selector in selectors)


def _selectors(manifest: Mapping[str, Any]) -> Iterator[object]:
    spec = manifest.get("spec")
    for advertisement in _objects(spec, "advertisements"):
        if advertisement.get("advertisementType") == "CiliumPodIPPool":
            yield advertisement.get("selector")
    for router in _objects(spec, "virtualRouters"):
        yield router.get("podIPPoolSelector")


def _objects(value: object, key: str) -> list[dict[str, Any]]:
    entries = value.get(key) if isinstance(value, dict) else None
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )
