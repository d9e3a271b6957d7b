"""Appearance and menu of the admin site (settings of django-unfold)."""

from collections.abc import Sequence
from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


def _page(title: Promise, url: str, chapter: str, *permissions: str) -> dict[str, Any]:
    """Return a page of the menu for users with at least one of the permissions.

    `chapter` is that of the documentation (docs/) about the pages below its URL.
    """
    return {"title": title, "url": url, "permissions": permissions, "chapter": chapter}


def _list(title: Promise, model: str, chapter: str) -> dict[str, Any]:
    """Return the list of a model, such as `pools.pool`, for users who may view its rows."""
    app, name = model.split(".")
    return _page(title, f"admin:{app}_{name}_changelist", chapter, f"{app}.view_{name}")


def _item(
    icon: str,
    *pages: dict[str, Any],
    title: Promise | None = None,
    below: Sequence[dict[str, Any]] = (),
    **more: str,
) -> dict[str, Any]:
    """Return an item of the menu: a page, or the first of several that are its tabs, which names it without `title`.

    Pages `below` it have no tab: another page leads to them.
    """
    return {
        "title": pages[0]["title"] if title is None else title,
        "icon": icon,
        "pages": [*pages],
        "below": [*below],
        **more,
    }


def _group(title: Promise | str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "items": [*items]}


MENU = [
    _group(
        _("Address space"),
        _item(
            "monitoring",
            _page(_("Overview"), "admin:index", "concepts"),
            below=[
                _page(
                    _("Find"),
                    "admin:find",
                    "reference/lists-and-exports",
                    "pools.view_block",
                    "claims.view_entry",
                )
            ],
        ),
        _item(
            "account_tree",
            _page(
                _("Address plan"), "admin:plan", "reference/address-plan", "pools.view_container"
            ),
            below=[
                _list(_("Network containers"), "pools.container", "reference/address-plan"),
                _list(_("CIDRs"), "pools.poolcidr", "reference/custom-fields"),
                _list(_("Observed CIDRs"), "pools.observedcidr", "reference/observed-cidrs"),
            ],
        ),
        _item(
            "stacks",
            _list(_("Pools"), "pools.pool", "tutorials/administration"),
            _page(
                _("Migrations"),
                "admin:pools_cidrmigration_changelist",
                "how-to/replace-a-cidr",
                "pools.view_pool",
            ),
            _list(_("Environments"), "pools.environment", "reference/allocation"),
        ),
        _item("grid_view", _list(_("Blocks"), "pools.block", "reference/allocation")),
    ),
    _group(
        _("Clusters and VMs"),
        _item(
            "hub",
            _list(_("Clusters"), "pools.cluster", "how-to/connect-a-cluster"),
            _page(
                _("Cilium readiness check"),
                "admin:preflight",
                "how-to/connect-a-cluster",
                "pools.view_cluster",
            ),
            _page(
                _("Pool for a pod"), "admin:pool_for_pod", "how-to/pool-webhook", "pools.view_pool"
            ),
            _page(
                _("Node demand calculator"),
                "admin:node_demand",
                "reference/utilization",
                "pools.view_pool",
            ),
        ),
        _item(
            "dns",
            _page(_("Nodes"), "admin:nodes", "reference/utilization", "pools.view_observedobject"),
        ),
        _item(
            "lan",
            _list(_("Networks"), "claims.network", "reference/vm-networks"),
            _list(_("IPPools"), "claims.ippool", "reference/ippools"),
        ),
        _item("badge", _list(_("MAC entries"), "claims.entry", "reference/ippools")),
        _item("assignment", _list(_("Claims"), "claims.ipamclaim", "reference/vm-networks")),
        _item("difference", _list(_("Workloads"), "claims.workload", "reference/vm-networks")),
    ),
    _group(
        _("Imports"),
        _item(
            "upload_file",
            _page(
                _("Import"),
                "admin:pools_import_changelist",
                "how-to/import-vms",
                "claims.view_vmimport",
                "pools.view_registerimport",
            ),
            _list(_("NetBox sources"), "pools.netboxsource", "how-to/bring-your-register"),
            _page(_("Import pools"), "admin:import", "tutorials/administration", "pools.add_pool"),
        ),
        _item("waves", _list(_("Waves"), "claims.wave", "how-to/import-vms")),
    ),
    _group(
        _("Monitoring"),
        _item(
            "notifications",
            _list(_("Alerts"), "pools.alert", "reference/alerts"),
            _list(_("Findings"), "pools.finding", "reference/findings"),
            _list(_("Leaks"), "pools.leak", "reference/leak-detection"),
            _list(_("Drift"), "pools.drift", "how-to/connect-a-cluster"),
            _list(_("Requests"), "pools.allocationrequest", "reference/allocation"),
            _list(_("Silences"), "pools.silence", "reference/alerts"),
            _list(_("Webhook decisions"), "claims.decision", "how-to/vm-webhooks"),
            badge="pools.admin.alerts.count",
        ),
        _item(
            "history",
            _page(
                _("History"),
                "admin:history",
                "reference/history-and-audit",
                "pools.view_event",
                "claims.view_entry",
            ),
            _list(_("Events"), "pools.event", "reference/history-and-audit"),
        ),
    ),
    _group(
        "",
        _item(
            "lock_person",
            _list(_("Users"), "auth.user", "reference/permissions"),
            _list(_("Groups"), "auth.group", "reference/permissions"),
            _list(_("VM owners"), "claims.membership", "reference/permissions"),
            _page(_("Tokens"), "admin:knox_authtoken_changelist", "api"),
            title=_("Access"),
        ),
    ),
    _group(
        "",
        _item(
            "settings",
            _list(_("Webhooks"), "pools.webhooktarget", "reference/alerts"),
            _list(_("Custom fields"), "pools.customfield", "reference/custom-fields"),
            _page(_("API docs"), "api:docs", "api"),
            title=_("Settings"),
        ),
    ),
]


def _blue(lightness: float, chroma: float) -> str:
    return f"oklch({lightness}% {chroma} 255)"


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Cadastre",
    "SITE_HEADER": "Cadastre",
    "SITE_SUBHEADER": _("Address management for Kubernetes fleets"),
    "SITE_URL": None,  # there is no other site to return to
    "SITE_SYMBOL": "grid_on",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_HISTORY": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [lambda _request: static("cadastre/cadastre.css")],
    "SCRIPTS": [
        lambda _request: static("cadastre/frame.js"),
        lambda _request: static("cadastre/cadastre.js"),
        lambda _request: static("cadastre/forms.js"),
        lambda _request: static("cadastre/copy.js"),
        lambda _request: static("cadastre/live.js"),
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
        "navigation": [
            {"title": _("Profile"), "link": reverse_lazy("admin:profile")},
            {"title": _("Second factor"), "link": reverse_lazy("mfa_index")},
        ]
    },
    "COMMAND": {"search_callback": "pools.admin.find.palette", "show_history": True},
    "DASHBOARD_CALLBACK": "pools.admin.overview.overview.context",
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "pools.platform.admin.menu.navigation",
    },
    "TABS": "pools.platform.admin.menu.tabs",
}
