"""Admin pages of VM networks; each module registers its own models."""

from claims.admin import (
    cluster_owners,
    events,
    find,
    memberships,
    start,
    webhooks,
    workloads,
)
from claims.admin.entries import entries, ippools
from claims.admin.imports import imports
from claims.admin.ipamclaims import ipamclaims
from claims.admin.networks import networks
from claims.admin.waves import waves

__all__ = [
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
