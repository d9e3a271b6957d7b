"""Admin site of the register. Importing this package registers the ModelAdmin classes."""

from pools.admin import alerts, checks, events, recovery_mode, users, webhook_targets
from pools.admin.clusters import clusters, drift, observed, observed_cidrs, sync_runs
from pools.admin.plan import containers
from pools.admin.pools import blocks, environments, leaks, pools, requests

__all__ = [
    "alerts",
    "blocks",
    "checks",
    "clusters",
    "containers",
    "drift",
    "environments",
    "events",
    "leaks",
    "observed",
    "observed_cidrs",
    "pools",
    "recovery_mode",
    "requests",
    "sync_runs",
    "users",
    "webhook_targets",
]
