"""Readiness checks for Cilium's multi-pool mode.

A rule that depends on an unreadable ConfigMap has the result UNKNOWN; nothing is guessed. Newer releases
of Cilium lift some documented limitations; these apply unless the release is known to be new enough.
"""

import enum
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pools.core import cidr_sets, errors
from pools.core.cilium import configuration, multipool, podippool
from pools.core.cilium.configuration import SKIP_MASQUERADE, CiliumState, Release

SHOWN = 5  # names or networks in one message
MOST_PAIRS = 1000  # limit of reported overlapping CIDRs
# Limit of the operator's IPv6 CIDR sets (New CIDR set failed; the node CIDR size is too big).
MOST_IPV6_BITS = 16
TUNNEL_SINCE: Release = (1, 18)  # cilium/cilium#38483
LOCAL_ROUTES_SINCE: Release = (1, 18)  # cilium/cilium#40191
IPSEC_SINCE: Release = (1, 19)  # cilium/cilium#39442 for tunnels, #40460 for native routing


class RuleResult(enum.Enum):
    """The result of a rule."""

    OK = "ok"
    WARNING = "warning"  # works, but probably not as intended
    VIOLATED = "violated"  # does not work
    UNKNOWN = "unknown"  # required data could not be read


@dataclass(frozen=True)
class PreflightFinding:
    """The result of one rule: what was observed, and advice ("" if none is needed)."""

    rule: str
    result: RuleResult
    observation: str
    advice: str = ""


_RuleAnswer = tuple[RuleResult, str, str]


def check(cilium_state: CiliumState) -> list[PreflightFinding]:
    """Return one finding for each rule, always in the same order."""
    config_checks = (
        (rule, answer if cilium_state.config is not None else _config_unknown)
        for rule, answer in _CONFIG
    )
    findings = [
        PreflightFinding(rule, *answer(cilium_state)) for rule, answer in (*config_checks, *_POOLS)
    ]
    if cilium_state.config is None and cilium_state.nodes:
        nodes_using_pools = sum(
            bool(node.requested or node.allocated) for node in cilium_state.nodes
        )
        if nodes_using_pools == len(cilium_state.nodes):
            findings[0] = PreflightFinding(
                _CONFIG[0][0], *_ok(f"all {nodes_using_pools} nodes use spec.ipam.pools")
            )
    return findings


def _ok(observation: str) -> _RuleAnswer:
    return RuleResult.OK, observation, ""


def _config_unknown(_state: CiliumState) -> _RuleAnswer:
    advice = "allow reading the ConfigMap kube-system/cilium-config, or check it manually"
    return RuleResult.UNKNOWN, "cilium-config could not be read", advice


def _ipam_mode(cilium_state: CiliumState) -> _RuleAnswer:
    mode = cilium_state.text("ipam", default="cluster-pool")
    if mode == "multi-pool":
        return _ok("ipam: multi-pool")
    advice = "pools are used with the Helm value ipam.mode=multi-pool only"
    return RuleResult.VIOLATED, f"ipam: {mode}", advice


def _native_routing(cilium_state: CiliumState) -> _RuleAnswer:
    observation = f"routing-mode: {cilium_state.routing_mode()}"
    if cilium_state.routing_mode() == "native" or cilium_state.release_at_least(TUNNEL_SINCE):
        return _ok(observation)
    advice = f"set routingMode=native; tunnels work from Cilium {_version(TUNNEL_SINCE)} on"
    return RuleResult.VIOLATED, observation, advice


def _pod_cidr_routes(cilium_state: CiliumState) -> _RuleAnswer:
    """Check that nodes and routers learn the routes to PodCIDRs."""
    if cilium_state.routing_mode() != "native":
        return _ok("the tunnel carries packets between nodes")
    direct = cilium_state.flag("auto-direct-node-routes")
    observation = f"auto-direct-node-routes: {_bool_text(direct)}"
    if not cilium_state.flag("enable-bgp-control-plane"):
        if direct:
            return _ok(observation)
        advice = (
            "set autoDirectNodeRoutes=true where all nodes are on one L2 network, or announce the "
            "pools with bgpControlPlane.enabled=true and a CiliumBGPAdvertisement; without them "
            "routes to each node's PodCIDRs must come from elsewhere"
        )
        return RuleResult.WARNING, f"{observation}, enable-bgp-control-plane: false", advice
    observation += ", enable-bgp-control-plane: true"
    if cilium_state.announced is None:
        advice = (
            "allow listing ciliumbgpadvertisements.cilium.io, or check that an advertisement of "
            "type CiliumPodIPPool selects each pool"
        )
        return (_ok(observation)) if direct else (RuleResult.UNKNOWN, observation, advice)
    silent = [
        pool.name
        for pool in cilium_state.pools
        if not configuration.is_announced(pool, cilium_state.announced)
    ]
    if not silent:
        return _ok(f"{observation}, all pools are announced")
    advice = (
        "select these pools in a CiliumBGPAdvertisement with advertisementType CiliumPodIPPool: "
        "routers outside the cluster do not learn their PodCIDRs"
    )
    return RuleResult.WARNING, f"{observation}, not announced: {_join_names(silent)}", advice


def _endpoint_routes(cilium_state: CiliumState) -> _RuleAnswer:
    local = cilium_state.flag("enable-local-node-route", default=True)
    endpoint = cilium_state.flag("enable-endpoint-routes")
    observation = f"enable-local-node-route: {_bool_text(local)}, enable-endpoint-routes: {_bool_text(endpoint)}"
    if (endpoint and not local) or cilium_state.release_at_least(LOCAL_ROUTES_SINCE):
        return _ok(observation)
    advice = (
        "set endpointRoutes.enabled=true and extraConfig.enable-local-node-route=false; local "
        f"node routes work from Cilium {_version(LOCAL_ROUTES_SINCE)} on"
    )
    return RuleResult.VIOLATED, observation, advice


def _encryption(cilium_state: CiliumState) -> _RuleAnswer:
    if not cilium_state.flag("enable-ipsec"):
        wireguard = cilium_state.flag("enable-wireguard")
        return _ok("enable-wireguard: true" if wireguard else "no transparent encryption")
    if cilium_state.release_at_least(IPSEC_SINCE):
        return _ok("enable-ipsec: true")
    advice = f"use WireGuard; IPsec works from Cilium {_version(IPSEC_SINCE)} on"
    return RuleResult.VIOLATED, "enable-ipsec: true", advice


def _masquerading(cilium_state: CiliumState) -> _RuleAnswer:
    if not cilium_state.masqueraded_families():
        return _ok("nothing is masqueraded")
    if cilium_state.flag("enable-bpf-masquerade"):
        return _ok("enable-bpf-masquerade: true")
    if interfaces := cilium_state.text("egress-masquerade-interfaces"):
        return _ok(f"egress-masquerade-interfaces: {interfaces}")
    observation = "masquerading by iptables without egress-masquerade-interfaces"
    advice = "set egressMasqueradeInterfaces, or bpf.masquerade=true (cilium/cilium#22273)"
    return RuleResult.VIOLATED, observation, advice


def _native_routing_cidr(cilium_state: CiliumState) -> _RuleAnswer:
    if not cilium_state.masqueraded_families():
        return _ok("nothing is masqueraded")
    if cilium_state.flag("enable-ip-masq-agent"):
        if cilium_state.flag("enable-bpf-masquerade"):
            return _ok("enable-ip-masq-agent: true")
        observation = "enable-ip-masq-agent without enable-bpf-masquerade"
        return RuleResult.VIOLATED, observation, "the ip-masq-agent needs bpf.masquerade=true"
    outside = _outside_native_routing(cilium_state)
    if not outside:
        return _ok("the native-routing CIDR covers all pools")
    advice = (
        "choose a native-routing CIDR that covers all pools, or with bpf.masquerade use the "
        f"ip-masq-agent with the CIDRs of all pools, or annotate pools with {SKIP_MASQUERADE}"
    )
    return RuleResult.WARNING, f"not in the native-routing CIDR: {_join_names(outside)}", advice


def _outside_native_routing(cilium_state: CiliumState) -> list[str]:
    outside = []
    for family in cilium_state.masqueraded_families():
        native = cilium_state.native_routing_cidr(family)
        outside += [
            str(entry.cidr)
            for pool in cilium_state.pools
            if family in pool.families and not cilium_state.skips_masquerading(pool)
            for entry in pool.families[family].cidrs
            if native is None or not cidr_sets.contains(native, entry.cidr)
        ]
    return outside


def _pre_allocation(cilium_state: CiliumState) -> _RuleAnswer:
    text = cilium_state.text(multipool.PRE_ALLOCATION)
    observation = f"{multipool.PRE_ALLOCATION}: {text or 'not set, which is default=8'}"
    try:
        pre_allocation = multipool.parse_pre_allocation(text, field=multipool.PRE_ALLOCATION)
    except errors.InvalidInput as error:
        advice = f"{error}; write ipam.multiPoolPreAllocation as default=8,other=4"
        return RuleResult.VIOLATED, observation, advice
    pool_names = {pool.name for pool in cilium_state.pools}
    missing = [name for name, number in pre_allocation.items() if number and name not in pool_names]
    if not missing:
        return _ok(observation)
    advice = f"there is no pool {_join_names(missing)}: agents wait for it when they start"
    return RuleResult.VIOLATED, observation, advice


def _default_pool(cilium_state: CiliumState) -> _RuleAnswer:
    name = cilium_state.default_pool
    if any(pool.name == name for pool in cilium_state.pools):
        return _ok(name)
    advice = f'create the pool "{name}": pods that no other pool takes wait for addresses of it'
    return RuleResult.WARNING, f'there is no pool "{name}"', advice


def _auto_create(cilium_state: CiliumState) -> _RuleAnswer:
    text = cilium_state.text(configuration.KEY)
    try:
        declared = configuration.parse(text)
    except errors.InvalidInput as error:
        return RuleResult.VIOLATED, f"{configuration.KEY}: {text}", str(error)
    if not declared:
        return _ok("the operator creates no pools")
    observation = f"created by the operator: {_join_names([pool.name for pool in declared])}"
    pools_by_name = {pool.name: pool for pool in cilium_state.pools}
    absent = [pool.name for pool in declared if pool.name not in pools_by_name]
    changed = [
        pool.name
        for pool in declared
        if pool.name in pools_by_name and _networks(pool) != _networks(pools_by_name[pool.name])
    ]
    advice = []
    if absent:
        advice.append(f"{_join_names(absent)} comes when the operator starts the next time")
    if changed:
        advice.append(
            f"{_join_names(changed)} has other CIDRs than the Helm value says; the operator changes "
            "no pool, but if it is deleted it comes back as the Helm value has it"
        )
    return (RuleResult.WARNING, observation, "; ".join(advice)) if advice else _ok(observation)


def _networks(pool: podippool.PodIPPool) -> dict[int, tuple[list[str], int]]:
    return {
        family: ([str(entry.cidr) for entry in part.cidrs], part.mask_size)
        for family, part in pool.families.items()
    }


def _overlapping_pools(cilium_state: CiliumState) -> _RuleAnswer:
    networks = [
        (entry.cidr, pool.name)
        for pool in cilium_state.pools
        for part in pool.families.values()
        for entry in part.cidrs
    ]
    pairs = [
        f"{inner} of {inner_pool} in {outer} of {outer_pool}"
        for (outer, outer_pool), (inner, inner_pool) in itertools.islice(
            cidr_sets.nested_pairs(networks), MOST_PAIRS
        )
    ]
    if not pairs:
        return _ok(f"{len(networks)} CIDRs, none in another")
    advice = "every pod's address must be unique in the cluster: give one of the two another CIDR"
    return RuleResult.VIOLATED, _join_names(pairs), advice


def _ipv6_mask_sizes(cilium_state: CiliumState) -> _RuleAnswer:
    wide = [
        f"{entry.cidr} of {pool.name} with mask size {part.mask_size}"
        for pool in cilium_state.pools
        for family, part in pool.families.items()
        for entry in part.cidrs
        if family == 6 and part.mask_size - entry.cidr.prefixlen > MOST_IPV6_BITS
    ]
    if not wide:
        return _ok("as the operator can hold them")
    advice = f"an IPv6 mask size is at most {MOST_IPV6_BITS} more than the prefix of each CIDR"
    return RuleResult.VIOLATED, _join_names(wide), advice


def _bool_text(flag: bool) -> str:
    return "true" if flag else "false"


def _version(release: Release) -> str:
    return ".".join(map(str, release))


def _join_names(texts: Sequence[str]) -> str:
    suffix = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + suffix


_Rules = tuple[tuple[str, Callable[[CiliumState], _RuleAnswer]], ...]
_CONFIG: _Rules = (
    ("ipam-mode", _ipam_mode),
    ("native-routing", _native_routing),
    ("pod-cidr-routes", _pod_cidr_routes),
    ("per-endpoint-routes", _endpoint_routes),
    ("encryption", _encryption),
    ("masquerading", _masquerading),
    ("native-routing-cidr", _native_routing_cidr),
    ("pre-allocation", _pre_allocation),
    ("default-pool", _default_pool),
    ("auto-create", _auto_create),
)
_POOLS: _Rules = (("overlapping-pools", _overlapping_pools), ("ipv6-mask-size", _ipv6_mask_sizes))
