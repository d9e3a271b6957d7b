"""URLs of the admin pages that belong to no model."""

from typing import Any

from django.urls import URLPattern, path

from pools.admin import access, documentation, find, history, journal
from pools.admin.clusters import field, guides, observed
from pools.admin.overview import checklist
from pools.admin.plan import plan
from pools.admin.pools import imports
from pools.platform.admin import live, preferences, related

_LIST = "lists/<str:label>/"  # no text: a URL
_NAMES = "lists/<str:list_name>/names/"  # no text: a URL
_PAGES = (
    ("find/", find.view, "find"),
    ("history/", history.view, "history"),
    ("profile/", access.profile, "profile"),
    ("first-steps/", checklist.view, "first_steps"),
    ("history/compare/", history.comparison_view, "history_compare"),
    ("history/pool/<int:pool_id>/", history.pool_view, "history_pool"),
    ("journal/<slug:subject>/<int:subject_id>/", journal.view, "journal"),
    ("delete-note/<int:note_id>/", journal.delete, "journal_delete"),
    ("address-plan/", plan.view, "plan"),
    ("live/", live.menu_view, "live"),
    ("nodes/", observed.view, "nodes"),
    ("import/", imports.view, "import"),
    (f"{_LIST}columns/", preferences.columns_view, "list_columns"),
    (f"{_LIST}filters/", preferences.filters_view, "list_filters"),
    (f"{_NAMES}<slug:parameter>/", related.names_view, "list_names"),
    ("names/<slug:offered>/", related.offered_view, "names"),
    (f"{_LIST}filters/<int:filter_id>/", preferences.filter_view, "list_filter"),
    ("node-demand/", guides.demand_of_node, "node_demand"),
    ("cidrs/check/", field.check, "cidr_check"),
    ("cidrs/free/", field.free, "cidr_free"),
    ("docs/<path:chapter>/", documentation.chapter_view, "documentation"),
    ("runbooks/<slug:runbook>/", documentation.runbook_view, "runbook"),
    ("pool-for-pod/", guides.pool_for_pod, "pool_for_pod"),
    ("preflight/", guides.preflight, "preflight"),
)


def admin_urls(site: Any) -> list[URLPattern]:
    """Return the URL patterns below /admin/, in the namespace of the site."""
    return [path(route, site.admin_view(view), name=name) for route, view, name in _PAGES]
