"""The kinds of Cluster API that are read and written, in both versions of its contract, and our pools."""

from __future__ import annotations

from pools.core.cluster_api import contract
from pools.core.kubernetes.resources import Resource

_IPAM_GROUP = "ipam.cluster.x-k8s.io"
_SHOWS = "addresses of Cluster API"


def _resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group, version, plural, kind, namespaced=namespaced, shows=_SHOWS, reads_for=_SHOWS
    )


# The version that is preferred first.
CLAIMS = tuple(
    _resource(_IPAM_GROUP, version, "ipaddressclaims", contract.CLAIM_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
ADDRESSES = tuple(
    _resource(_IPAM_GROUP, version, "ipaddresses", contract.ADDRESS_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
CLUSTERS = tuple(
    _resource("cluster.x-k8s.io", version, "clusters", contract.CLUSTER_KIND, namespaced=True)
    for version in ("v1beta2", "v1beta1")
)
POOLS = {
    contract.POOL_KIND: _resource(
        contract.GROUP, "v1alpha1", "cadastrepools", contract.POOL_KIND, namespaced=True
    ),
    contract.GLOBAL_POOL_KIND: _resource(
        contract.GROUP,
        "v1alpha1",
        "globalcadastrepools",
        contract.GLOBAL_POOL_KIND,
        namespaced=False,
    ),
}
