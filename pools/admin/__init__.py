"""The admin site of the register. Its modules register their tables when Django imports this."""

from pools.admin import (
    blocks,
    clusters,
    drifts,
    environments,
    events,
    observed,
    pools,
    requests,
    runs,
    users,
)

__all__ = [
    "blocks",
    "clusters",
    "drifts",
    "environments",
    "events",
    "observed",
    "pools",
    "requests",
    "runs",
    "users",
]
