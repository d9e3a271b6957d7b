"""The extension point of the register: what an app adds to it, in one `Extension` value.

`pools` and `claims` have one each. The app config installs it in `ready()`; nothing else fills
the lists of the packages that use its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from pools.admin import events as admin_events
from pools.admin import find
from pools.admin.clusters import address_claims as address_claims_admin
from pools.admin.overview import overview
from pools.cilium import ciliumnodes, ciliumpodippools, pending_cidrs
from pools.cilium import drift as cilium_drift
from pools.cluster_api import claims as address_claims
from pools.cluster_api import kinds
from pools.cluster_api import leaks as cluster_api_leaks
from pools.cluster_api import pools as cadastre_pools
from pools.clusters import connections, drift
from pools.clusters import metrics as cluster_metrics
from pools.clusters.reconcile import observers, registry
from pools.clusters.reconcile.handler import Handler
from pools.core.cluster_api import contract
from pools.models import (
    BlockEvent,
    Cluster,
    ClusterEvent,
    ConnectionEvent,
    Container,
    ContainerEvent,
    CustomFieldEvent,
    DirectoryAccountEvent,
    DNSNameEvent,
    EnvironmentEvent,
    FailureEvent,
    JournalEntryEvent,
    NetBoxSourceEvent,
    PasskeyEvent,
    Pool,
    PoolCIDR,
    PoolCIDREvent,
    PoolEvent,
    RegisterImportEvent,
    ReservedRangeEvent,
    SecondFactorEvent,
    WebhookTargetEvent,
)
from pools.observed import handlers as observed_kinds
from pools.platform import events
from pools.platform.admin import search_text
from pools.platform.alerts import event_feed
from pools.platform.attributes import registry as attribute_registry
from pools.platform.audit import verification
from pools.platform.checks import constraints, triggers
from pools.platform.checks import registry as check_registry
from pools.platform.checks.checks import Check
from pools.platform.conditions import registry as condition_registry
from pools.platform.conditions.registry import Condition
from pools.platform.history import search
from pools.platform.metrics import registry as metric_registry
from pools.platform.metrics import totals
from pools.register import event_filters, journal, operating_metrics
from pools.register import metrics as register_metrics
from pools.register.checks import (
    blocks,
    cidrs,
    counts,
    free_space,
    holders,
    row_history,
    waiting,
    withheld,
)
from pools.register.conditions import clusters as cluster_conditions
from pools.register.conditions import metrics as condition_metrics
from pools.register.conditions import pools as pool_conditions
from pools.register.conditions import register as register_conditions
from pools.register.demo import demo, labels, samples
from pools.register.history import holders as history_holders
from pools.register.history import searchers
from pools.register.leaks import detection
from pools.webhooks import configuration

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Extension:
    """The parts of an app.

    `handlers` run in their order. `event_subjects` has the labels of the first words of event
    types, for the filter of the events page. A user needs one of `history_permissions` to search
    the history, and one of `find_permissions` for the Find page.
    """

    # Reconcile
    handlers: Sequence[Handler] = ()
    drift_resolvers: Sequence[drift.DriftResolver] = ()
    sync_observers: Sequence[observers.Observer] = ()
    disconnect_observers: Sequence[Callable[[Cluster, events.Author], None]] = ()
    webhooks: Sequence[configuration.Hook] = ()
    leak_sources: Sequence[detection.LeakSource] = ()
    # History
    event_tables: Sequence[Any] = ()
    event_subjects: Mapping[str, StrOrPromise] = field(default_factory=dict)
    history_searchers: Sequence[search.Searcher] = ()
    history_readers: Sequence[Callable[[str], search.HistoryQuery | None]] = ()
    history_permissions: Sequence[str] = ()
    holder_readers: Sequence[history_holders.AddressNamer] = ()
    table_checks: Sequence[Check] = ()
    # Kinds of objects with tags, an owner and custom fields, by their names in REST
    attributed: Mapping[str, Any] = field(default_factory=dict)
    # Checks, conditions and metrics
    checks: Sequence[Check] = ()
    sql_packages: Sequence[str] = ()
    conditions: Sequence[Condition] = ()
    metrics: Sequence[metric_registry.Source] = ()
    # Pages
    journal_subjects: Sequence[journal.Subject] = ()
    start_pages: Sequence[overview.StartPage] = ()
    finders: Sequence[find.Finder] = ()
    find_permissions: Sequence[str] = ()
    search_recognizers: Sequence[search_text.Recognizer] = ()
    event_searches: Sequence[admin_events.Search] = ()
    event_references: Sequence[event_filters.Reference] = ()
    demo_parts: Sequence[demo.DemoPart] = ()


def install(extension: Extension) -> None:
    """Append the parts of an app to the lists of the packages that use them."""
    registry.HANDLERS.extend(extension.handlers)
    drift.RESOLVERS.extend(extension.drift_resolvers)
    observers.OBSERVERS.extend(extension.sync_observers)
    connections.DISCONNECT_OBSERVERS.extend(extension.disconnect_observers)
    configuration.HOOKS.extend(extension.webhooks)
    detection.SOURCES.extend(extension.leak_sources)
    events.EVENT_TABLES.extend(extension.event_tables)
    admin_events.SUBJECTS.update(extension.event_subjects)
    event_feed.KINDS.update(extension.event_subjects)
    search.SEARCHERS.extend(extension.history_searchers)
    search.TEXT_READERS.extend(extension.history_readers)
    search.PERMISSIONS.extend(extension.history_permissions)
    history_holders.ADDRESS_NAMERS.extend(extension.holder_readers)
    attribute_registry.MODELS.update(extension.attributed)
    verification.TABLE_CHECKS.extend(extension.table_checks)
    check_registry.CHECKS.extend(extension.checks)
    triggers.PACKAGES.extend(extension.sql_packages)
    condition_registry.CONDITIONS.extend(extension.conditions)
    metric_registry.SOURCES.extend(extension.metrics)
    journal.SUBJECTS.extend(extension.journal_subjects)
    overview.START_PAGES.extend(extension.start_pages)
    find.FINDERS.extend(extension.finders)
    find.PERMISSIONS.extend(extension.find_permissions)
    search_text.RECOGNIZERS.extend(extension.search_recognizers)
    admin_events.SEARCHES.extend(extension.event_searches)
    event_filters.REFERENCES.extend(extension.event_references)
    demo.PARTS.extend(extension.demo_parts)


ADDRESS_SPACE = Extension(
    # Pools before nodes: the blocks of nodes belong to pools. CadastrePools after claims: their status
    # counts what claims got.
    handlers=(
        ciliumpodippools.CiliumPodIPPools(),
        ciliumnodes.CiliumNodes(),
        *observed_kinds.ALL,
        kinds.Clusters(),
        kinds.IPAddresses(),
        address_claims.IPAddressClaims(),
        *(cadastre_pools.CadastrePools(kind) for kind in contract.POOL_KINDS),
    ),
    drift_resolvers=(cilium_drift.RESOLVER,),
    sync_observers=(detection.observe_full_sync,),
    disconnect_observers=(pending_cidrs.end_pending,),
    webhooks=(configuration.CILIUM_POD_IP_POOLS,),
    leak_sources=(detection.NODES, cluster_api_leaks.CLAIMS),
    event_tables=(
        BlockEvent,
        FailureEvent,
        PoolEvent,
        PoolCIDREvent,
        ReservedRangeEvent,
        RegisterImportEvent,
        NetBoxSourceEvent,
        ClusterEvent,
        ConnectionEvent,
        WebhookTargetEvent,
        ContainerEvent,
        CustomFieldEvent,
        DNSNameEvent,
        EnvironmentEvent,
        JournalEntryEvent,
        DirectoryAccountEvent,
        SecondFactorEvent,
        PasskeyEvent,
    ),
    event_subjects={
        "pool": _("pools, CIDRs, ranges"),
        "cluster": _("clusters"),
        "connection": _("connections to clusters"),
        "container": _("network containers"),
        "custom_field": _("custom fields"),
        "dns_name": _("DNS names"),
        "register_import": _("imports of registers"),
        "netbox_source": _("NetBox sources"),
        "environment": _("environments"),
        "journal": _("journal"),
        "webhook": _("webhooks"),
        "directory_account": _("directory accounts"),
        "second_factor": _("second factors"),
        "passkey": _("passkeys"),
    },
    history_searchers=searchers.SEARCHERS,
    history_permissions=(search.VIEW_EVENTS,),
    table_checks=(blocks.HISTORY, row_history.BLOCKS, row_history.ROWS),
    attributed={"cluster": Cluster, "pool": Pool, "cidr": PoolCIDR},
    checks=(
        constraints.CHECK,
        triggers.CHECK,
        *cidrs.CHECKS,
        *blocks.CHECKS,
        *row_history.CHECKS,
        *holders.CHECKS,
        withheld.CHECK,
        free_space.CHECK,
        *counts.CHECKS,
        *waiting.CHECKS,
    ),
    sql_packages=("pools.sql",),
    conditions=(*pool_conditions.ALL, *cluster_conditions.ALL, *register_conditions.ALL),
    metrics=(
        register_metrics.values,
        cluster_metrics.sample_values,
        operating_metrics.values,
        condition_metrics.values,
        totals.values,
    ),
    finders=(address_claims_admin.finder,),
    find_permissions=("pools.view_block",),
    journal_subjects=(
        journal.Subject(Cluster),
        journal.Subject(Pool),
        journal.Subject(Container),
    ),
    demo_parts=(
        demo.DemoPart(labels.steps, labels.forget),
        demo.DemoPart(samples.steps, samples.forget),
    ),
)
