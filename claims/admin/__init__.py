"""The pages of VM networks; each module registers its own."""

from claims.admin import (
    attention,
    cluster_owners,
    entries,
    events,
    find,
    imports,
    ipamclaims,
    ippools,
    memberships,
    networks,
    start,
    waves,
    webhooks,
    workloads,
)

__all__ = [
    "attention",
    "cluster_owners",
    "entries",
    "events",
    "find",
    "imports",
    "ipamclaims",
    "ippools",
    "memberships",
    "networks",
    "start",
    "waves",
    "webhooks",
    "workloads",
]
