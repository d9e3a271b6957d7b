"""The endpoints of address space below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from pools.api import (
    addresses,
    alerts,
    allocations,
    audit,
    blocks,
    checks,
    custom_fields,
    dns,
    environments,
    events,
    history,
    imports,
    journal,
    leaks,
    migrations,
    pool_cidrs,
    pools,
    references,
    requests,
    utilization,
    webhook_targets,
)
from pools.api.clusters import clusters, connections, drift, guides, observed, observed_cidrs
from pools.api.plan import address_plan, containers
from pools.api.register_imports import imports as register_imports
from pools.api.register_imports import netbox
from pools.platform.rest import docs

app_name = "api"
_REGISTER_IMPORT = "register-imports/<int:register_import_id>/"
urlpatterns = [
    # The most frequent request comes first: Django tries patterns in this order.
    path("pools/<int:pool_id>/allocations/", allocations.Allocations.as_view(), name="allocations"),
    path("register-imports/", register_imports.RegisterImports.as_view(), name="register-imports"),
    path(
        _REGISTER_IMPORT,
        register_imports.RegisterImportView.as_view(),
        name="register-import",
    ),
    path(
        f"{_REGISTER_IMPORT}rows/",
        register_imports.RegisterRows.as_view(),
        name="register-import-rows",
    ),
    path(
        f"{_REGISTER_IMPORT}rows/<int:number>/",
        register_imports.RegisterRowView.as_view(),
        name="register-import-row",
    ),
    path(
        f"{_REGISTER_IMPORT}commit/",
        register_imports.RegisterImportCommit.as_view(),
        name="register-import-commit",
    ),
    path(
        f"{_REGISTER_IMPORT}check/",
        register_imports.RegisterImportCheck.as_view(),
        name="register-import-check",
    ),
    path(
        f"{_REGISTER_IMPORT}undo/",
        register_imports.RegisterImportUndo.as_view(),
        name="register-import-undo",
    ),
    path(
        f"{_REGISTER_IMPORT}cancel/",
        register_imports.RegisterImportCancel.as_view(),
        name="register-import-cancel",
    ),
    path("netbox-sources/", netbox.NetBoxSources.as_view(), name="netbox-sources"),
    path(
        "netbox-sources/<int:netbox_source_id>/",
        netbox.NetBoxSourceView.as_view(),
        name="netbox-source",
    ),
    path(
        "netbox-sources/<int:netbox_source_id>/imports/",
        netbox.NetBoxImports.as_view(),
        name="netbox-imports",
    ),
    path("netbox-export/<slug:kind>.csv", netbox.NetBoxExport.as_view(), name="netbox-export"),
    path("clusters/", clusters.Clusters.as_view(), name="clusters"),
    path("clusters/<str:cluster>/", clusters.ClusterView.as_view(), name="cluster"),
    path(
        "clusters/<str:cluster>/connection/",
        connections.ConnectionView.as_view(),
        name="connection",
    ),
    path(
        "clusters/<str:cluster>/connection/test/",
        connections.ConnectionTest.as_view(),
        name="connection-test",
    ),
    path("clusters/<str:cluster>/reconcile/", connections.Reconcile.as_view(), name="reconcile"),
    path("clusters/<str:cluster>/runs/", observed.Runs.as_view(), name="runs"),
    path("clusters/<str:cluster>/objects/", observed.Objects.as_view(), name="objects"),
    path(
        "clusters/<str:cluster>/objects/<int:object_id>/",
        observed.ObjectView.as_view(),
        name="object",
    ),
    path("clusters/<str:cluster>/findings/", observed.Findings.as_view(), name="findings"),
    path("clusters/<str:cluster>/drift/", observed.Drifts.as_view(), name="drift"),
    path(
        "clusters/<str:cluster>/drift/<int:drift_id>/ownership/",
        drift.Ownership.as_view(),
        name="drift-ownership",
    ),
    path(
        "clusters/<str:cluster>/drift/<int:drift_id>/<str:decision>/",
        drift.DriftDecision.as_view(),
        name="drift-decision",
    ),
    path("clusters/<str:cluster>/nodes/", drift.Nodes.as_view(), name="nodes"),
    path("clusters/<str:cluster>/manifest/", guides.ClusterManifest.as_view(), name="manifests"),
    path("clusters/<str:cluster>/node-demand/", guides.NodeDemand.as_view(), name="node-demand"),
    path("clusters/<str:cluster>/pool-for-pod/", guides.PoolForPod.as_view(), name="pool-for-pod"),
    path("clusters/<str:cluster>/preflight/", guides.Preflight.as_view(), name="preflight"),
    path("custom-fields/", custom_fields.CustomFields.as_view(), name="custom-fields"),
    path(
        "custom-fields/<int:custom_field_id>/",
        custom_fields.CustomFieldView.as_view(),
        name="custom-field",
    ),
    path("dns/zone-file/", dns.ZoneFile.as_view(), name="dns-zone-file"),
    path("dns/endpoints/", dns.Endpoints.as_view(), name="dns-endpoints"),
    path("containers/", containers.Containers.as_view(), name="containers"),
    path("containers/<int:container_id>/", containers.ContainerDetail.as_view(), name="container"),
    path(
        "containers/<int:container_id>/available-prefixes/",
        address_plan.AvailablePrefixes.as_view(),
        name="available-prefixes",
    ),
    path(
        "containers/<int:container_id>/next-prefix/",
        address_plan.NextPrefix.as_view(),
        name="next-prefix",
    ),
    path("address-plan/", address_plan.AddressPlan.as_view(), name="address-plan"),
    path("observed-cidrs/", observed_cidrs.ObservedCIDRs.as_view(), name="observed-cidrs"),
    path(
        "observed-cidrs/<int:observed_cidr_id>/",
        observed_cidrs.ObservedCIDRView.as_view(),
        name="observed-cidr",
    ),
    path("overlaps/", guides.Overlaps.as_view(), name="overlaps"),
    path("pools/", pools.Pools.as_view(), name="pools"),
    path("pools/import/", imports.PoolImport.as_view(), name="pool-import"),
    path("pools/<int:pool_id>/", pools.PoolView.as_view(), name="pool"),
    path("pools/<int:pool_id>/cidrs/", pool_cidrs.PoolCIDRs.as_view(), name="cidrs"),
    path(
        "pools/<int:pool_id>/cidrs/<int:cidr_id>/", pool_cidrs.PoolCIDRView.as_view(), name="cidr"
    ),
    path(
        "pools/<int:pool_id>/cidrs/<int:cidr_id>/reserved-ranges/",
        pool_cidrs.ReservedRanges.as_view(),
        name="reserved-ranges",
    ),
    path(
        "pools/<int:pool_id>/reserved-ranges/<int:range_id>/",
        pool_cidrs.ReservedRangeView.as_view(),
        name="reserved-range",
    ),
    path("pools/<int:pool_id>/forecast/", utilization.Forecast.as_view(), name="forecast"),
    path("pools/<int:pool_id>/manifest/", guides.PoolManifest.as_view(), name="manifest"),
    path("pools/<int:pool_id>/migrations/", migrations.Migrations.as_view(), name="migrations"),
    path(
        "pools/<int:pool_id>/migrations/<int:migration_id>/",
        migrations.MigrationView.as_view(),
        name="migration",
    ),
    path(
        "pools/<int:pool_id>/migrations/<int:migration_id>/steps/",
        migrations.MigrationSteps.as_view(),
        name="migration-steps",
    ),
    path("blocks/", blocks.Blocks.as_view(), name="blocks"),
    path("blocks/<int:block_id>/", blocks.BlockView.as_view(), name="block"),
    path("blocks/<int:block_id>/release/", blocks.Release.as_view(), name="release"),
    path("blocks/<int:block_id>/end-cooldown/", blocks.EndCooldown.as_view(), name="end-cooldown"),
    path("blocks/<int:block_id>/reclaim/", leaks.Reclaim.as_view(), name="reclaim"),
    path("leaks/", leaks.Leaks.as_view(), name="leaks"),
    path("leaks/reclaim/", leaks.ReclaimAll.as_view(), name="reclaim-all"),
    path("references/", references.References.as_view(), name="references"),
    path("checks/", checks.Checks.as_view(), name="checks"),
    path("checks/<int:check_id>/", checks.CheckView.as_view(), name="check"),
    path("requests/", requests.Requests.as_view(), name="requests"),
    path("requests/<int:request_id>/", requests.RequestView.as_view(), name="request"),
    path("utilization/", utilization.Utilization.as_view(), name="utilization"),
    path("journal/", journal.Journal.as_view(), name="journal"),
    path("journal/<int:note_id>/", journal.JournalEntryView.as_view(), name="journal-entry"),
    path("environments/", environments.Environments.as_view(), name="environments"),
    path(
        "environments/<int:environment_id>/",
        environments.EnvironmentView.as_view(),
        name="environment",
    ),
    path("alerts/", alerts.Alerts.as_view(), name="alerts"),
    path("alerts/<int:alert_id>/", alerts.AlertView.as_view(), name="alert"),
    path("webhook-targets/", webhook_targets.WebhookTargets.as_view(), name="webhook-targets"),
    path(
        "webhook-targets/<int:target_id>/",
        webhook_targets.WebhookTargetView.as_view(),
        name="webhook-target",
    ),
    path(
        "webhook-targets/<int:target_id>/rotate/",
        webhook_targets.Rotation.as_view(),
        name="webhook-target-rotate",
    ),
    path(
        "webhook-targets/<int:target_id>/test/",
        webhook_targets.Test.as_view(),
        name="webhook-target-test",
    ),
    path(
        "webhook-targets/<int:target_id>/deliveries/",
        webhook_targets.Deliveries.as_view(),
        name="webhook-deliveries",
    ),
    path(
        "webhook-targets/<int:target_id>/deliveries/<int:delivery_id>/send/",
        webhook_targets.SendAgain.as_view(),
        name="webhook-delivery-send",
    ),
    path("events/", events.Events.as_view(), name="events"),
    path("history/", history.History.as_view(), name="history"),
    path("holders/uid/<str:uid>/history/", history.UidHistory.as_view(), name="uid-history"),
    path(
        "holders/<str:kind>/<path:holder>/history/",
        history.HolderHistory.as_view(),
        name="holder-history",
    ),
    path("pools/<int:pool_id>/at/", history.PoolAt.as_view(), name="pool-at"),
    path("audit/", audit.Audit.as_view(), name="audit"),
    path("addresses/<str:address>/", addresses.Address.as_view(), name="address"),
    path(
        "instances/<str:instance>/network/",
        addresses.InstanceNetwork.as_view(),
        name="instance-network",
    ),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs.Docs.as_view(), name="docs"),
]
