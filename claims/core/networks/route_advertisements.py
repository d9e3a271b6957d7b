"""Parser of RouteAdvertisements: OVN-Kubernetes announces routes of the networks they select by BGP.

They select the cluster's default network and ClusterUserDefinedNetworks by label; UserDefinedNetworks
and NADs cannot be selected (ovn-kubernetes/docs/features/bgp-integration/route-advertisements.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pools.core import object_reader
from pools.core.kubernetes import label_selector

_CUDNS = "ClusterUserDefinedNetworks"
_POD_NETWORK = "PodNetwork"


@dataclass(frozen=True)
class RouteAdvertisements:
    """One object: the labels of the networks that it selects, its advertisements, and its acceptance.

    `accepted` is None until OVN-Kubernetes reports a status.
    """

    name: str
    selectors: tuple[label_selector.Selector, ...]
    pod_network: bool
    accepted: bool | None
    message: str = ""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return True if pod routes of a ClusterUserDefinedNetwork with these labels are announced."""
        return self.pod_network and any(selector.matches(labels) for selector in self.selectors)


def parse(manifest: object_reader.Json) -> RouteAdvertisements:
    """Parse an object of a cluster.

    Raises InvalidInput with all problems: required, wrong_type, and those of label selectors.
    """
    report = object_reader.ProblemReport(strict=False)
    doc = object_reader.Fields(manifest, "", report)
    spec, selectors = doc.section("spec"), []
    for part in spec.objects("networkSelectors"):
        if part.data.get("networkSelectionType") == _CUDNS:
            networks = part.section("clusterUserDefinedNetworkSelector")
            selectors.append(networks.parse("networkSelector", label_selector.parse))
    name = doc.section("metadata").data.get("name")
    accepted, message = _acceptance(doc.section("status"))
    report.raise_any()
    return RouteAdvertisements(
        name=str(name),
        selectors=tuple(selector for selector in selectors if selector is not None),
        pod_network=any(
            advertisement == _POD_NETWORK for _, advertisement in spec.items("advertisements")
        ),
        accepted=accepted,
        message=message,
    )


def _acceptance(status: object_reader.Fields) -> tuple[bool | None, str]:
    for condition in status.objects("conditions"):
        if condition.data.get("type") == "Accepted":
            state: Any = condition.data.get("status")
            accepted = {"True": True, "False": False}.get(str(state))
            return accepted, str(condition.data.get("message") or "")
    return None, ""
