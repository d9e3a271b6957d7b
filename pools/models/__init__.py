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
from pools.models.alerts import (
    Alert,
    Delivery,
    DeliveryEvent,
    DeliveryState,
    Level,
    Silence,
    TargetKind,
    WebhookTarget,
)
from pools.models.attributes import ATTRIBUTES, CustomField, CustomFieldType
from pools.models.audit import AuditLayout, AuditSegment
from pools.models.blocks import LIVE, Block, BlockState, DNSName, FreeSpan, Window
from pools.models.clusters import (
    AddressSpace,
    Cluster,
    Connection,
    ManagedResource,
    Mode,
    Recovery,
    Watcher,
)
from pools.models.fields import Clock, HostAddressField, Now
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
    ImportStatus,
    NetBoxSource,
    RegisterImport,
    RegisterRecord,
    RegisterRow,
    RegisterTarget,
    RowStatus,
)
from pools.models.journal import JournalEntry, JournalKind
from pools.models.observed import (
    Drift,
    Finding,
    ObservedCIDR,
    ObservedObject,
    Severity,
    SyncRun,
    Trigger,
)
from pools.models.pools import (
    Category,
    CIDRMigration,
    Container,
    Pending,
    Pool,
    PoolCIDR,
    ReservedRange,
)
from pools.models.references import Leak, Reference, ReferenceFeed
from pools.models.requests import (
    AllocationRequest,
    Environment,
    IdempotencyKey,
    PoolUsage,
    RequestState,
)
from pools.models.samples import CountedUntil, Measure, PoolForecast, Sample, SampleSum
