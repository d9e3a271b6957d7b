"""Which pool a pod gets: pod over namespace annotation, over selectors, over the default."""

from __future__ import annotations

from typing import Any

import pytest

from pools.core.cilium import pod_pool, podippool
from pools.core.cilium.pod_pool import ObjectMetadata, PoolChoice
from tests.core.pod_cidrs import pool

IP, V4, V6 = (f"ipam.cilium.io/{key}" for key in ("ip-pool", "ipv4-pool", "ipv6-pool"))
REQUIRE = "ipam.cilium.io/require-pool-match"


def _pool(name: str, *cidrs: str, pods: Any = None, namespaces: Any = None) -> podippool.PodIPPool:
    plain = pool(name, *(cidrs or ("10.0.0.0/16", "fd00::/16")))
    return podippool.PodIPPool(
        name, plain.families, pod_selector=pods, namespace_selector=namespaces
    )


PLAIN = [_pool(name) for name in ("default", "a", "b")]


def _choose(
    pod: dict[str, str],
    namespace: dict[str, str],
    pools: list[podippool.PodIPPool] | None = None,
    **options: Any,
) -> list[PoolChoice]:
    return pod_pool.choose(
        ObjectMetadata("web-1", {"app": "web"}, pod),
        ObjectMetadata("shop", {"team": "blue"}, namespace),
        PLAIN if pools is None else pools,
        **options,
    )


@pytest.mark.parametrize(
    ("pod", "namespace", "v4", "v6"),
    [
        ({}, {}, "default", "default"),
        ({IP: "a"}, {}, "a", "a"),
        ({}, {IP: "b"}, "b", "b"),
        ({IP: "a"}, {IP: "b"}, "a", "a"),
        ({IP: ""}, {IP: "b"}, "b", "b"),
        ({IP: "a", V4: "b"}, {}, "b", "a"),
        ({V6: "a"}, {IP: "b"}, "b", "a"),
        ({IP: "a"}, {V4: "b", V6: "b"}, "a", "a"),
    ],
)
def test_annotations(pod: dict[str, str], namespace: dict[str, str], v4: str, v6: str) -> None:
    choices = _choose(pod, namespace)
    assert [(choice.family, choice.pool, choice.problem) for choice in choices] == [
        (4, v4, ""),
        (6, v6, ""),
    ]


def test_the_reasons_are_sentences() -> None:
    (choice,) = _choose({}, {IP: "b"}, families=[4])
    assert choice.reasons == (
        "The pod has no annotation for a pool of IPv4.",
        f"The namespace has the annotation {IP}=b.",
    )
    (choice,) = _choose({}, {}, families=[6], default="a")
    assert choice.pool == "a"
    assert choice.reasons[2:] == (
        "No selector of an IPv6 pool matches.",
        'The default pool "a" is used.',
    )


WEB, BLUE = {"matchLabels": {"app": "web"}}, {"matchLabels": {"team": "blue"}}
NAMED = {"matchLabels": {"io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.namespace": "shop"}}


@pytest.mark.parametrize(
    ("pods", "namespaces", "chosen"),
    [
        (WEB, None, "x"),
        (None, BLUE, "x"),
        (WEB, BLUE, "x"),
        ({}, None, "x"),
        (NAMED, None, "x"),
        (BLUE, None, "default"),
        (WEB, WEB, "default"),
        (None, None, "default"),
        ({"matchExpressions": [{"key": "app", "operator": "?"}]}, None, "default"),
    ],
)
def test_selectors(pods: Any, namespaces: Any, chosen: str) -> None:
    pools = [*PLAIN, _pool("x", pods=pods, namespaces=namespaces)]
    assert {choice.pool for choice in _choose({}, {}, pools)} == {chosen}
    assert {choice.pool for choice in _choose({}, {IP: "a"}, pools)} == {"a"}


def test_exactly_one_pool_matches_in_each_family() -> None:
    pools = [_pool("y", "10.0.0.0/16", pods=WEB), _pool("x", pods={}), *PLAIN]
    v4, v6 = _choose({}, {}, pools)
    assert (v4.pool, v6.pool, v6.problem) == ("", "x", "")
    assert v4.problem == "the selectors of several IPv4 pools match the pod: x, y"


@pytest.mark.parametrize(
    ("pod", "namespace", "gets"),
    [
        ({REQUIRE: "true"}, {}, ""),
        ({}, {REQUIRE: "true"}, ""),
        ({REQUIRE: "false"}, {}, "default"),
        ({REQUIRE: "true", IP: "a"}, {}, "a"),
    ],
)
def test_a_match_may_be_required(pod: dict[str, str], namespace: dict[str, str], gets: str) -> None:
    for choice in _choose(pod, namespace):
        assert choice.pool == gets
        assert bool(choice.problem) == (not gets)


def test_a_pool_that_cannot_serve() -> None:
    v4, v6 = _choose({IP: "only4"}, {}, [_pool("only4", "10.0.0.0/16")])
    assert (v4.pool, v4.problem) == ("only4", "")
    assert v6.pool == "only4"
    assert "no IPv6 CIDRs" in v6.problem
    assert 'no pool "gone"' in _choose({IP: "gone"}, {})[0].problem
