"""The tables of the register. Rules live in constraints and triggers here, decisions in services."""

from pools.models.blocks import Block, FreeSpan, Window
from pools.models.cidr_migrations import CIDRMigration
from pools.models.clusters import AddressSpace, Cluster
from pools.models.connections import Connection, Watcher
from pools.models.fields import HostAddressField
from pools.models.history import (
    BlockEvent,
    ClusterEvent,
    ConnectionEvent,
    Event,
    FailureEvent,
    PoolCIDREvent,
    PoolEvent,
    ReservedRangeEvent,
)
from pools.models.observed import Drift, Finding, ObservedObject, Run
from pools.models.pools import Pool, PoolCIDR, ReservedRange
from pools.models.requests import AllocationRequest, Environment, IdempotencyKey, PoolUsage
from pools.models.tokens import TokenUse

__all__ = [
    "AddressSpace",
    "AllocationRequest",
    "Block",
    "BlockEvent",
    "CIDRMigration",
    "Cluster",
    "ClusterEvent",
    "Connection",
    "ConnectionEvent",
    "Drift",
    "Environment",
    "Event",
    "FailureEvent",
    "Finding",
    "FreeSpan",
    "HostAddressField",
    "IdempotencyKey",
    "ObservedObject",
    "Pool",
    "PoolCIDR",
    "PoolCIDREvent",
    "PoolEvent",
    "PoolUsage",
    "ReservedRange",
    "ReservedRangeEvent",
    "Run",
    "TokenUse",
    "Watcher",
    "Window",
]
