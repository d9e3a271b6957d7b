"""The endpoints of address space below /api/v1/, and their documentation in a browser."""

from django.contrib.auth.views import redirect_to_login
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions

from pools.api import (
    address_plan,
    addresses,
    alerts,
    allocations,
    blocks,
    custom_fields,
    history,
    journal,
    leaks,
    migrations,
    netbox,
    pool_cidrs,
    pools,
    utilization,
)
from pools.api.clusters import clusters, connections, drift, guides
from pools.platform.rest.generics import endpoints, routes


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


_CLUSTER = "clusters/<str:cluster>"
_POOL = "pools/<int:pool_id>"

app_name = "api"
urlpatterns = [
    # The most frequent request comes first: Django tries patterns in this order.
    *endpoints(f"{_POOL}/", ("allocations/", allocations.Allocations, "allocations")),
    *routes(
        ("blocks", blocks.Blocks, "blocks", "block"),
        ("pools", pools.Pools, "pools", "pool"),
        (f"{_POOL}/cidrs", pool_cidrs.PoolCIDRs, "cidrs", "cidr"),
        (
            f"{_POOL}/reserved-ranges",
            pool_cidrs.ReservedRanges,
            "reserved-ranges",
            "reserved-range",
        ),
        (f"{_POOL}/migrations", migrations.Migrations, "migrations", "migration"),
        ("clusters", clusters.Clusters, "clusters", "cluster"),
        (f"{_CLUSTER}/runs", clusters.Runs, "runs", "run"),
        (f"{_CLUSTER}/objects", clusters.Objects, "objects", "object"),
        (f"{_CLUSTER}/findings", clusters.Findings, "findings", "finding"),
        (f"{_CLUSTER}/drift", drift.Drifts, "drift", "drift-row"),
        (f"{_CLUSTER}/nodes", drift.Nodes, "nodes", "node"),
        ("custom-fields", custom_fields.CustomFields, "custom-fields", "custom-field"),
        ("containers", address_plan.Containers, "containers", "container"),
        ("observed-cidrs", clusters.ObservedCIDRs, "observed-cidrs", "observed-cidr"),
        ("leaks", leaks.Leaks, "leaks", "leak"),
        ("references", leaks.References, "references", "reference"),
        ("requests", allocations.Requests, "requests", "request"),
        ("journal", journal.Journal, "journal", "journal-entry"),
        ("environments", allocations.Environments, "environments", "environment"),
        ("alerts", alerts.Alerts, "alerts", "alert"),
        ("silences", alerts.Silences, "silences", "silence"),
        ("webhook-targets", alerts.WebhookTargets, "webhook-targets", "webhook-target"),
        (
            "webhook-targets/<int:target_id>/deliveries",
            alerts.Deliveries,
            "webhook-deliveries",
            "webhook-delivery",
        ),
        ("netbox-sources", netbox.NetBoxSources, "netbox-sources", "netbox-source"),
    ),
    *endpoints(
        f"{_POOL}/",
        ("at/", history.PoolAt, "pool-at"),
        ("forecast/", utilization.Forecast, "forecast"),
        ("manifest/", guides.PoolManifest, "manifest"),
    ),
    *endpoints(
        f"{_CLUSTER}/",
        ("connection/", connections.ConnectionView, "connection"),
        ("connection/test/", connections.ConnectionTest, "connection-test"),
        ("reconcile/", connections.Reconcile, "reconcile"),
        ("manifest/", guides.ClusterManifest, "manifests"),
        ("node-demand/", guides.NodeDemand, "node-demand"),
        ("pool-for-pod/", guides.PoolForPod, "pool-for-pod"),
        ("preflight/", guides.Preflight, "preflight"),
    ),
    *endpoints(
        "",
        ("address-plan/", address_plan.AddressPlan, "address-plan"),
        ("addresses/<str:address>/", addresses.Address, "address"),
        ("blocks/<int:block_id>/reclaim/", leaks.Reclaim, "reclaim"),
        ("dns/zone-file/", addresses.ZoneFile, "dns-zone-file"),
        ("dns/endpoints/", addresses.Endpoints, "dns-endpoints"),
        ("events/", history.Events, "events"),
        ("history/", history.History, "history"),
        ("history/compare/", history.ComparisonView, "history-comparison"),
        ("holders/uid/<str:uid>/history/", history.UidHistory, "uid-history"),
        ("holders/<str:kind>/<path:holder>/history/", history.HolderHistory, "holder-history"),
        ("instances/<str:instance>/network/", addresses.InstanceNetwork, "instance-network"),
        ("netbox-export/<slug:kind>.csv", netbox.NetBoxExport, "netbox-export"),
        ("overlaps/", guides.Overlaps, "overlaps"),
        ("pools/import/", pools.PoolImport, "pool-import"),
        ("utilization/", utilization.Utilization, "utilization"),
        ("schema/", SpectacularAPIView, "schema"),
        ("docs/", Docs, "docs"),
    ),
]
