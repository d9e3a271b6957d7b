"""Readiness check of a cluster for Cilium's multi-pool mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pools.cilium import configuration, pool_sync
from pools.core import errors
from pools.core.cilium import podippool, preflight
from pools.core.cilium.podippool import PodIPPool
from pools.core.cilium.preflight import PreflightFinding, RuleResult
from pools.models import Cluster, ObservedObject


@dataclass(frozen=True)
class Preflight:
    """The findings and their basis; `why_not` says why cilium-config is unknown."""

    findings: tuple[PreflightFinding, ...]
    why_not: str
    release: str
    pools: int
    nodes: int

    @property
    def result(self) -> RuleResult:
        """The worst result of the findings; UNKNOWN is worse than OK."""
        worst = (RuleResult.VIOLATED, RuleResult.WARNING, RuleResult.UNKNOWN)
        results = {finding.result for finding in self.findings}
        return next((result for result in worst if result in results), RuleResult.OK)


def run_preflight(cluster: Cluster, *, release: str = "") -> Preflight:
    """Run all checks; `release` is the version of Cilium if the cluster does not show it."""
    config = configuration.read_config(cluster)
    cilium_state = configuration.cilium_state(cluster, fresh=False, release=release)
    cilium_state = replace(cilium_state, pools=_add_observed_pools(cluster, cilium_state.pools))
    return Preflight(
        findings=tuple(preflight.check(cilium_state)),
        why_not=config.why_not,
        release=cilium_state.release,
        pools=len(cilium_state.pools),
        nodes=len(cilium_state.nodes),
    )


def _add_observed_pools(cluster: Cluster, pools: Sequence[PodIPPool]) -> list[PodIPPool]:
    """Return the register's pools, with additional pools and CIDRs of the cluster's objects."""
    pools_by_name = {pool.name: pool for pool in pools}
    rows = ObservedObject.objects.filter(cluster=cluster, kind=podippool.KIND).order_by("name")
    for name, manifest in rows.values_list("name", "manifest"):
        try:
            observed = pool_sync.parse(manifest)
        except errors.InvalidInput:
            continue  # the problem of the object is reported with the object
        pools_by_name[name] = (
            _merge_cidrs(pools_by_name[name], observed) if name in pools_by_name else observed
        )
    return list(pools_by_name.values())


def _merge_cidrs(pool: PodIPPool, observed: PodIPPool) -> PodIPPool:
    families = dict(pool.families)
    for number, part in observed.families.items():
        family = families.get(number, replace(part, cidrs=()))
        present = {entry.cidr for entry in family.cidrs}
        added_entries = tuple(entry for entry in part.cidrs if entry.cidr not in present)
        families[number] = replace(family, cidrs=family.cidrs + added_entries)
    return replace(pool, families=families)
