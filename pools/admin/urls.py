"""URLs of the admin pages that belong to no model."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from pools.admin import documentation, find, history, journal
from pools.admin.clusters import guides, nodes
from pools.admin.plan import plan
from pools.admin.pools import imports
from pools.platform.admin import preferences


def admin_urls(site: Any) -> list[URLPattern]:
    """Return the URL patterns below /admin/, in the namespace of the site."""
    return [
        path("find/", site.admin_view(find.view), name="find"),
        path("history/", site.admin_view(history.view), name="history"),
        path(
            "history/pool/<int:pool_id>/", site.admin_view(history.pool_view), name="history_pool"
        ),
        path(
            "journal/<slug:subject>/<int:subject_id>/",
            site.admin_view(journal.view),
            name="journal",
        ),
        path("delete-note/<int:note_id>/", site.admin_view(journal.delete), name="journal_delete"),
        path("address-plan/", site.admin_view(plan.view), name="plan"),
        path("nodes/", site.admin_view(nodes.view), name="nodes"),
        path("import/", site.admin_view(imports.view), name="import"),
        path(
            "lists/<str:label>/columns/",  # no text: a URL
            site.admin_view(preferences.columns_view),
            name="list_columns",
        ),
        path(
            "lists/<str:label>/filters/",  # no text: a URL
            site.admin_view(preferences.filters_view),
            name="list_filters",
        ),
        path(
            "lists/<str:label>/filters/<int:filter_id>/",  # no text: a URL
            site.admin_view(preferences.filter_view),
            name="list_filter",
        ),
        path("node-demand/", site.admin_view(guides.demand_of_node), name="node_demand"),
        path("overlaps/", site.admin_view(guides.overlap_list), name="overlaps"),
        path(
            "docs/<path:chapter>/",
            site.admin_view(documentation.chapter_view),
            name="documentation",
        ),
        path(
            "runbooks/<slug:runbook>/", site.admin_view(documentation.runbook_view), name="runbook"
        ),
        path("pool-for-pod/", site.admin_view(guides.pool_for_pod), name="pool_for_pod"),
        path("preflight/", site.admin_view(guides.preflight), name="preflight"),
    ]
