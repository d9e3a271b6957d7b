"""The pod pools that Cilium's BGP control plane announces to routers.

A CiliumBGPAdvertisement (a CiliumBGPPeeringPolicy before Cilium 1.16) selects pools by their labels
and by their name; an entry without a selector announces no pool (cilium/cilium,
Documentation/network/bgp-control-plane).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pools.core import errors
from pools.core.cilium import podippool
from pools.core.kubernetes import label_selector
from pools.core.kubernetes.resources import Resource

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
