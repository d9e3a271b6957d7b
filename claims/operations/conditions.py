"""Conditions, metrics and checks of VM networks (pools/platform/conditions, pools/platform/checks.py)."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db.models import Count, Min, Q, QuerySet
from django.utils.translation import gettext, gettext_lazy as _, ngettext, ngettext_lazy

from claims.address_index import conflicts, index
from claims.ipamclaims import states
from claims.models import NAD, Entry, IndexEntry, IPAMClaim, IPPool, Network, Workload
from claims.networks import networks
from pools.models import Level, Now, ReservedRangeEvent
from pools.platform import checks
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.platform.metrics.registry import Value, value
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
    """Yield a condition for each cluster with duplicates of entries, claims or workloads."""
    rows = IndexEntry.objects.filter(Q(duplicate_ip=True) | Q(duplicate_mac=True), holds=True)
    counted = rows.values("network__cluster_id", "network__cluster__name", "network_id").annotate(
        ips=Count("address", distinct=True, filter=Q(duplicate_ip=True)),
        macs=Count("mac", distinct=True, filter=Q(duplicate_mac=True)),
        entries=Count("entry"),
    )
    clusters_with_duplicates: dict[int, dict[str, Any]] = {}
    for row in counted.order_by("network__cluster_id"):
        totals = clusters_with_duplicates.setdefault(
            row["network__cluster_id"],
            {"cluster": row["network__cluster__name"], "ips": 0, "macs": 0, "entries": 0},
        )
        for name in ("ips", "macs", "entries"):
            totals[name] += row[name]
    for pk, counts in list(clusters_with_duplicates.items())[:_MOST]:
        texts = [
            text % {"count": count}
            for text, count in (
                (ngettext("%(count)s IP", "%(count)s IPs", counts["ips"]), counts["ips"]),
                (ngettext("%(count)s MAC", "%(count)s MACs", counts["macs"]), counts["macs"]),
            )
            if count
        ]
        url = f"/admin/pools/finding/?cluster={pk}"
        if counts["entries"]:
            url = f"/admin/claims/entry/?cluster={pk}&duplicate={'ip' if counts['ips'] else 'mac'}"
        yield ActiveCondition(
            clusters.DUPLICATE,
            f"cluster/{pk}/vm-networks",
            Level.ERROR,
            gettext("Duplicate addresses in %(cluster)s: %(counts)s")
            % {"cluster": counts["cluster"], "counts": ", ".join(texts)},
            url=url,
            cause=_duplicates_cause(pk),
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
    rows = rows.exclude(networks.fitting_query(NAD.objects.all()))
    for row in _by_cluster(rows):
        title = ngettext(
            "%(first)s has MAC entries but does not support static IPs",
            "%(count)s networks of %(cluster)s have MAC entries but do not support static IPs",
            row["count"],
        )
        yield _network_warning(UNSUITABLE, title, row, "static=no")


def _ippools_without_network(_levels: OpenLevels) -> Iterator[ActiveCondition]:
    rows = IPPool.objects.filter(Q(network__kind="") | Q(network__gone_at__isnull=False))
    for row in _by_cluster(rows):
        title = ngettext(
            "IPPool %(first)s: network not found in %(cluster)s",
            "%(count)s IPPools: network not found in %(cluster)s",
            row["count"],
        )
        yield _network_warning(UNKNOWN, title, row, "known=false")


def _by_cluster(rows: QuerySet[Any]) -> Iterable[Mapping[str, Any]]:
    counted = rows.order_by("cluster_id").values("cluster_id", "cluster__name")
    clusters_with_rows: Iterable[Mapping[str, Any]]
    clusters_with_rows = counted.annotate(count=Count("pk", distinct=True), first=Min("name"))[
        :_MOST
    ]
    return clusters_with_rows


def _network_warning(code: str, title: str, row: Mapping[str, Any], shown: str) -> ActiveCondition:
    pk, texts = row["cluster_id"], {**row, "cluster": row["cluster__name"]}
    url = f"/admin/claims/network/?cluster={pk}&{shown}"
    return ActiveCondition(code, f"cluster/{pk}", Level.WARNING, title % texts, url=url)


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


def values() -> Iterator[Value]:
    """Index entries the number of conflicting index entries by cluster; clusters without any are already 0."""
    rows = IndexEntry.objects.filter(Q(duplicate_mac=True) | Q(duplicate_ip=True)).order_by()
    counted = rows.values_list("network__cluster__name").annotate(count=Count("pk"))
    for cluster, count in counted:
        yield value("ipam_duplicates_detected", count, cluster=cluster)


_OWNERS = 2_000  # compared at once
_TABLES: tuple[tuple[str, str, Any], ...] = (
    ("entry", "entries", Entry),
    ("claim", "claims", IPAMClaim),
    ("workload", "workloads", Workload),
)


def wrong_index_entries() -> Iterator[str]:
    """Yield differences between the address index and the entries, claims and workloads."""
    for name, argument, model in _TABLES:
        rows = model.objects.order_by("pk").iterator(chunk_size=_OWNERS)
        while owners := list(islice(rows, _OWNERS)):
            change = index.compare(**{argument: owners})
            names = {owner.pk: str(owner) for owner in owners}
            for column, owner, row in change.new:
                entry_text = " ".join(filter(None, (row.mac, row.address, row.vm)))
                yield f"The {column} {names[owner]} is not indexed under {entry_text}"
            for index_entry_id in change.gone:
                yield f"The {name} of index entry {index_entry_id} does not name its value"


def wrong_duplicates() -> Iterator[str]:
    """Yield MACs and addresses that are marked as duplicates without being some, and the reverse.

    Addresses of a pool whose reserved ranges changed recently are left out: a task checks them every five minutes.
    """
    recent = ReservedRangeEvent.objects.filter(pgh_created_at__gt=Now() - timedelta(minutes=10))
    pending = set(recent.values_list("pool_id", flat=True))
    for network in Network.objects.select_related("pool", "cluster").order_by("pk").iterator(500):
        is_pending = network.pool_id in pending
        for mac, address, duplicate_mac, duplicate_ip in conflicts.wrong_flags(network):
            if is_pending and address:
                continue
            kinds = [
                kind for kind, wrong in (("MAC", duplicate_mac), ("address", duplicate_ip)) if wrong
            ]
            status = f"a duplicate {' and '.join(kinds)}" if kinds else "no duplicate"
            yield f"Network {network}: {mac or '?'} {address or '?'} is {status}, but is not marked so"
        if not is_pending and conflicts.has_wrong_counts(network):
            yield f"Network {network}: the duplicate counts of its IPPool are wrong"


CHECKS: dict[str, checks.Check] = {
    **checks.of_files("claims.sql"),
    "duplicates": wrong_duplicates,
    "index_entries": wrong_index_entries,
}
