"""Forecast a CIDR migration before its first step.

The change of the pool is applied and rolled back (pools.register.previews). The CIDRs that Cilium's
operator would assign to nodes are computed by a model of the operator.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pools.cidr_migrations import progress
from pools.cidr_migrations.migrations import MigrationPlan
from pools.cilium import configuration as cilium_configuration
from pools.core import addresses, errors
from pools.core.cilium import ciliumnode, configuration, multipool, preflight
from pools.core.cilium.podippool import CidrEntry, Family, PodIPPool, Shape
from pools.core.cilium.preflight import PreflightFinding, RuleResult
from pools.models import Category, Connection, Pool
from pools.platform import events
from pools.register import manifests as pool_manifests, overlaps, pool_cidrs, pools, previews, usage

MOST_NAMES = 5  # in one message


@dataclass(frozen=True)
class MigrationForecast:
    """The findings, and the usage of the family before and after reserving the old CIDR and adding the new.

    `in_use` is the number of blocks that have to move, `nodes` the number of simulated nodes.
    """

    findings: tuple[PreflightFinding, ...]
    in_use: int
    nodes: int = 0
    before: usage.Usage | None = None
    after: usage.Usage | None = None

    @property
    def fits(self) -> bool:
        """True if no finding violates a condition of the migration."""
        return all(finding.result is not RuleResult.VIOLATED for finding in self.findings)


def forecast_migration(plan: MigrationPlan, *, author: events.Author) -> MigrationForecast:
    """Return the forecast of a migration; changes nothing."""
    pool, family = plan.pool, plan.cidr.cidr.version
    in_use = progress.blocks_in_use(plan.cidr, plan.span).count()
    findings: list[PreflightFinding] = []
    try:
        preview = previews.preview_change(pool, _pool_change(plan), author=author)
    except errors.IpamError as error:
        findings.append(_refused_change(plan, error))
        return MigrationForecast((*findings, *_check_shape(plan)), in_use)
    before, after = preview.before[family], preview.after[family]
    if plan.to is not None:
        findings.append(
            PreflightFinding(
                "new-cidr", RuleResult.OK, f"{plan.to} adds {_added_blocks(preview)} blocks"
            )
        )
        findings += _check_other_spaces(plan.to, pool)
    findings.append(_check_room(plan, in_use, after))
    findings.append(_check_order(plan, author))
    nodes = cilium_configuration.nodes(pool.cluster) if pool.category == Category.POD else []
    if pool.category == Category.POD:
        findings += _check_pods(plan, nodes)
    findings += _check_shape(plan)
    return MigrationForecast(tuple(findings), in_use, len(nodes), before, after)


def _added_blocks(preview: previews.Preview) -> int:
    return sum(
        after.capacity - preview.before.get(family, usage.Usage(0)).capacity
        for family, after in preview.after.items()
    )


def _pool_change(plan: MigrationPlan, *, add: bool = True) -> pools.PoolChange:
    family = plan.cidr.cidr.version
    new_family = changed_family(pool_cidrs.families(plan.pool)[family], plan, add=add)
    return pools.PoolChange(families={family: new_family})


def changed_family(family: Family, plan: MigrationPlan, *, add: bool) -> Family:
    """Return the family with the span reserved, merged with ranges that overlap it, and the new CIDR."""
    entries = []
    for entry in family.cidrs:
        if entry.cidr == plan.cidr.cidr:
            other_ranges = tuple(span for span in entry.reserved if not span.overlaps(plan.span))
            merged = [span for span in entry.reserved if span.overlaps(plan.span)] + [plan.span]
            merged_range = addresses.AddressRange(
                min(span.first for span in merged), max(span.last for span in merged)
            )
            entries.append(CidrEntry(entry.cidr, (*other_ranges, merged_range)))
        else:
            entries.append(entry)
    if add and plan.to is not None and plan.to not in {entry.cidr for entry in entries}:
        entries.append(CidrEntry(plan.to))
    return replace(family, cidrs=tuple(entries))


def _refused_change(plan: MigrationPlan, error: errors.IpamError) -> PreflightFinding:
    rule = "new-cidr" if plan.to is not None else "reserve"
    advice = "choose another CIDR"
    if plan.to is not None and plan.to.overlaps(plan.cidr.cidr):
        advice = (
            f"no migration is needed: replace {plan.cidr} by {plan.to} in the list of the pool's CIDRs,"
            " and its blocks stay with their holders"
        )
    return PreflightFinding(rule, RuleResult.VIOLATED, error.message, advice)


def _check_other_spaces(to: addresses.Network, pool: Pool) -> Iterator[PreflightFinding]:
    """Yield a finding about overlaps with other address spaces, which the register allows."""
    others = sorted(
        f"{network} of {owner.cluster}{'/' + owner.pool if owner.pool else ''}"
        for network, owner in overlaps.find_overlapping_networks(to)
        if owner.pool_id != pool.pk
    )
    if others:
        yield PreflightFinding(
            "other-spaces",
            RuleResult.WARNING,
            f"{to} overlaps {_join_names(others)}",
            "allowed as long as nothing routes between them; otherwise choose another CIDR",
        )
    else:
        yield PreflightFinding(
            "other-spaces", RuleResult.OK, f"no other cluster or VM network overlaps {to}"
        )


def _check_room(plan: MigrationPlan, in_use: int, after: usage.Usage) -> PreflightFinding:
    observation = f"{in_use} blocks have to move, {after.free} blocks will be free"
    if after.free >= in_use:
        return PreflightFinding("room", RuleResult.OK, observation)
    advice = "choose a larger replacement CIDR" if plan.to else "choose a replacement CIDR"
    return PreflightFinding("room", RuleResult.VIOLATED, observation, advice)


def _check_order(plan: MigrationPlan, author: events.Author) -> PreflightFinding:
    """Return a finding about the free blocks between reserving the old CIDR and adding the new one."""
    family = plan.cidr.cidr.version
    free_blocks = (
        previews.preview_change(plan.pool, _pool_change(plan, add=False), author=author)
        .after[family]
        .free
    )
    if free_blocks:
        return PreflightFinding(
            "order", RuleResult.OK, f"{free_blocks} blocks are free without the new CIDR"
        )
    advice = "add the new CIDR before you reserve the old one"
    if plan.to is None:
        advice = "allocations fail or wait until blocks are released"
    return PreflightFinding(
        "order", RuleResult.WARNING, "no block is free between reserving and adding", advice
    )


def _check_pods(
    plan: MigrationPlan, nodes: Sequence[ciliumnode.NodeDemand]
) -> Iterator[PreflightFinding]:
    manifests = cilium_configuration.pod_pools(plan.pool.cluster)
    changed_manifests = [
        _with_change(manifest, plan) if manifest.name == plan.pool.name else manifest
        for manifest in manifests
    ]
    yield from (
        finding
        for finding in preflight.check(configuration.CiliumState(None, changed_manifests))
        if finding.rule == "ipv6-mask-size" and finding.result is RuleResult.VIOLATED
    )
    if not nodes:
        yield PreflightFinding("nodes", RuleResult.UNKNOWN, "the nodes of the cluster are unknown")
        return
    drained = list(nodes)
    for network in ipaddress.summarize_address_range(plan.span.first, plan.span.last):
        drained = multipool.drain_nodes(drained, network)
    moved = sum(node != other for node, other in zip(nodes, drained, strict=True))
    failing = _newly_failing_nodes(
        changed_manifests, drained, plan.pool.name, present_plan=_plan(manifests, nodes)
    )
    observation = f"{moved} of {len(nodes)} nodes hold blocks of {plan.cidr}"
    if not failing:
        yield PreflightFinding("nodes", RuleResult.OK, f"{observation}; all of them get new blocks")
        return
    yield PreflightFinding(
        "nodes",
        RuleResult.VIOLATED,
        f"{observation}; {len(failing)} would not get the blocks they request: {_join_names(failing)}",
        "choose a larger CIDR, or add one more",
    )


def _with_change(manifest: PodIPPool, plan: MigrationPlan) -> PodIPPool:
    family = plan.cidr.cidr.version
    new_family = changed_family(pool_cidrs.families(plan.pool)[family], plan, add=True)
    return replace(manifest, families={**manifest.families, family: new_family})


_Plan = Mapping[str, multipool.NodePlan]


def _plan(pools: Sequence[PodIPPool], nodes: Sequence[ciliumnode.NodeDemand]) -> _Plan:
    families = sorted({family for pool in pools for family in pool.families})
    return multipool.plan(pools, nodes, families=families)


def _newly_failing_nodes(
    pools: Sequence[PodIPPool],
    nodes: Sequence[ciliumnode.NodeDemand],
    name: str,
    *,
    present_plan: _Plan,
) -> list[str]:
    """Return the nodes whose requests to the pool would fail and do not fail at present."""
    return [
        node
        for node, node_plan in _plan(pools, nodes).items()
        if _fails_for_pool(node_plan, name) and not _fails_for_pool(present_plan[node], name)
    ]


def _fails_for_pool(node_plan: multipool.NodePlan, name: str) -> bool:
    return any(f'from pool "{name}"' in failure for failure in node_plan.errors)


def _check_shape(plan: MigrationPlan) -> Iterator[PreflightFinding]:
    """Yield a finding about what the CRD of a connected cluster can store."""
    pool = plan.pool
    if (
        pool.category != Category.POD
        or not Connection.objects.filter(cluster=pool.cluster).exists()
    ):
        return
    try:
        shape = pool_manifests.fetch_shape(pool.cluster)
    except errors.IpamError as error:
        yield PreflightFinding(
            "cluster", RuleResult.UNKNOWN, f"the CRD of the cluster is unknown: {error.message}"
        )
        return
    observation = f"the cluster accepts {shape.value}"
    if shape is Shape.V2ALPHA1:
        advice = "this CRD has no reserved ranges: nodes can only be drained of the CIDR manually"
        yield PreflightFinding("cluster", RuleResult.VIOLATED, observation, advice)
    elif shape is Shape.V2_PROPOSAL and plan.cidr.reserved_ranges.exists():
        advice = "this CRD allows one range for each CIDR: remove the present range first"
        yield PreflightFinding("cluster", RuleResult.WARNING, observation, advice)
    else:
        yield PreflightFinding("cluster", RuleResult.OK, observation)


def _join_names(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + suffix
