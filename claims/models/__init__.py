"""The tables of VM networks. Rules live in constraints here, decisions in services."""

from claims.models.access import Membership
from claims.models.cluster_owners import AnyMembership, ClusterGroupMember, ClusterOwner
from claims.models.decisions import Decision
from claims.models.history import (
    EntryEvent,
    IPAMClaimEvent,
    IPPoolEvent,
    MembershipEvent,
    NetworkEvent,
    NetworkSettingsEvent,
    VMImportEvent,
    WaveEvent,
)
from claims.models.imports import ImportFile, ImportRow, PortGroup, VMImport, Wave, WaveVM
from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry, IPPool
from claims.models.networks import NAD, Network
from claims.models.places import Place
from claims.models.settings import NetworkSettings
from claims.models.verdicts import OwnVerdict, Verdict
from claims.models.workloads import Workload

__all__ = [
    "NAD",
    "AnyMembership",
    "ClusterGroupMember",
    "ClusterOwner",
    "Decision",
    "Entry",
    "EntryEvent",
    "IPAMClaim",
    "IPAMClaimEvent",
    "IPPool",
    "IPPoolEvent",
    "ImportFile",
    "ImportRow",
    "Membership",
    "MembershipEvent",
    "Network",
    "NetworkEvent",
    "NetworkSettings",
    "NetworkSettingsEvent",
    "OwnVerdict",
    "Place",
    "PortGroup",
    "VMImport",
    "VMImportEvent",
    "Verdict",
    "Wave",
    "WaveEvent",
    "WaveVM",
    "Workload",
]
