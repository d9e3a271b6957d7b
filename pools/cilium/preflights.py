"""Whether a cluster is fit for Cilium's multi-pool mode (spec/001), asked while a person waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pools.cilium import configuration, pool_sync
from pools.core import errors
from pools.core.cilium import podippool, preflight
from pools.core.cilium.podippool import PodIPPool
from pools.core.cilium.preflight import Finding, Verdict
from pools.models import Cluster, ObservedObject


@dataclass(frozen=True)
class Preflight:
    """The findings, and what they stand on; `why_not` says why cilium-config is not known."""

    findings: tuple[Finding, ...]
    why_not: str
    release: str
    pools: int
    nodes: int

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; what is unknown is worse than what is well."""
        worst = (Verdict.VIOLATED, Verdict.WARNING, Verdict.UNKNOWN)
        verdicts = {finding.verdict for finding in self.findings}
        return next((one for one in worst if one in verdicts), Verdict.OK)


def of(cluster: Cluster, *, release: str = "") -> Preflight:
    """`release` is Cilium's, where the cluster does not say it: some rules ended with a release."""
    config = configuration.config(cluster)
    seen = configuration.seen(cluster, fresh=False, release=release)
    seen = replace(seen, pools=_with_observed(cluster, seen.pools))
    return Preflight(
        findings=tuple(preflight.check(seen)),
        why_not=config.why_not,
        release=seen.release,
        pools=len(seen.pools),
        nodes=len(seen.nodes),
    )


def _with_observed(cluster: Cluster, pools: Sequence[PodIPPool]) -> list[PodIPPool]:
    """The register's pools, and what the cluster's objects have beyond them."""
    found = {pool.name: pool for pool in pools}
    rows = ObservedObject.objects.filter(cluster=cluster, kind=podippool.KIND).order_by("name")
    for name, manifest in rows.values_list("name", "manifest"):
        try:
            observed = pool_sync.parse(manifest)
        except errors.InvalidInput:
            continue  # the object says what is wrong with it
        found[name] = _united(found[name], observed) if name in found else observed
    return list(found.values())


def _united(pool: PodIPPool, observed: PodIPPool) -> PodIPPool:
    families = dict(pool.families)
    for number, part in observed.families.items():
        own = families.get(number, replace(part, cidrs=()))
        present = {entry.cidr for entry in own.cidrs}
        more = tuple(entry for entry in part.cidrs if entry.cidr not in present)
        families[number] = replace(own, cidrs=own.cidrs + more)
    return replace(pool, families=families)
