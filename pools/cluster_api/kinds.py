"""The handlers of kinds that are read for claims only: Clusters, which may be paused, and IPAddresses."""

from __future__ import annotations

from collections.abc import Sequence

from pools.clusters.reconcile.handler import Handler
from pools.core.cluster_api import contract
from pools.core.cluster_api.contract import ObjectName
from pools.core.kubernetes.resources import Manifest, Resource

_METADATA = (
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)


class Clusters(Handler):
    """Clusters of Cluster API; only what may pause them is kept."""

    kind = contract.CLUSTER_KIND
    resources: Sequence[Resource] = contract.CLUSTERS

    def project(self, manifest: Manifest) -> Manifest:
        metadata = contract.metadata(manifest)
        kept = {name: metadata[name] for name in _METADATA if name in metadata}
        annotations = contract.section(metadata, "annotations")
        if contract.PAUSED in annotations:
            kept["annotations"] = {contract.PAUSED: annotations[contract.PAUSED]}
        paused = contract.section(manifest, "spec").get("paused") is True
        return {
            "apiVersion": manifest.get("apiVersion"),
            "kind": manifest.get("kind"),
            "metadata": kept,
            "spec": {"paused": paused},
        }

    def parse(self, manifest: Manifest) -> ObjectName:
        return contract.object_name(manifest)


class IPAddresses(Handler):
    """IPAddresses of our pools; the handler of claims writes them."""

    kind = contract.ADDRESS_KIND
    resources: Sequence[Resource] = contract.ADDRESSES

    def is_relevant(self, manifest: Manifest) -> bool:
        return contract.pool_key(manifest) is not None

    def parse(self, manifest: Manifest) -> ObjectName:
        return contract.object_name(manifest)
