"""The extension of VM networks to the register (pools/extension.py)."""

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from claims.access import cluster_owners, namespaces
from claims.access.cluster_owners import Groups, RoleBindings
from claims.admin import start
from claims.admin.networks import topology
from claims.core import resources
from claims.entries import ippool_handler
from claims.imports import drafts as import_drafts
from claims.ipamclaims import handler
from claims.ipamclaims.handler import IPAMClaimHandler
from claims.models import Network, VMImport
from claims.networks.handlers import (
    NetworkAttachmentDefinitions,
    RouteAdvertisements,
    UserDefinedNetworks,
)
from claims.operations import conditions, demo, history, leak_sources, searched
from claims.webhooks import hooks
from claims.workloads.handlers import Pods, VirtualMachineInstances, VirtualMachines
from pools.clusters import other_writers
from pools.clusters.reconcile.handler import Handler
from pools.extension import Extension
from pools.register import journal
from pools.register.demo.demo import DemoPart


def _handlers() -> Sequence[Handler]:
    """Return the handlers: networks before kinds that refer to them, claims last.

    Claims are last because they are granted addresses that no other object uses.
    """
    return (
        other_writers.Leases(handler.OVN_KUBERNETES),
        UserDefinedNetworks(resources.CLUSTER_UDN),
        UserDefinedNetworks(resources.UDN),
        RouteAdvertisements(),
        NetworkAttachmentDefinitions(),
        ippool_handler.IPPoolHandler(),
        VirtualMachines(),
        VirtualMachineInstances(),
        Pods(),
        *((RoleBindings(), Groups()) if cluster_owners.roles() else ()),
        IPAMClaimHandler(),
    )


VM_NETWORKS = Extension(
    handlers=_handlers(),
    drift_resolvers=(ippool_handler.RESOLVER,),
    other_writers=(handler.OVN_KUBERNETES,),
    webhooks=hooks.ALL,
    leak_sources=(leak_sources.VMS, leak_sources.PODS),
    event_subjects={
        "network": _("VM networks"),
        "ippool": _("IPPools"),
        "entry": _("MAC entries"),
        "ipamclaim": _("claims"),
        "membership": _("memberships"),
        "wave": _("migration waves"),
        "network_settings": _("settings of VM networks"),
    },
    history_searchers=history.SEARCHERS,
    history_readers=(history.parse_mac_criteria,),
    history_permissions=("claims.view_entry",),
    holder_readers=(history.registered_addresses,),
    attributed={"network": Network},
    checks=conditions.CHECKS,
    sql_packages=("claims.sql",),
    conditions=conditions.ALL,
    metrics=(conditions.values,),
    imports={VMImport.KIND: import_drafts.IMPORTS},
    journal_subjects=(
        journal.Subject(
            Network, lambda rows, user: namespaces.visible(rows, namespaces.scope(user))
        ),
    ),
    start_pages=(start.page,),
    searched=searched.COLUMNS,
    find_permissions=("claims.view_entry",),
    guests=(topology.guests,),
    search_recognizers=(searched.read_mac,),
    event_searches=(searched.search_events,),
    event_references=history.EVENT_REFERENCES,
    demo_parts=(
        DemoPart(demo.steps, demo.forget),
        DemoPart(hooks.demo_steps),
    ),
)
