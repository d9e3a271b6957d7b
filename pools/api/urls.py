"""All addresses below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from pools.api import (
    addresses,
    allocations,
    blocks,
    cluster_parts,
    clusters,
    connections,
    drifts,
    environments,
    events,
    guides,
    imports,
    migrations,
    pool_parts,
    pools,
    requests,
)

app_name = "api"
urlpatterns = [
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
    path("clusters/<str:cluster>/runs/", cluster_parts.Runs.as_view(), name="runs"),
    path("clusters/<str:cluster>/objects/", cluster_parts.Objects.as_view(), name="objects"),
    path(
        "clusters/<str:cluster>/objects/<int:object_id>/",
        cluster_parts.ObjectView.as_view(),
        name="object",
    ),
    path("clusters/<str:cluster>/findings/", cluster_parts.Findings.as_view(), name="findings"),
    path("clusters/<str:cluster>/drift/", cluster_parts.Drifts.as_view(), name="drift"),
    path(
        "clusters/<str:cluster>/drift/<int:drift_id>/<str:decision>/",
        drifts.DriftDecision.as_view(),
        name="drift-decision",
    ),
    path("clusters/<str:cluster>/nodes/", drifts.Nodes.as_view(), name="nodes"),
    path("clusters/<str:cluster>/manifest/", guides.ClusterManifest.as_view(), name="manifests"),
    path("clusters/<str:cluster>/node-demand/", guides.NodeDemand.as_view(), name="node-demand"),
    path("clusters/<str:cluster>/pool-for-pod/", guides.PoolForPod.as_view(), name="pool-for-pod"),
    path("clusters/<str:cluster>/preflight/", guides.Preflight.as_view(), name="preflight"),
    path("overlaps/", guides.Overlaps.as_view(), name="overlaps"),
    path("pools/", pools.Pools.as_view(), name="pools"),
    path("pools/import/", imports.PoolImport.as_view(), name="pool-import"),
    path("pools/<int:pool_id>/", pools.PoolView.as_view(), name="pool"),
    path("pools/<int:pool_id>/allocations/", allocations.Allocations.as_view(), name="allocations"),
    path("pools/<int:pool_id>/cidrs/", pool_parts.PoolCIDRs.as_view(), name="cidrs"),
    path(
        "pools/<int:pool_id>/cidrs/<int:cidr_id>/", pool_parts.PoolCIDRView.as_view(), name="cidr"
    ),
    path(
        "pools/<int:pool_id>/cidrs/<int:cidr_id>/reserved-ranges/",
        pool_parts.ReservedRanges.as_view(),
        name="reserved-ranges",
    ),
    path(
        "pools/<int:pool_id>/reserved-ranges/<int:range_id>/",
        pool_parts.ReservedRangeView.as_view(),
        name="reserved-range",
    ),
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
    path("requests/", requests.Requests.as_view(), name="requests"),
    path("requests/<int:request_id>/", requests.RequestView.as_view(), name="request"),
    path("environments/", environments.Environments.as_view(), name="environments"),
    path("events/", events.Events.as_view(), name="events"),
    path("addresses/<str:address>/", addresses.Address.as_view(), name="address"),
    path(
        "instances/<str:instance>/network/",
        addresses.InstanceNetwork.as_view(),
        name="instance-network",
    ),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="api:schema"), name="docs"),
]
