"""Appearance and menu of the admin site (settings of django-unfold)."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# By the URL of a menu entry: the chapter of the documentation (docs/) about its pages.
_CHAPTERS = {
    "index": "concepts",
    "find": "reference/lists-and-exports",
    "pools_alert_changelist": "reference/alerts",
    "pools_event_changelist": "reference/history-and-audit",
    "plan": "reference/address-plan",
    "pools_container_changelist": "reference/address-plan",
    "pools_pool_changelist": "tutorials/administration",
    "pools_poolcidr_changelist": "reference/custom-fields",
    "pools_customfield_changelist": "reference/custom-fields",
    "pools_block_changelist": "reference/allocation",
    "pools_environment_changelist": "reference/allocation",
    "pools_allocationrequest_changelist": "reference/allocation",
    "pools_cluster_changelist": "how-to/connect-a-cluster",
    "pools_drift_changelist": "how-to/connect-a-cluster",
    "nodes": "reference/utilization",
    "claims_network_changelist": "reference/vm-networks",
    "claims_ippool_changelist": "reference/ippools",
    "claims_entry_changelist": "reference/ippools",
    "claims_ipamclaim_changelist": "reference/vm-networks",
    "claims_workload_changelist": "reference/vm-networks",
    "pools_registerimport_changelist": "how-to/bring-your-register",
    "pools_netboxsource_changelist": "how-to/bring-your-register",
    "claims_vmimport_add": "how-to/import-vms",
    "claims_vmimport_changelist": "how-to/import-vms",
    "claims_wave_changelist": "how-to/import-vms",
    "import": "tutorials/administration",
    "history": "reference/history-and-audit",
    "pools_finding_changelist": "reference/findings",
    "pools_leak_changelist": "reference/leak-detection",
    "pools_checkrun_changelist": "reference/consistency-checks",
    "claims_decision_changelist": "how-to/vm-webhooks",
    "pool_for_pod": "how-to/pool-webhook",
    "node_demand": "reference/utilization",
    "preflight": "how-to/connect-a-cluster",
    "overlaps": "reference/observed-cidrs",
    "pools_observedcidr_changelist": "reference/observed-cidrs",
    "auth_user_changelist": "reference/permissions",
    "auth_group_changelist": "reference/permissions",
    "claims_membership_changelist": "reference/permissions",
    "knox_authtoken_changelist": "api",
    "pools_webhooktarget_changelist": "reference/alerts",
}


def _entry(title: Promise, icon: str, url: str, *permissions: str) -> dict[str, Any]:
    """Return a menu entry for users with at least one of the permissions."""

    def permitted(request: HttpRequest) -> bool:
        return not permissions or any(request.user.has_perm(name) for name in permissions)

    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{url}"),
        "permission": permitted,
        "chapter": _CHAPTERS[url],
    }


def _below(request: HttpRequest, path: str, *, but: str) -> bool:
    """Return True if the page is below `path` of the admin, but not below `path` plus `but`."""
    start = f"{reverse_lazy('admin:index')}{path}"
    return request.path.startswith(start) and not request.path.startswith(f"{start}{but}")


# What is used every day is on top and open; groups that are `collapsible` are closed, unless the page is in one.
_MENU = [
    {
        "title": "",
        "items": [
            _entry(_("Overview"), "monitoring", "index"),
            _entry(_("Find"), "search", "find", "pools.view_block", "claims.view_entry"),
            {
                **_entry(
                    _("Alerts"), "notifications", "pools_alert_changelist", "pools.view_alert"
                ),
                "badge": "pools.admin.alerts.count",
            },
            _entry(_("Events"), "list_alt", "pools_event_changelist", "pools.view_event"),
        ],
    },
    {
        "title": _("Address space"),
        "items": [
            _entry(_("Address plan"), "account_tree", "plan", "pools.view_container"),
            _entry(
                _("Network containers"),
                "folder_open",
                "pools_container_changelist",
                "pools.view_container",
            ),
            _entry(_("Pools"), "stacks", "pools_pool_changelist", "pools.view_pool"),
            _entry(
                _("CIDRs"),
                "format_list_bulleted",
                "pools_poolcidr_changelist",
                "pools.view_poolcidr",
            ),
            _entry(_("Blocks"), "grid_view", "pools_block_changelist", "pools.view_block"),
            _entry(
                _("Environments"),
                "apartment",
                "pools_environment_changelist",
                "pools.view_environment",
            ),
            _entry(
                _("Requests"),
                "hourglass_top",
                "pools_allocationrequest_changelist",
                "pools.view_allocationrequest",
            ),
        ],
    },
    {
        "title": _("Clusters"),
        "items": [
            _entry(_("Clusters"), "hub", "pools_cluster_changelist", "pools.view_cluster"),
            _entry(_("Drift"), "compare_arrows", "pools_drift_changelist", "pools.view_drift"),
            _entry(_("Nodes"), "dns", "nodes", "pools.view_observedobject"),
            _entry(
                _("Observed CIDRs"),
                "lan",
                "pools_observedcidr_changelist",
                "pools.view_observedcidr",
            ),
        ],
    },
    {
        "title": _("VM networks"),
        "items": [
            _entry(_("Networks"), "lan", "claims_network_changelist", "claims.view_network"),
            _entry(_("IPPools"), "inventory_2", "claims_ippool_changelist", "claims.view_ippool"),
            _entry(_("MAC entries"), "badge", "claims_entry_changelist", "claims.view_entry"),
            _entry(
                _("Claims"), "assignment", "claims_ipamclaim_changelist", "claims.view_ipamclaim"
            ),
            _entry(
                _("Workloads"), "difference", "claims_workload_changelist", "claims.view_workload"
            ),
        ],
    },
    {
        "title": _("Imports"),
        "collapsible": True,
        "items": [
            _entry(_("New VM import"), "upload_file", "claims_vmimport_add", "claims.add_vmimport"),
            {
                **_entry(
                    _("VM imports"), "inbox", "claims_vmimport_changelist", "claims.view_vmimport"
                ),
                "active": lambda request: _below(request, "claims/vmimport/", but="add/"),
            },
            _entry(_("Migration waves"), "waves", "claims_wave_changelist", "claims.view_wave"),
            _entry(
                _("Register imports"),
                "move_to_inbox",
                "pools_registerimport_changelist",
                "pools.view_registerimport",
            ),
            _entry(
                _("NetBox sources"),
                "cloud_download",
                "pools_netboxsource_changelist",
                "pools.view_netboxsource",
            ),
            _entry(_("Import pools"), "upload", "import", "pools.add_pool"),
        ],
    },
    {
        "title": _("Operations"),
        "collapsible": True,
        "items": [
            _entry(_("History"), "history", "history", "pools.view_event", "claims.view_entry"),
            _entry(_("Findings"), "report", "pools_finding_changelist", "pools.view_finding"),
            _entry(_("Leaks"), "water_drop", "pools_leak_changelist", "pools.view_leak"),
            _entry(
                _("Integrity checks"),
                "fact_check",
                "pools_checkrun_changelist",
                "pools.view_checkrun",
            ),
            _entry(
                _("Webhook decisions"), "rule", "claims_decision_changelist", "claims.view_decision"
            ),
        ],
    },
    {
        "title": _("Guides"),
        "collapsible": True,
        "items": [
            _entry(_("Pool for a pod"), "alt_route", "pool_for_pod", "pools.view_pool"),
            _entry(_("Node demand calculator"), "memory", "node_demand", "pools.view_pool"),
            _entry(_("Cilium readiness check"), "checklist", "preflight", "pools.view_cluster"),
            _entry(_("Overlaps"), "join_inner", "overlaps", "pools.view_pool"),
        ],
    },
    {
        "title": _("Administration"),
        "collapsible": True,
        "items": [
            _entry(_("Users"), "person", "auth_user_changelist", "auth.view_user"),
            _entry(_("Groups"), "group", "auth_group_changelist", "auth.view_group"),
            _entry(
                _("VM owners"),
                "lock_person",
                "claims_membership_changelist",
                "claims.view_membership",
            ),
            _entry(_("Tokens"), "key", "knox_authtoken_changelist"),
            _entry(
                _("Webhooks"),
                "webhook",
                "pools_webhooktarget_changelist",
                "pools.view_webhooktarget",
            ),
            _entry(
                _("Custom fields"),
                "edit_note",
                "pools_customfield_changelist",
                "pools.view_customfield",
            ),
            {"title": _("API"), "icon": "api", "link": reverse_lazy("api:docs")},
        ],
    },
]


def _blue(lightness: float, chroma: float) -> str:
    return f"oklch({lightness}% {chroma} 255)"


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Cadastre",
    "SITE_HEADER": "Cadastre",
    "SITE_SUBHEADER": _("Address management for Kubernetes fleets"),
    "SITE_SYMBOL": "grid_on",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_HISTORY": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [lambda _request: static("cadastre/cadastre.css")],
    "SCRIPTS": [
        lambda _request: static("cadastre/frame.js"),
        lambda _request: static("cadastre/cadastre.js"),
        lambda _request: static("cadastre/copy.js"),
    ],
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("cadastre/icon.svg"),
        }
    ],
    "COLORS": {
        "primary": {
            "50": _blue(97, 0.014),
            "100": _blue(93.2, 0.032),
            "200": _blue(88.2, 0.059),
            "300": _blue(80.9, 0.105),
            "400": _blue(70.7, 0.165),
            "500": _blue(58, 0.19),
            "600": _blue(50, 0.19),
            "700": _blue(44, 0.18),
            "800": _blue(38, 0.15),
            "900": _blue(33, 0.12),
            "950": _blue(26, 0.09),
        }
    },
    "ACCOUNT": {
        "navigation": [{"title": _("Second factor"), "link": reverse_lazy("admin:second_factor")}]
    },
    "DASHBOARD_CALLBACK": "pools.admin.overview.overview.context",
    "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": _MENU},
}
