"""A network as the object that makes it: the cluster's own, or the one that is to be applied."""

from __future__ import annotations

from typing import Any

from claims.core import resources
from claims.core.networks import manifest as network_manifest
from claims.core.networks import udn
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import networks as services
from pools.core import errors
from pools.models import ObservedObject
from pools.platform import documents

_KINDS = {udn.CUDN: resources.CLUSTER_UDN, udn.UDN_KIND: resources.UDN}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA = ("name", "namespace", "labels", "annotations")  # what people write themselves


def applicable_manifest(network: Network) -> dict[str, Any]:
    """The (Cluster)UserDefinedNetwork, ready to be applied.

    What follows its cluster is told as the cluster has it, also in what the register does not keep.
    Raises NotFound for a network that no such object makes.
    """
    resource = _KINDS.get(network.kind)
    if resource is None:
        raise errors.NotFound(f"No (Cluster)UserDefinedNetwork makes the network {network.name}.")
    if network.follows_cluster:
        observed_object = ObservedObject.objects.filter(
            cluster=network.cluster_id, kind=resource.kind, uid=network.uid
        ).first()
        if observed_object is not None:
            return _plain(observed_object.manifest)
    if network.topology == udn.LOCALNET:
        raise errors.NotFound(f"The object of the network {network.name} is not known any more.")
    return network_manifest.render(services.as_udn(network))


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: manifest["metadata"].get(key) for key in _METADATA}
    notes = metadata["annotations"]
    if notes:
        notes = {key: value for key, value in notes.items() if key != _LAST_APPLIED}
        metadata["annotations"] = notes
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": manifest["spec"],
    }


def render_yaml(network: UDN) -> str:
    """What would be written for a network that is not made yet."""
    return documents.dump_yaml(network_manifest.render(network))
