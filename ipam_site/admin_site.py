"""Appearance and menu of the admin site (settings of django-unfold)."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


def _entry(title: Promise, icon: str, url: str, chapter: str, *permissions: str) -> dict[str, Any]:
    """Return a menu entry for users with at least one of the permissions.

    `chapter` is that of the documentation (docs/) about the pages below its URL. An entry may have others `below`
    it: pages that are not in the menu, and that it stands for.
    """

    return {
        "title": title,
        "icon": icon,
        "url": f"admin:{url}",
        "permissions": permissions,
        "chapter": chapter,
    }


def _list(title: Promise, icon: str, model: str, chapter: str) -> dict[str, Any]:
    """Return the menu entry of the list of a model, such as `pools.pool`, for users who may view its rows."""
    app, name = model.split(".")
    return _entry(title, icon, f"{app}_{name}_changelist", chapter, f"{app}.view_{name}")


def _group(
    title: Promise | str, *entries: dict[str, Any], collapsible: bool = False
) -> dict[str, Any]:
    """Return a group of the menu; a collapsible one is closed, unless the page is in it."""
    return {"title": title, "items": [*entries], "collapsible": collapsible}


# What is used every day is on top and open.
MENU = [
    _group(
        "",
        _entry(_("Overview"), "monitoring", "index", "concepts"),
        _entry(
            _("Find"),
            "search",
            "find",
            "reference/lists-and-exports",
            "pools.view_block",
            "claims.view_entry",
        ),
        {
            **_list(_("Alerts"), "notifications", "pools.alert", "reference/alerts"),
            "badge": "pools.admin.alerts.count",
            "below": [
                _list(_("Silences"), "notifications_off", "pools.silence", "reference/alerts")
            ],
        },
        _list(_("Events"), "list_alt", "pools.event", "reference/history-and-audit"),
    ),
    _group(
        _("Address space"),
        _entry(
            _("Address plan"),
            "account_tree",
            "plan",
            "reference/address-plan",
            "pools.view_container",
        ),
        _list(_("Network containers"), "folder_open", "pools.container", "reference/address-plan"),
        _list(_("Pools"), "stacks", "pools.pool", "tutorials/administration"),
        _list(_("CIDRs"), "format_list_bulleted", "pools.poolcidr", "reference/custom-fields"),
        _list(_("Blocks"), "grid_view", "pools.block", "reference/allocation"),
        _list(_("Environments"), "apartment", "pools.environment", "reference/allocation"),
        _list(_("Requests"), "hourglass_top", "pools.allocationrequest", "reference/allocation"),
    ),
    _group(
        _("Clusters"),
        _list(_("Clusters"), "hub", "pools.cluster", "how-to/connect-a-cluster"),
        _list(_("Drift"), "compare_arrows", "pools.drift", "how-to/connect-a-cluster"),
        _entry(_("Nodes"), "dns", "nodes", "reference/utilization", "pools.view_observedobject"),
        _list(_("Observed CIDRs"), "lan", "pools.observedcidr", "reference/observed-cidrs"),
    ),
    _group(
        _("VM networks"),
        _list(_("Networks"), "lan", "claims.network", "reference/vm-networks"),
        _list(_("IPPools"), "inventory_2", "claims.ippool", "reference/ippools"),
        _list(_("MAC entries"), "badge", "claims.entry", "reference/ippools"),
        _list(_("Claims"), "assignment", "claims.ipamclaim", "reference/vm-networks"),
        _list(_("Workloads"), "difference", "claims.workload", "reference/vm-networks"),
    ),
    _group(
        _("Imports"),
        {
            **_entry(
                _("Import"),
                "upload_file",
                "pools_import_changelist",
                "how-to/import-vms",
                "claims.view_vmimport",
                "pools.view_registerimport",
            ),
            # Reached from the list, and part of it: not in the menu.
            "below": [
                _list(
                    _("NetBox sources"),
                    "cloud_download",
                    "pools.netboxsource",
                    "how-to/bring-your-register",
                ),
                _entry(
                    _("Import pools"),
                    "upload",
                    "import",
                    "tutorials/administration",
                    "pools.add_pool",
                ),
            ],
        },
        _list(_("Waves"), "waves", "claims.wave", "how-to/import-vms"),
        collapsible=True,
    ),
    _group(
        _("Operations"),
        _entry(
            _("History"),
            "history",
            "history",
            "reference/history-and-audit",
            "pools.view_event",
            "claims.view_entry",
        ),
        _list(_("Findings"), "report", "pools.finding", "reference/findings"),
        _list(_("Leaks"), "water_drop", "pools.leak", "reference/leak-detection"),
        _list(_("Webhook decisions"), "rule", "claims.decision", "how-to/vm-webhooks"),
        collapsible=True,
    ),
    _group(
        _("Guides"),
        _entry(
            _("Pool for a pod"),
            "alt_route",
            "pool_for_pod",
            "how-to/pool-webhook",
            "pools.view_pool",
        ),
        _entry(
            _("Node demand calculator"),
            "memory",
            "node_demand",
            "reference/utilization",
            "pools.view_pool",
        ),
        _entry(
            _("Cilium readiness check"),
            "checklist",
            "preflight",
            "how-to/connect-a-cluster",
            "pools.view_cluster",
        ),
        _entry(
            _("Overlaps"), "join_inner", "overlaps", "reference/observed-cidrs", "pools.view_pool"
        ),
        collapsible=True,
    ),
    _group(
        _("Administration"),
        _list(_("Users"), "person", "auth.user", "reference/permissions"),
        _list(_("Groups"), "group", "auth.group", "reference/permissions"),
        _list(_("VM owners"), "lock_person", "claims.membership", "reference/permissions"),
        _entry(_("Tokens"), "key", "knox_authtoken_changelist", "api"),
        _list(_("Webhooks"), "webhook", "pools.webhooktarget", "reference/alerts"),
        _list(_("Custom fields"), "edit_note", "pools.customfield", "reference/custom-fields"),
        {
            "title": _("API"),
            "icon": "api",
            "url": "api:docs",
            "permissions": (),
            "chapter": "api",
        },
        collapsible=True,
    ),
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
    "ACCOUNT": {"navigation": [{"title": _("Second factor"), "link": reverse_lazy("mfa_index")}]},
    "DASHBOARD_CALLBACK": "pools.admin.overview.overview.context",
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "pools.platform.admin.pages.navigation",
    },
}
