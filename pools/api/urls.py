"""The endpoints of address space below /api/v1/, and their documentation in a browser."""

from django.contrib.auth.views import redirect_to_login
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions

from pools.api import (
    addresses,
    alerts,
    allocations,
    blocks,
    comparison,
    custom_fields,
    dns,
    environments,
    history,
    journal,
    leaks,
    manifests,
    migrations,
    pool_cidrs,
    pools,
    references,
    requests,
    utilization,
    webhook_targets,
)
from pools.api.clusters import clusters, connections, drift, guides, observed
from pools.api.imports import netbox
from pools.api.imports import views as imports
from pools.api.plan import address_plan, containers
from pools.platform.rest.views import endpoints


class Docs(SpectacularSwaggerSplitView):
    """The view with a separate start script, because the content security policy refuses inline scripts."""

    title = "API reference | Cadastre"
    url_name = "api:schema"
    template_name = "cadastre/api_docs.html"
    # OPTIONS would render the page's template, which needs the page's context.
    http_method_names = ["get", "head"]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]  # also a redirect
        """Lead a browser without a session to the sign-in page."""
        if isinstance(exc, exceptions.NotAuthenticated) and self.request.method in {"GET", "HEAD"}:
            return redirect_to_login(self.request.get_full_path(), reverse("admin:login"))
        return super().handle_exception(exc)


app_name = "api"
urlpatterns = [
    # The most frequent request comes first: Django tries patterns in this order.
    *endpoints("pools/<int:pool_id>/", ("allocations/", allocations.Allocations, "allocations")),
    *endpoints("", ("imports/", imports.Imports, "imports")),
    *endpoints(
        "imports/<int:import_id>/",
        ("", imports.ImportView, "import"),
        ("rows/", imports.ImportRows, "import-rows"),
        ("rows/<int:number>/", imports.ImportRowView, "import-row"),
        ("commit/", imports.ImportCommit, "import-commit"),
        ("check/", imports.ImportCheck, "import-check"),
        ("undo/", imports.ImportUndo, "import-undo"),
        ("cancel/", imports.ImportCancel, "import-cancel"),
        ("release/", netbox.ReleaseVanished, "import-release"),
        ("keep/", netbox.KeepVanished, "import-keep"),
    ),
    *endpoints("", ("netbox-sources/", netbox.NetBoxSources, "netbox-sources")),
    *endpoints(
        "netbox-sources/<int:netbox_source_id>/",
        ("", netbox.NetBoxSourceView, "netbox-source"),
        ("imports/", netbox.NetBoxImports, "netbox-imports"),
    ),
    *endpoints(
        "",
        ("netbox-export/<slug:kind>.csv", netbox.NetBoxExport, "netbox-export"),
        ("clusters/", clusters.Clusters, "clusters"),
    ),
    *endpoints(
        "clusters/<str:cluster>/",
        ("", clusters.ClusterView, "cluster"),
        ("connection/", connections.ConnectionView, "connection"),
        ("connection/test/", connections.ConnectionTest, "connection-test"),
        ("reconcile/", connections.Reconcile, "reconcile"),
        ("runs/", observed.Runs, "runs"),
        ("objects/", observed.Objects, "objects"),
        ("objects/<int:object_id>/", observed.ObjectView, "object"),
        ("findings/", observed.Findings, "findings"),
        ("drift/", observed.Drifts, "drift"),
        ("drift/<int:drift_id>/ownership/", drift.Ownership, "drift-ownership"),
        ("drift/<int:drift_id>/<str:decision>/", drift.DriftDecision, "drift-decision"),
        ("nodes/", drift.Nodes, "nodes"),
        ("manifest/", guides.ClusterManifest, "manifests"),
        ("node-demand/", guides.NodeDemand, "node-demand"),
        ("pool-for-pod/", guides.PoolForPod, "pool-for-pod"),
        ("preflight/", guides.Preflight, "preflight"),
    ),
    *endpoints(
        "",
        ("custom-fields/", custom_fields.CustomFields, "custom-fields"),
        ("custom-fields/<int:custom_field_id>/", custom_fields.CustomFieldView, "custom-field"),
        ("dns/zone-file/", dns.ZoneFile, "dns-zone-file"),
        ("dns/endpoints/", dns.Endpoints, "dns-endpoints"),
        ("containers/", containers.Containers, "containers"),
    ),
    *endpoints(
        "containers/<int:container_id>/",
        ("", containers.ContainerDetail, "container"),
        ("available-prefixes/", address_plan.AvailablePrefixes, "available-prefixes"),
        ("next-prefix/", address_plan.NextPrefix, "next-prefix"),
    ),
    *endpoints(
        "",
        ("address-plan/", address_plan.AddressPlan, "address-plan"),
        ("observed-cidrs/", observed.ObservedCIDRs, "observed-cidrs"),
        (
            "observed-cidrs/<int:observed_cidr_id>/",
            observed.ObservedCIDRView,
            "observed-cidr",
        ),
        ("overlaps/", guides.Overlaps, "overlaps"),
        ("pools/", pools.Pools, "pools"),
        ("pools/import/", manifests.PoolImport, "pool-import"),
    ),
    *endpoints(
        "pools/<int:pool_id>/",
        ("", pools.PoolView, "pool"),
        ("cidrs/", pool_cidrs.PoolCIDRs, "cidrs"),
        ("cidrs/<int:cidr_id>/", pool_cidrs.PoolCIDRView, "cidr"),
        ("cidrs/<int:cidr_id>/reserved-ranges/", pool_cidrs.ReservedRanges, "reserved-ranges"),
        ("reserved-ranges/<int:range_id>/", pool_cidrs.ReservedRangeView, "reserved-range"),
        ("forecast/", utilization.Forecast, "forecast"),
        ("manifest/", guides.PoolManifest, "manifest"),
        ("migrations/", migrations.Migrations, "migrations"),
        ("migrations/<int:migration_id>/", migrations.MigrationView, "migration"),
        ("migrations/<int:migration_id>/steps/", migrations.MigrationSteps, "migration-steps"),
    ),
    *endpoints("", ("blocks/", blocks.Blocks, "blocks")),
    *endpoints(
        "blocks/<int:block_id>/",
        ("", blocks.BlockView, "block"),
        ("release/", blocks.Release, "release"),
        ("end-cooldown/", blocks.EndCooldown, "end-cooldown"),
        ("reclaim/", leaks.Reclaim, "reclaim"),
    ),
    *endpoints(
        "",
        ("leaks/", leaks.Leaks, "leaks"),
        ("leaks/reclaim/", leaks.ReclaimAll, "reclaim-all"),
        ("references/", references.References, "references"),
        ("requests/", requests.Requests, "requests"),
        ("requests/<int:request_id>/", requests.RequestView, "request"),
        ("utilization/", utilization.Utilization, "utilization"),
        ("journal/", journal.Journal, "journal"),
        ("journal/<int:note_id>/", journal.JournalEntryView, "journal-entry"),
        ("environments/", environments.Environments, "environments"),
        ("environments/<int:environment_id>/", environments.EnvironmentView, "environment"),
        ("alerts/", alerts.Alerts, "alerts"),
        ("alerts/<int:alert_id>/", alerts.AlertView, "alert"),
        ("silences/", alerts.Silences, "silences"),
        ("silences/<int:silence_id>/", alerts.SilenceView, "silence"),
        ("webhook-targets/", webhook_targets.WebhookTargets, "webhook-targets"),
    ),
    *endpoints(
        "webhook-targets/<int:target_id>/",
        ("", webhook_targets.WebhookTargetView, "webhook-target"),
        ("rotate/", webhook_targets.Rotation, "webhook-target-rotate"),
        ("test/", webhook_targets.Test, "webhook-target-test"),
        ("deliveries/", webhook_targets.Deliveries, "webhook-deliveries"),
        ("deliveries/<int:delivery_id>/send/", webhook_targets.SendAgain, "webhook-delivery-send"),
    ),
    *endpoints(
        "",
        ("events/", history.Events, "events"),
        ("history/", history.History, "history"),
        ("history/compare/", comparison.ComparisonView, "history-comparison"),
        ("holders/uid/<str:uid>/history/", history.UidHistory, "uid-history"),
        ("holders/<str:kind>/<path:holder>/history/", history.HolderHistory, "holder-history"),
        ("pools/<int:pool_id>/at/", history.PoolAt, "pool-at"),
        ("addresses/<str:address>/", addresses.Address, "address"),
        ("instances/<str:instance>/network/", addresses.InstanceNetwork, "instance-network"),
        ("schema/", SpectacularAPIView, "schema"),
        ("docs/", Docs, "docs"),
    ),
]
