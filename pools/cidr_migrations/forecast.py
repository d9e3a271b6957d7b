"""What the migration of a CIDR would do, before any of it is done: step 0 of the guide.

The register's part is done and taken back (previews); what Cilium's operator would give the nodes is
computed by the operator as a value.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pools.cidr_migrations import progress
from pools.cidr_migrations.migrations import MigrationPlan
from pools.cilium import configuration as cilium_configuration
from pools.cilium import exports
from pools.core import addresses, errors
from pools.core.cilium import ciliumnode, configuration, pod_cidr_operator, preflight
from pools.core.cilium.podippool import CidrEntry, Family, PodIPPool, Shape
from pools.core.cilium.preflight import PreflightFinding, RuleResult
from pools.models import Connection, Pool
from pools.models.pools import Category
from pools.platform import events
from pools.register import overlaps, pools, previews, usage

SHOWN = 5  # names in one text


@dataclass(frozen=True)
class MigrationForecast:
    """What was found, and the pool's family before and after the old CIDR is reserved, the new added.

    `in_use` are the blocks that have to leave; `nodes` were simulated.
    """

    findings: tuple[PreflightFinding, ...]
    in_use: int
    nodes: int = 0
    before: usage.Usage | None = None
    after: usage.Usage | None = None

    @property
    def fits(self) -> bool:
        """Whether nothing is known that would fail."""
        return all(finding.result is not RuleResult.VIOLATED for finding in self.findings)


def forecast_migration(plan: MigrationPlan, *, author: events.Author) -> MigrationForecast:
    """Changes nothing."""
    pool, family = plan.pool, plan.cidr.cidr.version
    in_use = progress.in_use(plan.cidr, plan.span).count()
    findings: list[PreflightFinding] = []
    try:
        then = previews.of_change(pool, _change(plan), author=author)
    except errors.IpamError as error:
        findings.append(_refused(plan, error))
        return MigrationForecast((*findings, *_shape(plan)), in_use)
    before, after = then.before[family], then.after[family]
    if plan.to is not None:
        findings.append(
            PreflightFinding("new-cidr", RuleResult.OK, f"{plan.to} adds {_gain(then)} blocks")
        )
        findings += _elsewhere(plan.to, pool)
    findings.append(_room(plan, in_use, after))
    findings.append(_meanwhile(plan, author))
    nodes = cilium_configuration.nodes(pool.cluster) if pool.category == Category.POD else []
    if pool.category == Category.POD:
        findings += _of_pods(plan, nodes)
    findings += _shape(plan)
    return MigrationForecast(tuple(findings), in_use, len(nodes), before, after)


def _gain(then: previews.Preview) -> int:
    return sum(
        after.capacity - then.before.get(family, usage.Usage(0)).capacity
        for family, after in then.after.items()
    )


def _change(plan: MigrationPlan, *, add: bool = True) -> pools.PoolChange:
    family = plan.cidr.cidr.version
    family_then = changed(pools.families(plan.pool)[family], plan, add=add)
    return pools.PoolChange(families={family: family_then})


def changed(family: Family, plan: MigrationPlan, *, add: bool) -> Family:
    """The family with the span reserved, ranges inside of it being part of it, and the new CIDR."""
    entries = []
    for entry in family.cidrs:
        if entry.cidr == plan.cidr.cidr:
            other_ranges = tuple(span for span in entry.reserved if not span.overlaps(plan.span))
            touched = [span for span in entry.reserved if span.overlaps(plan.span)] + [plan.span]
            whole = addresses.AddressRange(
                min(span.first for span in touched), max(span.last for span in touched)
            )
            entries.append(CidrEntry(entry.cidr, (*other_ranges, whole)))
        else:
            entries.append(entry)
    if add and plan.to is not None and plan.to not in {entry.cidr for entry in entries}:
        entries.append(CidrEntry(plan.to))
    return replace(family, cidrs=tuple(entries))


def _refused(plan: MigrationPlan, error: errors.IpamError) -> PreflightFinding:
    rule = "new-cidr" if plan.to is not None else "reserve"
    return PreflightFinding(rule, RuleResult.VIOLATED, error.message, "choose another CIDR")


def _elsewhere(to: addresses.Network, pool: Pool) -> Iterator[PreflightFinding]:
    """Overlaps that the register allows."""
    others = sorted(
        f"{network} of {owner.cluster}{'/' + owner.pool if owner.pool else ''}"
        for network, owner in overlaps.touching(to)
        if owner.pool_id != pool.pk
    )
    if others:
        yield PreflightFinding(
            "other-spaces",
            RuleResult.WARNING,
            f"{to} overlaps {_listed(others)}",
            "fine while nothing routes between them; else choose another CIDR",
        )
    else:
        yield PreflightFinding(
            "other-spaces", RuleResult.OK, "no other cluster or VM network uses it"
        )


def _room(plan: MigrationPlan, in_use: int, after: usage.Usage) -> PreflightFinding:
    observation = f"{in_use} blocks have to move, {after.free} are free elsewhere then"
    if after.free >= in_use:
        return PreflightFinding("room", RuleResult.OK, observation)
    advice = "name a larger CIDR" if plan.to else "name a CIDR that takes its place"
    return PreflightFinding("room", RuleResult.VIOLATED, observation, advice)


def _meanwhile(plan: MigrationPlan, author: events.Author) -> PreflightFinding:
    """What is left while the old CIDR is reserved and the new one is not there."""
    family = plan.cidr.cidr.version
    free_blocks = (
        previews.of_change(plan.pool, _change(plan, add=False), author=author).after[family].free
    )
    if free_blocks:
        return PreflightFinding(
            "order", RuleResult.OK, f"{free_blocks} blocks are free without the new CIDR"
        )
    advice = "add the new CIDR before you reserve the old one"
    if plan.to is None:
        advice = "whoever needs a block meanwhile waits"
    return PreflightFinding(
        "order", RuleResult.WARNING, "nothing is free between reserving and adding", advice
    )


def _of_pods(
    plan: MigrationPlan, nodes: Sequence[ciliumnode.NodeDemand]
) -> Iterator[PreflightFinding]:
    manifests = cilium_configuration.pod_pools(plan.pool.cluster)
    then = [
        _with_change(manifest, plan) if manifest.name == plan.pool.name else manifest
        for manifest in manifests
    ]
    yield from (
        finding
        for finding in preflight.check(configuration.CiliumState(None, then))
        if finding.rule == "ipv6-mask-size" and finding.result is RuleResult.VIOLATED
    )
    if not nodes:
        yield PreflightFinding("nodes", RuleResult.UNKNOWN, "no node is known in the cluster")
        return
    drained = list(nodes)
    for network in ipaddress.summarize_address_range(plan.span.first, plan.span.last):
        drained = pod_cidr_operator.drain_nodes(drained, network)
    moved = sum(node != other for node, other in zip(nodes, drained, strict=True))
    lacking = _lacking(then, drained, plan.pool.name, but=_plan(manifests, nodes))
    observation = f"{moved} of {len(nodes)} nodes hold blocks there"
    if not lacking:
        yield PreflightFinding(
            "nodes", RuleResult.OK, f"{observation}; all get what they ask for elsewhere"
        )
        return
    yield PreflightFinding(
        "nodes",
        RuleResult.VIOLATED,
        f"{observation}; {len(lacking)} would not get what they ask for: {_listed(lacking)}",
        "name a larger CIDR, or add one more",
    )


def _with_change(manifest: PodIPPool, plan: MigrationPlan) -> PodIPPool:
    family = plan.cidr.cidr.version
    family_then = changed(pools.families(plan.pool)[family], plan, add=True)
    return replace(manifest, families={**manifest.families, family: family_then})


_Plan = Mapping[str, pod_cidr_operator.OperatorOutcome]


def _plan(pools: Sequence[PodIPPool], nodes: Sequence[ciliumnode.NodeDemand]) -> _Plan:
    families = sorted({family for pool in pools for family in pool.families})
    return pod_cidr_operator.plan(pools, nodes, families=families)


def _lacking(
    pools: Sequence[PodIPPool],
    nodes: Sequence[ciliumnode.NodeDemand],
    name: str,
    *,
    but: _Plan,
) -> list[str]:
    """The nodes that a pool fails, and does not fail as things are."""
    return [
        node
        for node, outcome in _plan(pools, nodes).items()
        if _fails(outcome, name) and not _fails(but[node], name)
    ]


def _fails(outcome: pod_cidr_operator.OperatorOutcome, name: str) -> bool:
    return any(f'from pool "{name}"' in failure for failure in outcome.errors)


def _shape(plan: MigrationPlan) -> Iterator[PreflightFinding]:
    """Whether the cluster's CRD can say it, where the cluster is connected."""
    pool = plan.pool
    if (
        pool.category != Category.POD
        or not Connection.objects.filter(cluster=pool.cluster).exists()
    ):
        return
    try:
        shape = exports.fetch_shape(pool.cluster)
    except errors.IpamError as error:
        yield PreflightFinding(
            "cluster", RuleResult.UNKNOWN, f"the shape of its CRD: {error.message}"
        )
        return
    observation = f"the cluster takes {shape.value}"
    if shape is Shape.V2ALPHA1:
        advice = "this CRD has no reserved ranges: nodes can be drained of the CIDR by hand only"
        yield PreflightFinding("cluster", RuleResult.VIOLATED, observation, advice)
    elif shape is Shape.V2_PROPOSAL and plan.cidr.reserved_ranges.exists():
        advice = "it holds one range for each CIDR: remove the present range first"
        yield PreflightFinding("cluster", RuleResult.WARNING, observation, advice)
    else:
        yield PreflightFinding("cluster", RuleResult.OK, observation)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
