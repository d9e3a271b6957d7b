"""The tables of the register. Constraints and triggers enforce the rules; services make decisions."""

from pools.models.accounts import (
    BrowserSession,
    DirectoryAccount,
    DirectorySource,
    FactorOwner,
    ListColumns,
    LoginFailures,
    Preferences,
    SavedFilter,
    TokenLevel,
    TokenOwner,
    TokenScope,
    TokenUse,
    time_zones,
)
from pools.models.alerts import Alert, Delivery, Silence, WebhookTarget
from pools.models.attributes import CustomField, JournalEntry
from pools.models.audit import AuditLayout, AuditSegment
from pools.models.blocks import Block, DNSName, FreeSpan, Window
from pools.models.clusters import AddressSpace, Cluster, Recovery
from pools.models.connections import Connection, Watcher
from pools.models.fields import HostAddressField
from pools.models.history import (
    BlockEvent,
    ClusterEvent,
    ConnectionEvent,
    ContainerEvent,
    CustomFieldEvent,
    DirectoryAccountEvent,
    DNSNameEvent,
    EnvironmentEvent,
    Event,
    FactorEvent,
    FailureEvent,
    ImportEvent,
    JournalEntryEvent,
    NetBoxSourceEvent,
    PoolCIDREvent,
    PoolEvent,
    ReservedRangeEvent,
    TokenEvent,
    WebhookTargetEvent,
)
from pools.models.imports import (
    Import,
    ImportFile,
    ImportRow,
    NetBoxSource,
    RegisterImport,
    RegisterRecord,
    RegisterRow,
)
from pools.models.observed import Drift, Finding, ObservedCIDR, ObservedObject, SyncRun
from pools.models.pools import CIDRMigration, Container, Pool, PoolCIDR, ReservedRange
from pools.models.references import Leak, Reference, ReferenceFeed
from pools.models.requests import AllocationRequest, Environment, IdempotencyKey, PoolUsage
from pools.models.samples import CountedUntil, Measure, PoolForecast, Sample, SampleSum
