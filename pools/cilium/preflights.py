"""Whether a cluster is fit for Cilium's multi-pool mode, asked while a person waits."""

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
    """The findings, and what they stand on; `why_not` says why cilium-config is not known."""

    findings: tuple[PreflightFinding, ...]
    why_not: str
    release: str
    pools: int
    nodes: int

    @property
    def result(self) -> RuleResult:
        """The worst of the findings; what is unknown is worse than what is well."""
        worst = (RuleResult.VIOLATED, RuleResult.WARNING, RuleResult.UNKNOWN)
        results = {finding.result for finding in self.findings}
        return next((result for result in worst if result in results), RuleResult.OK)


def run_preflight(cluster: Cluster, *, release: str = "") -> Preflight:
    """`release` is Cilium's, where the cluster does not say it: some rules ended with a release."""
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
    """The register's pools, and what the cluster's objects have beyond them."""
    pools_by_name = {pool.name: pool for pool in pools}
    rows = ObservedObject.objects.filter(cluster=cluster, kind=podippool.KIND).order_by("name")
    for name, manifest in rows.values_list("name", "manifest"):
        try:
            observed = pool_sync.parse(manifest)
        except errors.InvalidInput:
            continue  # the object says what is wrong with it
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
