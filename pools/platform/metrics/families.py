"""The definition of every metric: name, type, labels, help. docs/reference/metrics.md is the same table."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The types of the exposition formats."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    INFO = "info"


@dataclass(frozen=True)
class Family:
    """A metric; with `is_measured` its values are the sums that processes write (process_metrics)."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    is_measured: bool = False

    @property
    def stem(self) -> str:
        """The name without the suffix that a format adds for its type."""
        return self.name.removesuffix({"counter": "_total", "info": "_info"}.get(self.kind, " "))


def _gauge(name: str, labels: str, help_: str) -> Family:
    return Family(name, Kind.GAUGE, tuple(labels.split()), help_)


def _measured(name: str, kind: Kind, labels: str, help_: str) -> Family:
    return Family(name, kind, tuple(labels.split()), help_, is_measured=True)


_POOL = "cluster pool category family"
_EXACT = " Above 2^53 (IPv6) a sample is exact to 16 digits."

ALL: tuple[Family, ...] = (
    _gauge(
        "ipam_pool_addresses",
        f"{_POOL} state",
        "Addresses of a pool by state: free, held, cooling, reserved; they add up to the capacity."
        + _EXACT,
    ),
    _gauge("ipam_pool_capacity_addresses", _POOL, "All addresses of a pool." + _EXACT),
    _gauge(
        "ipam_pool_utilization_ratio",
        _POOL,
        "Held and cooling addresses as a share of those that are not reserved, 0 to 1.",
    ),
    _gauge("ipam_pool_block_addresses", _POOL, "Addresses of one block of a pool." + _EXACT),
    _gauge(
        "ipam_cooldown_queue_addresses",
        "cluster pool family",
        "Addresses of a pool that were released and are still in cooldown.",
    ),
    _measured(
        "ipam_allocations_total",
        Kind.COUNTER,
        "category result",
        "Blocks that were allocated, and requests that failed, by the category of their pool.",
    ),
    _measured(
        "ipam_allocation_failures_total",
        Kind.COUNTER,
        "category reason",
        "Requests for blocks that failed, by the code of the refusal.",
    ),
    _measured(
        "ipam_releases_total", Kind.COUNTER, "category", "Blocks that were released by a holder."
    ),
    _measured(
        "ipam_allocation_duration_seconds",
        Kind.HISTOGRAM,
        "",
        "Time from a request for blocks to its answer, without HTTP.",
    ),
    _gauge(
        "ipam_leaks_detected",
        "cluster holder_kind",
        "Held blocks whose holder two complete observations did not see.",
    ),
    _gauge(
        "ipam_duplicates_detected",
        "cluster",
        "PodCIDRs that two nodes have, and entries, claims or workloads that contradict each other.",
    ),
    _gauge(
        "ipam_orphans_detected",
        "cluster",
        "CIDRs that the cluster has lost while their blocks are in use.",
    ),
    _gauge("ipam_findings", "cluster severity", "Open findings of the sync runs of a cluster."),
    _gauge(
        "ipam_address_clashes_detected",
        "cluster",
        "Uses of the same addresses inside a cluster that disturb each other: findings `address_clash`.",
    ),
    _gauge(
        "ipam_observed_cidrs",
        "cluster kind",
        "CIDRs that objects of a cluster use besides pools, by the kind of the object.",
    ),
    _measured(
        "ipam_reconcile_duration_seconds",
        Kind.SUMMARY,
        "cluster",
        "Duration of full sync runs of a cluster.",
    ),
    _measured(
        "ipam_reconcile_total",
        Kind.COUNTER,
        "cluster result",
        "Full sync runs of a cluster, by result: success or failure.",
    ),
    _measured(
        "ipam_reconcile_errors_total",
        Kind.COUNTER,
        "cluster reason",
        "Full sync runs that failed, by the code of the fault.",
    ),
    _gauge(
        "ipam_cluster_last_success_timestamp_seconds",
        "cluster",
        "When the last full sync run of a cluster succeeded; 0 before the first.",
    ),
    _gauge("ipam_cluster_connected", "cluster", "1 for a connected cluster, 0 while it is paused."),
    _gauge("ipam_requests_pending", "cluster pool", "Requests that wait for space in a pool."),
    _gauge(
        "ipam_requests_oldest_seconds",
        "",
        "How long the oldest pending request has waited; 0: none.",
    ),
    _gauge(
        "ipam_alerts_open",
        "code level",
        "Open alerts by the code of their condition and by level: error, warning, info.",
    ),
    _gauge(
        "ipam_alerts_acknowledged",
        "code level",
        "Open alerts that somebody acknowledged; `ipam_alerts_open` counts them too.",
    ),
    _gauge(
        "ipam_alert_threshold",
        "code level",
        "Thresholds of conditions, from the settings: a share of a pool (0 to 1), or seconds.",
    ),
    _gauge("ipam_outbox_pending", "", "Messages of outgoing webhooks that have not arrived."),
    _gauge(
        "ipam_outbox_oldest_seconds",
        "",
        "How long the oldest of these messages has waited; 0: none.",
    ),
    _measured(
        "ipam_webhook_duration_seconds",
        Kind.HISTOGRAM,
        "webhook",
        "Time from an admission review to its answer.",
    ),
    _measured(
        "ipam_webhook_reviews_total",
        Kind.COUNTER,
        "webhook result",
        "Admission reviews by result: allowed, refused, patched, or error if they failed.",
    ),
    _measured(
        "ipam_k8s_requests_total",
        Kind.COUNTER,
        "cluster verb code",
        "Requests to the API server of a cluster, by status code; none without an answer.",
    ),
    _measured(
        "ipam_lease_lost_total",
        Kind.COUNTER,
        "",
        "Sync runs that lost their cluster to another worker.",
    ),
    _measured(
        "ipam_stale_writes_rejected_total",
        Kind.COUNTER,
        "",
        "Writes that came too late: stopped by a fence, or refused by an API server as stale.",
    ),
    _measured(
        "ipam_scheduler_last_tick_timestamp_seconds",
        Kind.GAUGE,
        "",
        "When a worker last executed the scheduler's tick; one is due every 5 seconds.",
    ),
    _gauge(
        "ipam_audit_chain_ok",
        "",
        "0 while the alert audit_chain_broken is open, because a verification of the history found faults; else 1.",
    ),
    Family(
        "ipam_audit_anchor_info",
        Kind.INFO,
        ("segment", "digest"),
        "1, with the newest anchor of the audit chain, for `ipam audit verify --anchor`.",
    ),
    _gauge("ipam_recovery_active", "", "1 while nothing is allocated because of a recovery."),
    _gauge(
        "ipam_database_clock_skew_seconds",
        "",
        "How far the database's clock is ahead of that of the web server that was scraped.",
    ),
    Family(
        "ipam_build_info",
        Kind.INFO,
        ("version", "revision", "python"),
        "1, with the running version.",
    ),
)
BY_NAME = {family.name: family for family in ALL}
