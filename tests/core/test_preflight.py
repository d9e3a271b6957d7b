"""The pools that Cilium's operator creates at its start, and the conditions of multi-pool IPAM, each with what meets it."""

from dataclasses import replace
from typing import Any

import pytest

from pools.core import errors
from pools.core.cilium import configuration, preflight
from pools.core.cilium.configuration import CiliumState
from pools.core.cilium.preflight import PreflightFinding
from tests.core.pod_cidrs import node, pool


@pytest.mark.parametrize(
    ("text", "pools"),
    [
        ("", []),
        (" \n", []),
        (
            "default=ipv4-cidrs:10.20.30.0/27,192.168.1.0/27;ipv4-mask-size:27",
            [("default", {4: (["10.20.30.0/27", "192.168.1.0/27"], 27)})],
        ),
        (
            "default=ipv4-cidrs: 10.10.0.0/16; ipv4-mask-size: 24;,"
            "other=ipv6-cidrs:fd00::/104;ipv6-mask-size:120;allow-first-ip:true",
            [("default", {4: (["10.10.0.0/16"], 24)}), ("other", {6: (["fd00::/104"], 120)})],
        ),
    ],
)
def test_pools(text: str, pools: list) -> None:
    pod_ippools = configuration.parse(text)
    assert [
        (
            pool.name,
            {
                family: ([str(entry.cidr) for entry in part.cidrs], part.mask_size)
                for family, part in pool.families.items()
            },
        )
        for pool in pod_ippools
    ] == pools
    assert [pool.allow_first_ip for pool in pod_ippools] == [
        pool.name == "other" for pool in pod_ippools
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "wrong_type"),
        ("default", "auto_create_syntax"),
        ("=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24", "auto_create_syntax"),
        ("a=ipv4-cidr:10.0.0.0/16;ipv4-mask-size:24", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:x", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24;allow-last-ip:yes", "auto_create_syntax"),
        ("a=ipv4-cidrs:10.0.0.1/16;ipv4-mask-size:24", "host_bits_set"),
        ("a=ipv4-cidrs:10.0.0.0/16", "required"),
        ("a=", "required"),
        (
            "a=ipv4-cidrs:10.0.0.0/16;ipv4-mask-size:24,a=ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:24",
            "duplicate_key",
        ),
    ],
)
def test_refused(text: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        configuration.parse(text)
    assert caught.value.code == code
    assert caught.value.problems[0].field.startswith("auto-create-cilium-pod-ip-pools")


DEFAULT = pool("default", "10.10.0.0/16")
OTHER = pool("other", "10.20.0.0/16", mask=26)
GOOD = {
    "ipam": "multi-pool",
    "routing-mode": "native",
    "auto-direct-node-routes": "true",
    "enable-endpoint-routes": "true",
    "enable-local-node-route": "false",
    "enable-wireguard": "true",
    "enable-ipv4-masquerade": "true",
    "enable-bpf-masquerade": "true",
    "ipv4-native-routing-cidr": "10.0.0.0/8",
    "ipam-multi-pool-pre-allocation": "default=8,other=4",
    "auto-create-cilium-pod-ip-pools": "default=ipv4-cidrs:10.10.0.0/16;ipv4-mask-size:24",
}
BGP: dict[str, str | None] = {
    "auto-direct-node-routes": "false",
    "enable-bgp-control-plane": "true",
}


def _advertisement(selector: object, kind: str = "CiliumPodIPPool") -> dict[str, Any]:
    entry = {"advertisementType": kind, "selector": selector}
    return {"metadata": {"name": "a"}, "spec": {"advertisements": [entry]}}


def _found(rule: str, changes: dict[str, str | None], **state: Any) -> PreflightFinding:
    config = {key: value for key, value in (GOOD | changes).items() if value is not None}
    state.setdefault("pools", [DEFAULT, OTHER])
    findings = {finding.rule: finding for finding in preflight.check(CiliumState(config, **state))}
    return findings[rule]


def test_a_good_cluster() -> None:
    findings = preflight.check(CiliumState(GOOD, [DEFAULT, OTHER]))
    assert {finding.rule: finding.result.value for finding in findings} == {
        finding.rule: "ok" for finding in findings
    }
    assert not any(finding.advice for finding in findings)
    assert len(findings) == 12


@pytest.mark.parametrize(
    ("rule", "changes", "result"),
    [
        ("ipam-mode", {"ipam": "cluster-pool"}, "violated"),
        ("ipam-mode", {"ipam": None}, "violated"),
        ("native-routing", {"routing-mode": "tunnel"}, "violated"),
        ("native-routing", {"routing-mode": None}, "violated"),
        ("native-routing", {"routing-mode": None, "tunnel": "disabled"}, "ok"),
        ("native-routing", {"routing-mode": None, "tunnel": "vxlan"}, "violated"),
        ("pod-cidr-routes", {"auto-direct-node-routes": None}, "warning"),
        ("pod-cidr-routes", {"auto-direct-node-routes": "false"}, "warning"),
        ("pod-cidr-routes", {"auto-direct-node-routes": None, "routing-mode": "tunnel"}, "ok"),
        ("pod-cidr-routes", BGP, "unknown"),
        ("pod-cidr-routes", BGP | {"auto-direct-node-routes": "true"}, "ok"),
        ("per-endpoint-routes", {"enable-local-node-route": None}, "violated"),
        ("per-endpoint-routes", {"enable-local-node-route": "true"}, "violated"),
        ("per-endpoint-routes", {"enable-endpoint-routes": "false"}, "violated"),
        ("encryption", {"enable-ipsec": "true"}, "violated"),
        ("encryption", {"enable-wireguard": None}, "ok"),
        ("masquerading", {"enable-bpf-masquerade": "false"}, "violated"),
        (
            "masquerading",
            {"enable-bpf-masquerade": None, "egress-masquerade-interfaces": "eth0"},
            "ok",
        ),
        ("masquerading", {"enable-bpf-masquerade": None, "enable-ipv4-masquerade": "0"}, "ok"),
        (
            "masquerading",
            {"enable-bpf-masquerade": None, "enable-ipv4-masquerade": None, "masquerade": "false"},
            "ok",
        ),
        ("native-routing-cidr", {"ipv4-native-routing-cidr": None}, "warning"),
        ("native-routing-cidr", {"ipv4-native-routing-cidr": "many"}, "warning"),
        ("native-routing-cidr", {"ipv4-native-routing-cidr": "10.10.0.0/16"}, "warning"),
        ("native-routing-cidr", {"ipv4-native-routing-cidr": "10.10.0.0/24"}, "warning"),
        (
            "native-routing-cidr",
            {"ipv4-native-routing-cidr": None, "native-routing-cidr": "10.0.0.0/8"},
            "ok",
        ),
        (
            "native-routing-cidr",
            {"ipv4-native-routing-cidr": "10.10.0.0/16", "only-masquerade-default-pool": "true"},
            "ok",
        ),
        (
            "native-routing-cidr",
            {"ipv4-native-routing-cidr": None, "enable-ip-masq-agent": "true"},
            "ok",
        ),
        (
            "native-routing-cidr",
            {"enable-ip-masq-agent": "true", "enable-bpf-masquerade": None},
            "violated",
        ),
        ("native-routing-cidr", {"enable-ipv4-masquerade": "false"}, "ok"),
        ("pre-allocation", {"ipam-multi-pool-pre-allocation": None}, "ok"),
        ("pre-allocation", {"ipam-multi-pool-pre-allocation": "x=many"}, "violated"),
        ("pre-allocation", {"ipam-multi-pool-pre-allocation": "gone=1"}, "violated"),
        ("pre-allocation", {"ipam-multi-pool-pre-allocation": "gone=0"}, "ok"),
        ("default-pool", {"ipam-default-ip-pool": "gone"}, "warning"),
        ("default-pool", {"ipam-default-ip-pool": "other"}, "ok"),
        ("auto-create", {"auto-create-cilium-pod-ip-pools": None}, "ok"),
        ("auto-create", {"auto-create-cilium-pod-ip-pools": "default"}, "violated"),
        (
            "auto-create",
            {"auto-create-cilium-pod-ip-pools": "gone=ipv4-cidrs:10.9.0.0/16;ipv4-mask-size:24"},
            "warning",
        ),
        (
            "auto-create",
            {"auto-create-cilium-pod-ip-pools": "other=ipv4-cidrs:10.9.0.0/16;ipv4-mask-size:26"},
            "warning",
        ),
    ],
)
def test_rules(rule: str, changes: dict[str, str | None], result: str) -> None:
    finding = _found(rule, changes)
    assert finding.result.value == result
    assert bool(finding.advice) == (result != "ok")


@pytest.mark.parametrize(
    ("rule", "changes", "release"),
    [
        ("native-routing", {"routing-mode": "tunnel"}, (1, 18)),
        ("per-endpoint-routes", {"enable-endpoint-routes": None}, (1, 18)),
        ("encryption", {"enable-ipsec": "true"}, (1, 19)),
    ],
)
def test_limitations_that_are_gone(
    rule: str, changes: dict[str, str | None], release: tuple[int, int]
) -> None:
    for text, result in (
        (f"v{release[0]}.{release[1]}.0-rc.1", "ok"),
        ("1.100.0", "ok"),
        (f"{release[0]}.{release[1] - 1}.9", "violated"),
        ("1.9.0", "violated"),
        ("latest", "violated"),
    ):
        assert _found(rule, changes, release=text).result.value == result


def test_a_pool_that_is_never_masqueraded() -> None:
    skipped = replace(OTHER, annotations={"ipam.cilium.io/skip-masquerade": "true"})
    changes = {"ipv4-native-routing-cidr": "10.10.0.0/16"}
    preflight_finding = _found("native-routing-cidr", changes, pools=[DEFAULT, skipped])
    assert preflight_finding.result.value == "ok"
    iptables = changes | {"enable-bpf-masquerade": "false"}
    preflight_finding = _found("native-routing-cidr", iptables, pools=[DEFAULT, skipped])
    assert preflight_finding.observation == "not in the native-routing CIDR: 10.20.0.0/16"


def test_each_family_is_looked_at() -> None:
    dual = pool("dual", "fd00::/104", mask=120)
    assert _found("native-routing-cidr", {}, pools=[dual]).result.value == "warning"
    covered = {"ipv6-native-routing-cidr": "fd00::/64"}
    assert _found("native-routing-cidr", covered, pools=[dual]).result.value == "ok"
    assert _found("masquerading", {"enable-bpf-masquerade": None}, pools=[]).advice


def test_overlapping_pools() -> None:
    inside = pool("inside", "10.10.7.0/24")
    finding = _found("overlapping-pools", {}, pools=[inside, OTHER, DEFAULT])
    assert finding.result.value == "violated"
    assert finding.observation == "10.10.7.0/24 of inside in 10.10.0.0/16 of default"
    many = [pool(f"p{number}", "10.10.0.0/16") for number in range(60)]
    assert _found("overlapping-pools", {}, pools=many).observation.endswith(" and 995 more")


def test_what_the_operator_cannot_hold() -> None:
    wide = pool("wide", "fd00::/64", mask=120)
    assert _found("ipv6-mask-size", {}, pools=[wide]).result.value == "violated"
    assert _found("ipv6-mask-size", {}, pools=[pool("a", "fd00::/104", mask=120)]).advice == ""


def test_without_the_config() -> None:
    inside = pool("inside", "10.10.7.0/24")
    using, idle = node(demands={"default": 8}), node("n2")
    results = {
        finding.rule: finding.result.value
        for finding in preflight.check(CiliumState(None, [inside, DEFAULT], [using, idle]))
    }
    assert results.pop("overlapping-pools") == "violated"
    assert results.pop("ipv6-mask-size") == "ok"
    assert set(results.values()) == {"unknown"}
    preflight_finding = preflight.check(CiliumState(None, [DEFAULT], [using]))[0]
    assert (preflight_finding.result.value, preflight_finding.observation) == (
        "ok",
        "all 1 nodes use spec.ipam.pools",
    )


@pytest.mark.parametrize(
    ("manifests", "silent"),
    [
        ([], "default, other"),
        ([_advertisement({"matchLabels": {}})], ""),
        ([_advertisement({"matchExpressions": [
            {"key": "x", "operator": "NotIn", "values": ["never"]}]})], ""),
        ([_advertisement({"matchLabels": {"io.cilium.podippool.name": "other"}})], "default"),
        ([_advertisement({"matchLabels": {"tier": "front"}})], "other"),
        ([_advertisement(None)], "default, other"),
        ([_advertisement({}, "Service")], "default, other"),
        ([_advertisement({"matchExpressions": "all"}), _advertisement({})], ""),
        ([{"spec": {"virtualRouters": [{"podIPPoolSelector": {}}]}}], ""),
        ([{"spec": {"virtualRouters": [{"localASN": 65000}]}}, {}, {"spec": []}], "default, other"),
    ],
    ids=["none", "empty", "not-in", "name", "label", "no-selector", "services", "malformed",
         "policy", "other"],
)  # fmt: skip
@pytest.mark.parametrize("direct", ["true", "false"])
def test_pools_that_bgp_announces(manifests: list[Any], silent: str, direct: str) -> None:
    changes: dict[str, str | None] = BGP | {"auto-direct-node-routes": direct}
    pools = [replace(DEFAULT, labels={"tier": "front"}), OTHER]
    announced = configuration.pool_selectors(manifests)
    preflight_finding = _found("pod-cidr-routes", changes, pools=pools, announced=announced)
    assert preflight_finding.result.value == ("warning" if silent else "ok")
    assert preflight_finding.observation.endswith(
        f"not announced: {silent}" if silent else "all pools are announced"
    )
