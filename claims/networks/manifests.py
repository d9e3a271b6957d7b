"""Manifests of networks: the cluster's object, or the one to apply."""

from __future__ import annotations

from typing import Any

from claims.core import resources
from claims.core.networks import udn
from claims.core.networks import udn as network_manifest
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import networks as services
from pools.core import errors
from pools.models import ObservedObject
from pools.platform import documents

_KINDS = {udn.CUDN: resources.CLUSTER_UDN, udn.UDN_KIND: resources.UDN}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA = ("name", "namespace", "labels", "annotations")  # the fields that users set


def applicable_manifest(network: Network) -> dict[str, Any]:
    """Return the (Cluster)UserDefinedNetwork of a network, ready to be applied.

    A network that follows its cluster has the object of the cluster, with all its fields. Raises
    NotFound for a network without such an object.
    """
    resource = _KINDS.get(network.kind)
    if resource is None:
        raise errors.NotFound(f"The network {network.name} has no (Cluster)UserDefinedNetwork.")
    if network.follows_cluster:
        observed_object = ObservedObject.objects.filter(
            cluster=network.cluster_id, kind=resource.kind, uid=network.uid
        ).first()
        if observed_object is not None:
            return _plain(observed_object.manifest)
    if network.topology == udn.LOCALNET:
        raise errors.NotFound(f"The object of the network {network.name} was deleted.")
    return network_manifest.render(services.as_udn(network))


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: manifest["metadata"].get(key) for key in _METADATA}
    if annotations := metadata["annotations"]:
        metadata["annotations"] = {
            key: value for key, value in annotations.items() if key != _LAST_APPLIED
        }
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": manifest["spec"],
    }


def render_yaml(network: UDN) -> str:
    """Return the manifest of a network as YAML, before the network is created."""
    return documents.dump_yaml(network_manifest.render(network))
