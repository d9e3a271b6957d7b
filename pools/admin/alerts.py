"""Alerts: open conditions and past ones."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.models import Alert, Delivery
from pools.models.alerts import Level
from pools.platform import scheduler
from pools.platform.admin import columns, display, filters, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.alerts import open_alerts
from pools.platform.conditions import registry

MOST = 50  # deliveries on the page of an alert
LIST = "admin:pools_alert_changelist"


def count(request: HttpRequest) -> str:
    """Return the number of open errors and warnings for the menu; empty if there are none to view."""
    if not request.user.has_perm("pools.view_alert"):
        return ""
    count = open_alerts.urgent_alerts().order_by()[: lists.REACH].count()
    return display.digits(count) if count else ""


def scheduler_context() -> dict[str, Any]:
    """Return `silence`, for how long the scheduler has been silent if it has stopped, otherwise an empty text;
    and `awaited`, True if it has not run yet, so that no condition was evaluated.
    """
    seconds = scheduler.seconds_since_tick()
    has_stopped = seconds is not None and seconds > settings.IPAM_ALERT_SCHEDULER_SECONDS
    silence = display.duration(seconds or 0) if has_stopped else ""
    return {"silence": silence, "awaited": seconds is None and not Alert.objects.exists()}


def runbook_view(request: HttpRequest, runbook: str) -> HttpResponse:
    """Show a runbook: what a condition means, and what to do about it."""
    pages.require(request, "pools.view_alert")
    path = settings.BASE_DIR / "docs" / "runbooks" / f"{runbook}.md"
    if runbook not in registry.runbooks() or not path.is_file():
        raise Http404(gettext("This runbook does not exist."))
    _title, _, text = path.read_text().partition("\n")
    return pages.page(
        request,
        "runbook.html",
        title=gettext("Runbook %(runbook)s") % {"runbook": runbook},
        text=text.strip(),
    )


def _page(request: HttpRequest, alert: Alert) -> HttpResponse:
    deliveries: QuerySet[Delivery] = Delivery.objects.none()
    if request.user.has_perm("pools.view_delivery"):
        deliveries = Delivery.objects.filter(alert=alert).select_related("target").defer("body")
    before = Alert.objects.filter(code=alert.code, subject=alert.subject).exclude(pk=alert.pk)
    return pages.page(
        request,
        "alert.html",
        title=alert.title,
        opts=Alert._meta,
        original=alert,
        row=alert,
        condition=registry.words(alert.code),
        runbook=registry.runbook(alert.code),
        group=open_alerts.same_cause(alert)[:MOST],
        deliveries=deliveries[:MOST],
        before=before[:MOST],
        call=f"alerts/{alert.pk}/",
    )


def _runbook(alert: Alert) -> SafeString:
    runbook = registry.runbook(alert.code)
    if not runbook:
        return display.DASH
    return display.link(reverse("admin:runbook", args=[runbook]), gettext("Runbook"))


def _code_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    return [(code, registry.words(code)) for code in sorted(registry.codes())]


@admin.register(Alert)
class AlertAdmin(lists.ListAdmin[Alert]):
    list_display = (
        columns.state("level", _("level")),
        columns.link("title", _("alert")),
        Column("code", _("condition"), lambda alert: registry.words(alert.code)),
        columns.timestamp("since", _("since")),
        Column(
            "ended_at",
            _("ended"),
            lambda alert: display.timestamp(alert.ended_at) if alert.ended_at else gettext("open"),
        ),
        Column(
            "subject",
            _("subject"),
            lambda alert: display.link(alert.url, gettext("Show")) if alert.url else display.DASH,
        ),
        Column("runbook", _("runbook"), _runbook),
    )
    list_filter = (
        filters.by_condition(
            _("state"),
            "open",
            {
                "true": (_("open"), Q(ended_at=None)),
                "false": (_("ended"), Q(ended_at__isnull=False)),
            },
        ),
        filters.by_value(_("level"), "level", Level),
        filters.by_value(_("condition"), "code", _code_choices),
    )
    exported = ("id", "code", "subject", "level", "title", "detail", "since", "ended_at")
    search_fields = ("title", "detail", "subject")
    search_help_text = _("Title, detail or subject (for example cluster/3)")
    # Open alerts first, by severity; then ended ones, the newest first.
    ordering = (F("ended_at").desc(nulls_first=True), open_alerts.SEVERITY, "-id")
    list_before_template = "cadastre/alerts_intro.html"
    row_pages = (
        Page("change", _page),
        # Alerts have no history of their own.
        Page("history", lambda _request, _alert: HttpResponseRedirect(reverse(LIST))),
    )

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return scheduler_context()
