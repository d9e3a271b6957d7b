"""Whether a cluster is fit for Cilium's multi-pool mode (spec/001), asked while a person waits."""

from __future__ import annotations

from dataclasses import dataclass

from pools.core import preflight
from pools.core.preflight import Finding, Verdict
from pools.models import Cluster
from pools.services import cilium


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
    config = cilium.config(cluster)
    seen = cilium.seen(cluster, fresh=False, release=release)
    return Preflight(
        findings=tuple(preflight.check(seen)),
        why_not=config.why_not,
        release=seen.release,
        pools=len(seen.pools),
        nodes=len(seen.nodes),
    )
