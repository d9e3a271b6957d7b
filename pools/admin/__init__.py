"""Admin site of the register. Importing this package registers the ModelAdmin classes."""

from pools.admin import alerts, checks, events, recovery_mode, users, webhook_targets
from pools.admin.clusters import clusters, drift, observed, sync_runs
from pools.admin.plan import containers
from pools.admin.pools import blocks, environments, leaks, pools, requests
from pools.admin.register_imports import imports, sources

__all__ = [
    "alerts",
    "blocks",
    "checks",
    "clusters",
    "containers",
    "drift",
    "environments",
    "events",
    "imports",
    "leaks",
    "observed",
    "pools",
    "recovery_mode",
    "requests",
    "sources",
    "sync_runs",
    "users",
    "webhook_targets",
]
