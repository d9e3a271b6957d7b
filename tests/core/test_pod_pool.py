"""Label selectors, and which pool a pod gets: pod over namespace annotation, over selectors, over the default."""

from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import pod_pool, podippool
from pools.core.cilium.pod_pool import ObjectMetadata, PoolChoice
from pools.core.kubernetes import label_selector
from tests.core.pod_cidrs import pool

LABELS = {"app": "web", "tier": "front", "empty": ""}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {}, "matchExpressions": []}, True),
        ({"matchLabels": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"absent": ""}}, False),
        ({"matchLabels": {"empty": ""}}, True),
        (_expression("app", "In", "api", "web"), True),
        (_expression("absent", "In", "api"), False),
        (_expression("app", "NotIn", "api"), True),
        (_expression("app", "NotIn", "web"), False),
        (_expression("absent", "NotIn", "web"), True),
        (_expression("empty", "Exists"), True),
        (_expression("absent", "Exists"), False),
        (_expression("absent", "DoesNotExist"), True),
        (_expression("app", "DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **_expression("tier", "In", "back")}, False),
    ],
)
def test_matches(selector: dict[str, Any], matches: bool) -> None:
    assert label_selector.parse(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "field", "code"),
    [
        ([], "s", "object_expected"),
        ({"matchLabel": {}}, "s.matchLabel", "unknown_field"),
        ({"matchLabels": {"a": 1}}, "s.matchLabels.a", "wrong_type"),
        (_expression("a", "in", "b"), "s.matchExpressions.0.operator", "selector_operator"),
        ({"matchExpressions": [{"key": "a", "operator": []}]}, None, "selector_operator"),
        (_expression("a", "In"), "s.matchExpressions.0.values", "selector_values"),
        (_expression("a", "Exists", "b"), "s.matchExpressions.0.values", "selector_values"),
        (
            {"matchExpressions": [{"operator": "Exists"}]},
            "s.matchExpressions.0.key",
            "required",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "s.matchExpressions.0.values.0",
            "wrong_type",
        ),
    ],
)
def test_refused(selector: object, field: str | None, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        label_selector.parse(selector, field="s")
    (problem,) = caught.value.problems
    assert (problem.field if field else None, problem.code) == (field, code)


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
