"""Alerts: open conditions and past ones."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.models import Alert, Delivery
from pools.models.alerts import Level
from pools.platform import scheduler
from pools.platform.admin import display, lists, pages
from pools.platform.alerts import open_alerts
from pools.platform.conditions import registry

MOST = 50  # deliveries on the page of an alert
_STATES = {"true": _("open"), "false": _("ended")}


class AlertStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "open"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(key, str(label)) for key, label in _STATES.items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.value() in _STATES:
            return rows.filter(ended_at__isnull=self.value() == "true")
        return rows


class AlertLevelFilter(lists.ChoiceFilter):
    title = _("level")
    parameter_name = "level"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in Level.choices]

    def queryset(self, request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        return rows.filter(level=self.value()) if self.value() else rows


class AlertCodeFilter(lists.ChoiceFilter):
    title = _("condition")
    parameter_name = "code"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(code, registry.words(code)) for code in sorted(registry.codes())]

    def queryset(self, request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        return rows.filter(code=self.value()) if self.value() else rows


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


@admin.register(Alert)
class AlertAdmin(lists.ReadOnlyAdmin[Alert]):
    list_display = (
        "shown_level",
        "shown_title",
        "shown_code",
        "shown_since",
        "shown_end",
        "shown_link",
        "shown_runbook",
    )
    list_display_links = None
    list_filter = (AlertStateFilter, AlertLevelFilter, AlertCodeFilter)
    exported = ("id", "code", "subject", "level", "title", "detail", "since", "ended_at")
    search_fields = ("title", "detail", "subject")
    search_help_text = _("Title, detail or subject (for example cluster/3)")
    # Open alerts first, by severity; then ended ones, the newest first.
    ordering = (F("ended_at").desc(nulls_first=True), open_alerts.SEVERITY, "-id")
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/alerts_intro.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return super().changelist_view(request, {**(extra_context or {}), **scheduler_context()})

    @admin.display(description=_("level"))
    def shown_level(self, alert: Alert) -> SafeString:
        return display.state(alert.level)

    @admin.display(description=_("alert"))
    def shown_title(self, alert: Alert) -> SafeString:
        return display.row_link(alert, alert.title)

    @admin.display(description=_("condition"))
    def shown_code(self, alert: Alert) -> str:
        return registry.words(alert.code)

    @admin.display(description=_("since"))
    def shown_since(self, alert: Alert) -> SafeString:
        return display.timestamp(alert.since)

    @admin.display(description=_("ended"))
    def shown_end(self, alert: Alert) -> SafeString:
        return display.timestamp(alert.ended_at) if alert.ended_at else SafeString(gettext("open"))

    @admin.display(description=_("subject"))
    def shown_link(self, alert: Alert) -> SafeString:
        return display.link(alert.url, gettext("Show")) if alert.url else display.DASH

    @admin.display(description=_("runbook"))
    def shown_runbook(self, alert: Alert) -> SafeString:
        runbook = registry.runbook(alert.code)
        if not runbook:
            return display.DASH
        return display.link(reverse("admin:runbook", args=[runbook]), gettext("Runbook"))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "pools.view_alert")
        alert = Alert.objects.filter(pk=lists.parse_id(object_id)).first()
        if alert is None:
            raise Http404(gettext("This alert does not exist."))
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

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        """Redirect to the list: alerts have no history of their own."""
        pages.require(request, "pools.view_alert")
        return HttpResponseRedirect(reverse("admin:pools_alert_changelist"))
