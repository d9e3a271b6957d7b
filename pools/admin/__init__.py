"""The admin site of the register. Its modules register their tables when Django imports this."""

from pools.admin import (
    blocks,
    checks,
    clusters,
    drifts,
    environments,
    events,
    leaks,
    notices,
    observed,
    pools,
    recovering,
    requests,
    runs,
    users,
    webhook_targets,
)

__all__ = [
    "blocks",
    "checks",
    "clusters",
    "drifts",
    "environments",
    "events",
    "leaks",
    "notices",
    "observed",
    "pools",
    "recovering",
    "requests",
    "runs",
    "users",
    "webhook_targets",
]
