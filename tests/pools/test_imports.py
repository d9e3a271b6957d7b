"""Pools from manifests, word for word as people have them: a report per object, all or nothing."""

import pytest

from pools.models import Cluster, Pool
from pools.register import manifests, pool_cidrs
from tests import factories

CFP_TODAY = """
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
CFP_PROPOSED = """
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
DOCUMENTED = """
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
DOCUMENTED_HELM = """
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
SHIPPED = """
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs: [10.20.0.0/16]
    maskSize: 24
    pool:
      - cidr: 10.20.0.0/16
        reservedRanges:
          - {start: 10.20.0.0, end: 10.20.0.99}
          - {start: 10.20.9.0, end: 10.20.9.255}
"""
GREEN = ("10.20.0.0/16", "10.30.0.0/16")
SHAPES = [
    pytest.param(CFP_TODAY, {"green-pool": (GREEN, ())}, id="CFP-42466 today"),
    pytest.param(
        CFP_PROPOSED, {"green-pool": (GREEN, ("10.20.0.0-10.20.0.99",))}, id="CFP-42466 proposed"
    ),
    pytest.param(DOCUMENTED, {"green-pool": ((*GREEN, "fd00::/104"), ())}, id="documented"),
    pytest.param(
        DOCUMENTED_HELM,
        {"default": (("10.10.0.0/16",), ()), "other": (("10.20.0.0/16",), ())},
        id="documented Helm values",
    ),
    pytest.param(
        SHIPPED,
        {"green-pool": (GREEN[:1], ("10.20.0.0-10.20.0.99", "10.20.9.0-10.20.9.255"))},
        id="as Cilium ships it",
    ),
]


def _load(text: str, cluster: Cluster, **settings: bool) -> list[tuple[str, str]]:
    reports = manifests.apply_manifests(text.encode(), cluster, author=factories.BY, **settings)
    return [(report.name, report.result) for report in reports]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("text", "expected"), SHAPES)
def test_every_shape(text: str, expected: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]):
    cluster = factories.cluster()
    assert _load(text, cluster, dry_run=True) == [(name, "created") for name in expected]
    assert not Pool.objects.exists()
    assert _load(text, cluster) == [(name, "created") for name in expected]
    for name, (cidrs, reserved) in expected.items():
        pool = Pool.objects.get(cluster=cluster, name=name)
        mask = {4: 24, 6: 120}
        assert pool_cidrs.families(pool) == factories.families(*cidrs, mask=mask, reserved=reserved)
        assert (pool.category, pool.cooldown_seconds) == ("pod", 0)
    assert _load(text, cluster) == [(name, "unchanged") for name in expected]


REFUSED = [
    pytest.param(CFP_TODAY.replace("24", "25"), "immutable_in_use", id="mask size"),
    pytest.param(CFP_TODAY.replace("10.20.0.0", "10.21.0.0"), "cidr_in_use", id="CIDR in use"),
    pytest.param(
        CFP_TODAY.replace("  ipv4:", "  allowFirstIP: true\n  ipv4:"),
        "immutable_in_use",
        id="first address",
    ),
]


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_a_change_that_the_rules_forbid(text: str, code: str) -> None:
    cluster = factories.cluster()
    _load(CFP_TODAY, cluster)
    factories.take(Pool.objects.get())
    (report,) = manifests.apply_manifests(text.encode(), cluster, author=factories.BY)
    assert (report.result, [problem.code for problem in report.problems]) == ("refused", [code])
    assert pool_cidrs.families(Pool.objects.get()) == factories.families(*GREEN, mask=24)


def test_a_pool_of_another_category_is_not_taken_over() -> None:
    pool = factories.pool("10.0.0.0/24", name="green-pool", category="vm")
    assert _load(CFP_TODAY, pool.cluster) == [("green-pool", "refused")]
