"""Tables of VM networks. Constraints of the models enforce the rules; the packages beside this one make the decisions."""

from claims.models.cluster_owners import AnyMembership, ClusterGroupMember, ClusterOwner, Membership
from claims.models.history import (
    EntryEvent,
    IPAMClaimEvent,
    IPPoolEvent,
    MembershipEvent,
    NetworkEvent,
    NetworkSettingsEvent,
    WaveEvent,
)
from claims.models.imports import PortGroup, VMImport, VMRow, Wave, WaveVM
from claims.models.networks import NAD, Decision, Entry, IPPool, Network, NetworkSettings
from claims.models.workloads import (
    IndexEntry,
    IPAMClaim,
    NamespaceWorkloadComparison,
    Workload,
    WorkloadComparison,
    WorkloadCounts,
)
