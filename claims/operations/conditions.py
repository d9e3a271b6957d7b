"""Conditions of VM networks (pools/platform/conditions)."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from claims.ipamclaims import states
from claims.models import NAD, IPAMClaim, IPPool, Network
from claims.networks import networks
from pools.models.alerts import Level
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register.conditions import clusters

CLAIM_CODES = {
    states.CONFLICT: "claims_in_conflict",
    states.FAILED: "claims_failed",
    states.LEAKED: "claims_orphaned",
}
UNSUITABLE = "networks_unsuitable"
UNKNOWN = "ippools_without_network"
_MOST = 1000  # clusters

_CLAIM_TITLES = {
    states.CONFLICT: ngettext_lazy(
        "%(count)s claim is in conflict in cluster %(cluster)s",
        "%(count)s claims are in conflict in cluster %(cluster)s",
        "count",
    ),
    states.FAILED: ngettext_lazy(
        "%(count)s claim failed in cluster %(cluster)s",
        "%(count)s claims failed in cluster %(cluster)s",
        "count",
    ),
    states.LEAKED: ngettext_lazy(
        "%(count)s orphaned claim (VM deleted) in cluster %(cluster)s",
        "%(count)s orphaned claims (VMs deleted) in cluster %(cluster)s",
        "count",
    ),
}


def _duplicates_cause(cluster_id: int) -> str:
    return f"cluster/{cluster_id}/vm-networks"


def _duplicates(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield a condition for each cluster with duplicates, as counted for the IPPools' conditions."""
    rows = IPPool.objects.filter(Q(duplicate_ips__gt=0) | Q(duplicate_macs__gt=0))
    summed = rows.values("cluster_id", "cluster__name").annotate(
        ips=Sum("duplicate_ips"), macs=Sum("duplicate_macs")
    )
    for row in summed.order_by("cluster_id")[:_MOST]:
        addresses = ngettext(
            "%(count)s address is claimed twice.",
            "%(count)s addresses are claimed twice.",
            row["ips"],
        ) % {"count": row["ips"]}
        macs = ngettext(
            "%(count)s MAC address has two entries.",
            "%(count)s MAC addresses have two entries.",
            row["macs"],
        ) % {"count": row["macs"]}
        yield ActiveCondition(
            clusters.DUPLICATE,
            f"cluster/{row['cluster_id']}/vm-networks",
            Level.ERROR,
            gettext("Duplicates in the VM networks of cluster %(cluster)s")
            % {"cluster": row["cluster__name"]},
            " ".join(
                text for text, count in ((addresses, row["ips"]), (macs, row["macs"])) if count
            ),
            f"/admin/claims/entry/?cluster={row['cluster_id']}"
            f"&duplicate={'ip' if row['ips'] else 'mac'}",
            _duplicates_cause(row["cluster_id"]),
        )


def _claims(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the claims of a cluster that are in conflict, failed, or outlived their VM."""
    rows = states.with_state(IPAMClaim.objects.filter(gone_at=None))
    rows = rows.filter(state__in=CLAIM_CODES).order_by("cluster_id", "state")
    counted = rows.values("cluster_id", "cluster__name", "state").annotate(count=Count("pk"))
    for row in counted[:_MOST]:
        pk, state = row["cluster_id"], row["state"]
        causes = {
            states.CONFLICT: _duplicates_cause(pk),
            states.LEAKED: clusters.findings_cause(pk),
        }
        yield ActiveCondition(
            CLAIM_CODES[state],
            f"cluster/{pk}",
            Level.WARNING if state == states.LEAKED else Level.ERROR,
            str(_CLAIM_TITLES[state] % {"count": row["count"], "cluster": row["cluster__name"]}),
            url=f"/admin/claims/ipamclaim/?cluster={pk}&state={state}",
            cause=causes.get(state, ""),
        )


def _unsuitable_networks(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield the networks of a cluster that have entries and cannot hold static VMs."""
    rows = Network.objects.filter(ippool__entries__isnull=False).exclude(kind="")
    rows = rows.exclude(networks.fitting_query(NAD.objects.all())).order_by("cluster_id")
    counted = rows.values("cluster_id", "cluster__name").annotate(count=Count("pk", distinct=True))
    for row in counted[:_MOST]:
        title = ngettext(
            "%(count)s network of cluster %(cluster)s has MAC entries and cannot hold static VMs",
            "%(count)s networks of cluster %(cluster)s have MAC entries and cannot hold static VMs",
            row["count"],
        ) % {"count": row["count"], "cluster": row["cluster__name"]}
        yield ActiveCondition(
            UNSUITABLE,
            f"cluster/{row['cluster_id']}",
            Level.WARNING,
            title,
            url=f"/admin/claims/network/?cluster={row['cluster_id']}&static=no",
        )


def _ippools_without_network(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    rows = IPPool.objects.filter(Q(network__kind="") | Q(network__gone_at__isnull=False))
    counted = rows.order_by("cluster_id").values("cluster_id", "cluster__name")
    for row in counted.annotate(count=Count("pk"))[:_MOST]:
        title = ngettext(
            "%(count)s IPPool names a network that cluster %(cluster)s does not have",
            "%(count)s IPPools name networks that cluster %(cluster)s does not have",
            row["count"],
        ) % {"count": row["count"], "cluster": row["cluster__name"]}
        yield ActiveCondition(
            UNKNOWN,
            f"cluster/{row['cluster_id']}",
            Level.WARNING,
            title,
            url=f"/admin/claims/network/?cluster={row['cluster_id']}&known=false",
        )


ALL = (
    Condition({clusters.DUPLICATE: "IpamDuplicateAddress"}, _duplicates),
    Condition(
        {
            CLAIM_CODES[states.CONFLICT]: "IpamClaimsFailing",
            CLAIM_CODES[states.FAILED]: "IpamClaimsFailing",
            CLAIM_CODES[states.LEAKED]: "IpamClaimsOrphaned",
        },
        _claims,
    ),
    Condition({UNSUITABLE: "IpamNetworksUnsuitable"}, _unsuitable_networks),
    Condition(
        {UNKNOWN: "IpamIPPoolsWithoutNetwork"},
        _ippools_without_network,
        labels={UNKNOWN: _("IPPools without network")},
    ),
)
