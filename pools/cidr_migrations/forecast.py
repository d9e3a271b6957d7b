"""What the migration of a CIDR would do, before any of it is done: step 0 of the guide.

The register's part is done and taken back (previews); what Cilium's operator would give the nodes is
computed by the operator as a value.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pools.cidr_migrations import progress
from pools.cidr_migrations.migrations import Wanted
from pools.cilium import configuration as cilium_configuration
from pools.cilium import exports
from pools.core import addresses, errors
from pools.core.cilium import ciliumnode, configuration, pod_cidr_operator, preflight
from pools.core.cilium.podippool import CidrEntry, Family, PodIPPool, Shape
from pools.core.cilium.preflight import Finding, Verdict
from pools.models import Connection, Pool
from pools.models.pools import Category
from pools.platform import events
from pools.register import overlaps, pools, previews, usage

SHOWN = 5  # names in one text


@dataclass(frozen=True)
class Forecast:
    """What was found, and the pool's family before and after the old CIDR is reserved, the new added.

    `in_use` are the blocks that have to leave; `nodes` were simulated.
    """

    findings: tuple[Finding, ...]
    in_use: int
    nodes: int = 0
    before: usage.Usage | None = None
    after: usage.Usage | None = None

    @property
    def fits(self) -> bool:
        """Whether nothing is known that would fail."""
        return all(finding.verdict is not Verdict.VIOLATED for finding in self.findings)


def of(want: Wanted, *, author: events.Author) -> Forecast:
    """Changes nothing."""
    pool, family = want.pool, want.cidr.cidr.version
    in_use = progress.in_use(want.cidr, want.span).count()
    findings: list[Finding] = []
    try:
        then = previews.of_change(pool, _change(want), author=author)
    except errors.IpamError as error:
        findings.append(_refused(want, error))
        return Forecast((*findings, *_shape(want)), in_use)
    before, after = then.before[family], then.after[family]
    if want.to is not None:
        findings.append(Finding("new-cidr", Verdict.OK, f"{want.to} adds {_gain(then)} blocks"))
        findings += _elsewhere(want.to, pool)
    findings.append(_room(want, in_use, after))
    findings.append(_meanwhile(want, author))
    nodes = cilium_configuration.nodes(pool.cluster) if pool.category == Category.POD else []
    if pool.category == Category.POD:
        findings += _of_pods(want, nodes)
    findings += _shape(want)
    return Forecast(tuple(findings), in_use, len(nodes), before, after)


def _gain(then: previews.Preview) -> int:
    return sum(
        after.capacity - then.before.get(family, usage.Usage(0)).capacity
        for family, after in then.after.items()
    )


def _change(want: Wanted, *, add: bool = True) -> pools.PoolChange:
    family = want.cidr.cidr.version
    family_then = changed(pools.families(want.pool)[family], want, add=add)
    return pools.PoolChange(families={family: family_then})


def changed(family: Family, want: Wanted, *, add: bool) -> Family:
    """The family with the span reserved, ranges inside of it being part of it, and the new CIDR."""
    entries = []
    for entry in family.cidrs:
        if entry.cidr == want.cidr.cidr:
            kept = tuple(span for span in entry.reserved if not span.overlaps(want.span))
            touched = [span for span in entry.reserved if span.overlaps(want.span)] + [want.span]
            whole = addresses.AddressRange(
                min(span.first for span in touched), max(span.last for span in touched)
            )
            entries.append(CidrEntry(entry.cidr, (*kept, whole)))
        else:
            entries.append(entry)
    if add and want.to is not None and want.to not in {entry.cidr for entry in entries}:
        entries.append(CidrEntry(want.to))
    return replace(family, cidrs=tuple(entries))


def _refused(want: Wanted, error: errors.IpamError) -> Finding:
    rule = "new-cidr" if want.to is not None else "reserve"
    return Finding(rule, Verdict.VIOLATED, error.message, "choose another CIDR")


def _elsewhere(to: addresses.Network, pool: Pool) -> Iterator[Finding]:
    """Overlaps that the register allows."""
    others = sorted(
        f"{network} of {owner.cluster}{'/' + owner.pool if owner.pool else ''}"
        for network, owner in overlaps.touching(to)
        if owner.pool_id != pool.pk
    )
    if others:
        yield Finding(
            "other-spaces",
            Verdict.WARNING,
            f"{to} overlaps {_listed(others)}",
            "fine while nothing routes between them; else choose another CIDR",
        )
    else:
        yield Finding("other-spaces", Verdict.OK, "no other cluster or VM network uses it")


def _room(want: Wanted, in_use: int, after: usage.Usage) -> Finding:
    found = f"{in_use} blocks have to move, {after.free} are free elsewhere then"
    if after.free >= in_use:
        return Finding("room", Verdict.OK, found)
    advice = "name a larger CIDR" if want.to else "name a CIDR that takes its place"
    return Finding("room", Verdict.VIOLATED, found, advice)


def _meanwhile(want: Wanted, author: events.Author) -> Finding:
    """What is left while the old CIDR is reserved and the new one is not there."""
    family = want.cidr.cidr.version
    left = previews.of_change(want.pool, _change(want, add=False), author=author).after[family].free
    if left:
        return Finding("order", Verdict.OK, f"{left} blocks are free without the new CIDR")
    advice = "add the new CIDR before you reserve the old one"
    if want.to is None:
        advice = "whoever needs a block meanwhile waits"
    return Finding("order", Verdict.WARNING, "nothing is free between reserving and adding", advice)


def _of_pods(want: Wanted, nodes: Sequence[ciliumnode.NodeDemand]) -> Iterator[Finding]:
    manifests = cilium_configuration.pod_pools(want.pool.cluster)
    then = [_with_change(one, want) if one.name == want.pool.name else one for one in manifests]
    yield from (
        finding
        for finding in preflight.check(configuration.Seen(None, then))
        if finding.rule == "ipv6-mask-size" and finding.verdict is Verdict.VIOLATED
    )
    if not nodes:
        yield Finding("nodes", Verdict.UNKNOWN, "no node is known in the cluster")
        return
    drained = list(nodes)
    for network in ipaddress.summarize_address_range(want.span.first, want.span.last):
        drained = pod_cidr_operator.drained(drained, network)
    moved = sum(one != other for one, other in zip(nodes, drained, strict=True))
    lacking = _lacking(then, drained, want.pool.name, but=_plan(manifests, nodes))
    found = f"{moved} of {len(nodes)} nodes hold blocks there"
    if not lacking:
        yield Finding("nodes", Verdict.OK, f"{found}; all get what they ask for elsewhere")
        return
    yield Finding(
        "nodes",
        Verdict.VIOLATED,
        f"{found}; {len(lacking)} would not get what they ask for: {_listed(lacking)}",
        "name a larger CIDR, or add one more",
    )


def _with_change(manifest: PodIPPool, want: Wanted) -> PodIPPool:
    family = want.cidr.cidr.version
    family_then = changed(pools.families(want.pool)[family], want, add=True)
    return replace(manifest, families={**manifest.families, family: family_then})


_Plan = Mapping[str, pod_cidr_operator.Outcome]


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


def _fails(outcome: pod_cidr_operator.Outcome, name: str) -> bool:
    return any(f'from pool "{name}"' in failure for failure in outcome.errors)


def _shape(want: Wanted) -> Iterator[Finding]:
    """Whether the cluster's CRD can say it, where the cluster is connected."""
    pool = want.pool
    if (
        pool.category != Category.POD
        or not Connection.objects.filter(cluster=pool.cluster).exists()
    ):
        return
    try:
        shape = exports.shape_of(pool.cluster)
    except errors.IpamError as error:
        yield Finding("cluster", Verdict.UNKNOWN, f"the shape of its CRD: {error.message}")
        return
    found = f"the cluster takes {shape.value}"
    if shape is Shape.V2ALPHA1:
        advice = "this CRD has no reserved ranges: nodes can be drained of the CIDR by hand only"
        yield Finding("cluster", Verdict.VIOLATED, found, advice)
    elif shape is Shape.V2_PROPOSAL and want.cidr.reserved_ranges.exists():
        advice = "it holds one range for each CIDR: remove the present range first"
        yield Finding("cluster", Verdict.WARNING, found, advice)
    else:
        yield Finding("cluster", Verdict.OK, found)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
