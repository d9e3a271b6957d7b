"""The extension point of the register: what an app adds to it, in one `Extension` value.

`pools` and `claims` have one each. The app config installs it in `ready()`; nothing else fills
the lists of the packages that use its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.admin import events as admin_events, find
from pools.admin.clusters import observed as observed_admin
from pools.admin.overview import overview
from pools.admin.pools import topology
from pools.cidr_migrations import demo as migration_demo
from pools.cilium import (
    ciliumnodes,
    ciliumpodippools,
    configuration as cilium_operator,
    pool_findings,
    pool_sync,
)
from pools.cluster_api import allocation, claims, claims as address_claims, pools as cadastre_pools
from pools.clusters import connections, drift, fleet as cluster_metrics, other_writers
from pools.clusters.reconcile import registry
from pools.clusters.reconcile.handler import Handler
from pools.core.cluster_api import contract
from pools.models import (
    Cluster,
    Container,
    Pool,
    PoolCIDR,
    RegisterImport,
)
from pools.observed import cidrs as observed_kinds, cidrs as observed_metrics
from pools.platform import attributes, checks as data_checks, events, search
from pools.platform.alerts import targets
from pools.platform.conditions import registry as condition_registry
from pools.platform.conditions.registry import Condition
from pools.platform.history import search as history_search
from pools.platform.imports import lifecycle
from pools.platform.imports.lifecycle import Imports
from pools.platform.metrics import registry as metric_registry
from pools.register import (
    checks as register_checks,
    event_filters,
    journal,
    metrics as register_metrics,
    searched,
)
from pools.register.conditions import (
    clusters as cluster_conditions,
    pools as pool_conditions,
    register as register_conditions,
)
from pools.register.demo import cluster_syncs, demo, samples
from pools.register.history import holders as history_holders, searchers
from pools.register.imports import drafts as import_drafts
from pools.register.leaks import detection
from pools.webhooks import configuration


def _part(*targets: Any) -> Any:
    """A part of an extension, and the lists or dictionaries that it is added to."""
    return field(default=(), metadata={"targets": targets})


@dataclass(frozen=True)
class Extension:
    """The parts of an app.

    `handlers` run in their order. `event_subjects` has the labels of the first words of event
    types, for the filter of the events page. A user needs one of `history_permissions` to search
    the history, and one of `find_permissions` for the Find page.
    """

    # Reconcile
    handlers: Sequence[Handler] = _part(registry.HANDLERS)
    drift_resolvers: Sequence[drift.DriftResolver] = _part(drift.RESOLVERS)
    sync_observers: Sequence[registry.Observer] = _part(registry.OBSERVERS)
    other_writers: Sequence[other_writers.OtherWriter] = _part(other_writers.WRITERS)
    disconnect_observers: Sequence[Callable[[Cluster, events.Author], None]] = _part(
        connections.DISCONNECT_OBSERVERS
    )
    webhooks: Sequence[configuration.Hook] = _part(configuration.HOOKS)
    leak_sources: Sequence[detection.LeakSource] = _part(detection.SOURCES)
    # History
    event_subjects: Mapping[str, StrOrPromise] = _part(admin_events.SUBJECTS, targets.KINDS)
    history_searchers: Sequence[history_search.Searcher] = _part(history_search.SEARCHERS)
    history_readers: Sequence[Callable[[str], history_search.HistoryQuery | None]] = _part(
        history_search.TEXT_READERS
    )
    history_permissions: Sequence[str] = _part(history_search.PERMISSIONS)
    holder_readers: Sequence[history_holders.AddressNamer] = _part(history_holders.ADDRESS_NAMERS)
    # Kinds of objects with tags, an owner and custom fields, by their names in REST
    attributed: Mapping[str, Any] = _part(attributes.MODELS)
    # Checks, conditions and metrics
    checks: Mapping[str, data_checks.Check] = _part(data_checks.CHECKS)
    sql_packages: Sequence[str] = _part(data_checks.SQL_PACKAGES)
    conditions: Sequence[Condition] = _part(condition_registry.CONDITIONS)
    metrics: Sequence[metric_registry.Source] = _part(metric_registry.SOURCES)
    imports: Mapping[str, Imports[Any]] = _part(lifecycle.KINDS)  # by their kind
    # Pages
    journal_subjects: Sequence[journal.Subject] = _part(journal.SUBJECTS)
    start_pages: Sequence[overview.StartPage] = _part(overview.START_PAGES)
    searched: Mapping[Any, search.Searched] = _part(search.COLUMNS)
    find_tables: Mapping[Any, find.Table] = _part(find.TABLES)
    find_permissions: Sequence[str] = _part(find.PERMISSIONS)
    guests: Sequence[topology.Guests] = _part(topology.GUESTS)
    search_recognizers: Sequence[search.Recognizer] = _part(search.RECOGNIZERS)
    event_searches: Sequence[admin_events.Search] = _part(admin_events.SEARCHES)
    event_references: Sequence[event_filters.Reference] = _part(event_filters.REFERENCES)
    demo_parts: Sequence[demo.DemoPart] = _part(demo.PARTS)


def install(extension: Extension) -> None:
    """Append the parts of an app to the lists of the packages that use them."""
    for part in fields(extension):
        for target in part.metadata["targets"]:
            add = target.extend if isinstance(target, list) else target.update
            add(getattr(extension, part.name))


ADDRESS_SPACE = Extension(
    # Pools before nodes: the blocks of nodes belong to pools. CadastrePools after claims: their status
    # counts what claims got.
    handlers=(
        other_writers.Leases(cilium_operator.CILIUM_OPERATOR),
        ciliumpodippools.CiliumPodIPPools(),
        ciliumnodes.CiliumNodes(),
        *observed_kinds.ALL,
        claims.Clusters(),
        claims.IPAddresses(),
        address_claims.IPAddressClaims(),
        *(cadastre_pools.CadastrePools(kind) for kind in contract.POOL_KINDS),
    ),
    drift_resolvers=(pool_sync.DRIFT_RESOLVER,),
    sync_observers=(detection.observe_full_sync,),
    other_writers=(cilium_operator.CILIUM_OPERATOR,),
    disconnect_observers=(pool_findings.end_pending,),
    webhooks=(configuration.CILIUM_POD_IP_POOLS,),
    leak_sources=(detection.NODES, detection.NODE_POOLS, allocation.LEAK_SOURCE),
    event_subjects={
        "pool": _("pools, CIDRs, ranges"),
        "cluster": _("clusters"),
        "connection": _("connections to clusters"),
        "container": _("network containers"),
        "custom_field": _("custom fields"),
        "dns_name": _("DNS names"),
        "import": _("imports"),
        "netbox_source": _("NetBox sources"),
        "environment": _("environments"),
        "journal": _("journal"),
        "webhook": _("webhooks"),
        "directory_account": _("directory accounts"),
        "authenticator_app": _("authenticator apps"),
        "passkey": _("passkeys"),
        "recovery_codes": _("recovery codes"),
        "token": _("API tokens"),
    },
    history_searchers=searchers.SEARCHERS,
    history_permissions=(history_search.VIEW_EVENTS,),
    attributed={"cluster": Cluster, "pool": Pool, "cidr": PoolCIDR, "container": Container},
    checks={
        "constraints": data_checks.schema_constraints,
        "triggers": data_checks.schema_triggers,
        **register_checks.CHECKS,
    },
    sql_packages=("pools.sql",),
    conditions=(*pool_conditions.ALL, *cluster_conditions.ALL, *register_conditions.ALL),
    metrics=(
        register_metrics.values,
        cluster_metrics.sample_values,
        observed_metrics.values,
        register_metrics.operating_values,
        register_metrics.condition_values,
        metric_registry.totals,
    ),
    searched=searched.COLUMNS,
    find_tables=observed_admin.FIND_TABLES,
    find_permissions=("pools.view_block",),
    imports={RegisterImport.KIND: import_drafts.IMPORTS},
    journal_subjects=(
        journal.Subject(Cluster),
        journal.Subject(Pool),
        journal.Subject(Container),
    ),
    demo_parts=(
        demo.DemoPart(samples.label_steps, samples.forget_labels),
        demo.DemoPart(samples.steps, samples.forget),
        demo.DemoPart(migration_demo.steps, migration_demo.forget),
        demo.DemoPart(cluster_syncs.steps, cluster_syncs.forget),
    ),
)
