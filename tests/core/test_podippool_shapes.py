"""CiliumPodIPPool manifests in every shape, beginning with the documents' own examples."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from pools.core import addresses
from pools.core.cilium import podippool
from pools.platform import documents


def _read(text: str) -> list[podippool.PodIPPool]:
    return [
        pool
        for document in documents.load_yaml(text)
        for pool in podippool.parse_document(document.data)
    ]


def _family(*entries: tuple[str, ...], mask_size: int) -> podippool.Family:
    return podippool.Family(
        tuple(
            podippool.CidrEntry(ip_network(cidr), tuple(map(addresses.parse_range, ranges)))
            for cidr, *ranges in entries
        ),
        mask_size,
    )


CURRENT = """
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
"""
PROPOSED = """
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - cidr: 10.20.0.0/16
        reservedRange: 10.20.0.0-10.20.0.99
      - cidr: 10.30.0.0/16
    maskSize: 24
"""
DUAL_STACK = """
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
  ipv6:
    cidrs:
      - fd00::/104
    maskSize: 120
"""
SHIPPED = """
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
    pool:
      - cidr: 10.20.0.0/16
        reservedRanges:
          - start: 10.20.0.0
            end: 10.20.0.99
          - {start: 10.20.9.0, end: 10.20.9.0}
      - cidr: 10.30.0.0/16
"""
PLAIN_V4 = _family(("10.20.0.0/16",), ("10.30.0.0/16",), mask_size=24)


@pytest.mark.parametrize(
    ("text", "families"),
    [
        pytest.param(CURRENT, {4: PLAIN_V4}, id="cfp-42466-current"),
        pytest.param(
            PROPOSED,
            {4: _family(("10.20.0.0/16", "10.20.0.0-10.20.0.99"), ("10.30.0.0/16",), mask_size=24)},
            id="cfp-42466-proposed",
        ),
        pytest.param(
            DUAL_STACK, {4: PLAIN_V4, 6: _family(("fd00::/104",), mask_size=120)}, id="documented"
        ),
        pytest.param(
            SHIPPED,
            {
                4: _family(
                    ("10.20.0.0/16", "10.20.0.0-10.20.0.99", "10.20.9.0-10.20.9.0"),
                    ("10.30.0.0/16",),
                    mask_size=24,
                )
            },
            id="shipped",
        ),
    ],
)
def test_the_shapes_of_one_pool(text: str, families: dict[int, podippool.Family]) -> None:
    (pool,) = _read(text)
    assert (pool.name, pool.families, pool.source) == ("green-pool", families, "")


HELM = """
ipam:
  mode: multi-pool
  operator:
    autoCreateCiliumPodIPPools:
      default:
        ipv4:
          cidrs:
            - 10.10.0.0/16
          maskSize: 24
      other:
        ipv4:
          cidrs:
            - 10.20.0.0/16
          maskSize: 24
"""


def _indented(text: str, *parents: str) -> str:
    for parent in reversed(parents):
        text = f"{parent}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    return text


POOLS = "\n".join(line[6:] for line in HELM.splitlines()[5:])
VALUE = "autoCreateCiliumPodIPPools"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        pytest.param(HELM, f"ipam.operator.{VALUE}.", id="documented-values"),
        pytest.param(
            _indented(HELM, "cilium"), f"cilium.ipam.operator.{VALUE}.", id="chart-of-charts"
        ),
        pytest.param(_indented(POOLS, "operator", VALUE), f"operator.{VALUE}.", id="from-operator"),
        pytest.param(_indented(POOLS, VALUE), f"{VALUE}.", id="from-the-value"),
        pytest.param(POOLS, "", id="the-map-alone"),
    ],
)
def test_helm_values(text: str, source: str) -> None:
    pools = _read(text)
    assert [pool.name for pool in pools] == ["default", "other"]
    assert [pool.source for pool in pools] == [f"{source}default", f"{source}other"]
    assert [pool.api_version for pool in pools] == ["", ""]
    assert pools[0].families == {4: _family(("10.10.0.0/16",), mask_size=24)}


@pytest.mark.parametrize("kind", ["List", "CiliumPodIPPoolList"])
def test_lists(kind: str) -> None:
    items = [document.data for document in documents.load_yaml(f"{CURRENT}---{SHIPPED}")]
    pools = podippool.parse_document({"apiVersion": "v1", "kind": kind, "items": items})
    assert [pool.source for pool in pools] == ["items.0", "items.1"]
    assert [pool.api_version for pool in pools] == ["cilium.io/v2alpha1", "cilium.io/v2"]
    assert podippool.parse_document({"apiVersion": "v1", "kind": kind, "items": None}) == []


def test_the_rest_of_a_pool_is_kept() -> None:
    selector = {"matchLabels": {"team": "blue"}}
    (pool,) = podippool.parse_document(
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumPodIPPool",
            "metadata": {
                "name": "blue",
                "uid": "0a",
                "labels": {"a": "b"},
                "annotations": {"ipam.cilium.io/skip-masquerade": "true"},
            },
            "spec": {
                "ipv6": {"cidrs": ["fd00::/104"], "maskSize": 120},
                "allowFirstIP": True,
                "allowLastIP": False,
                "podSelector": selector,
                "namespaceSelector": {},
            },
        }
    )
    assert (pool.allow_first_ip, pool.allow_last_ip) == (True, False)
    assert pool.labels == {"a": "b"}
    assert pool.annotations == {"ipam.cilium.io/skip-masquerade": "true"}
    assert (pool.pod_selector, pool.namespace_selector) == (selector, {})


def test_what_a_cluster_has_accepted_may_have_newer_fields() -> None:
    doc: dict[str, Any] = documents.load_yaml(SHIPPED)[0].data
    doc["spec"]["ipv4"]["pool"][0]["weight"] = 7
    doc["spec"]["newer"] = {}
    (pool,) = podippool.parse_document(doc, strict=False)
    assert len(pool.families[4].cidrs[0].reserved) == 2
