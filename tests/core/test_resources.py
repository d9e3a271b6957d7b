"""Where objects are on an API server."""

from __future__ import annotations

import pytest

from pools.core.kubernetes import resources


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (resources.CILIUM_POD_IP_POOL, {}, "/apis/cilium.io/v2/ciliumpodippools"),
        (
            resources.CILIUM_POD_IP_POOL_V2ALPHA1,
            {"name": "blue"},
            "/apis/cilium.io/v2alpha1/ciliumpodippools/blue",
        ),
        (
            resources.CILIUM_NODE,
            {"name": "n1", "subresource": "status"},
            "/apis/cilium.io/v2/ciliumnodes/n1/status",
        ),
        (resources.NAMESPACE, {"name": "kube-system"}, "/api/v1/namespaces/kube-system"),
        (resources.POD, {}, "/api/v1/pods"),
        (resources.POD, {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (
            resources.CONFIG_MAP,
            {"name": "cilium-config", "namespace": "kube-system"},
            "/api/v1/namespaces/kube-system/configmaps/cilium-config",
        ),
        (resources.NODE, {"name": "../pods"}, "/api/v1/nodes/..%2Fpods"),
    ],
)
def test_paths(resource: resources.Resource, arguments: dict[str, str], path: str) -> None:
    assert resource.path(**arguments) == path


def test_api_versions() -> None:
    assert resources.NODE.api_version == "v1"
    assert resources.CILIUM_NODE.api_version == "cilium.io/v2"


@pytest.mark.parametrize(
    ("resource", "arguments"),
    [
        (resources.NODE, {"namespace": "a"}),
        (resources.POD, {"name": "a"}),
        (resources.NODE, {"subresource": "status"}),
    ],
)
def test_what_no_api_server_has(resource: resources.Resource, arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        resource.path(**arguments)
