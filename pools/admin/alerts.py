"""Alerts: open conditions and past ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.models import Alert, Delivery
from pools.models.alerts import Level
from pools.platform import database
from pools.platform.admin import columns, display, filters, large_tables, lists, pages
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.alerts import open_alerts
from pools.platform.conditions import evaluation, registry

MOST = 50  # deliveries on the page of an alert
LIST = "admin:pools_alert_changelist"


def count(request: HttpRequest) -> str:
    """Return the number of open errors and warnings for the menu; empty if there are none to view."""
    if not request.user.has_perm("pools.view_alert"):
        return ""
    count = open_alerts.urgent_alerts().order_by()[: large_tables.REACH].count()
    return display.digits(count) if count else ""


def scheduler_context() -> dict[str, Any]:
    """Return `silence`, for how long the scheduler has been silent if it has stopped, otherwise an empty text;
    and `awaited`, True if it has not run yet, so that no condition was evaluated.
    """
    seconds = evaluation.seconds_since_scheduler_tick()
    has_stopped = seconds is not None and seconds > settings.IPAM_ALERT_SCHEDULER_SECONDS
    silence = display.duration(seconds or 0) if has_stopped else ""
    return {"silence": silence, "awaited": seconds is None and not Alert.objects.exists()}


class AcknowledgeForm(forms.Form):
    reason = fields.reason_field(help_text=_("Shown with the alert: who does what about it."))
    duration = fields.DurationField(
        label=_("For"),
        help_text=_("For example 4 hours or 3 days; empty: until the alert ends."),
    )
    same_cause = forms.BooleanField(
        label=_("Alerts with the same cause too"),
        required=False,
        initial=True,
        widget=fields.tick(),
    )

    def clean_duration(self) -> timedelta | None:
        seconds = self.cleaned_data["duration"]
        if seconds == 0:
            raise forms.ValidationError(_("Enter a duration above 0."), code="out_of_range")
        return timedelta(seconds=seconds) if seconds else None


def _acknowledge(request: HttpRequest, alert: Alert) -> HttpResponse:
    """Acknowledge an alert, or withdraw its acknowledgement (`withdraw`)."""
    if request.method != "POST":
        return HttpResponseRedirect(display.url_of(alert))
    if "withdraw" in request.POST:
        with pages.errors_as_messages(request):
            open_alerts.withdraw_acknowledgement(alert)
            messages.success(request, gettext("The acknowledgement was withdrawn."))
        return HttpResponseRedirect(display.url_of(alert))
    form = AcknowledgeForm(request.POST)
    if not form.is_valid():
        return _page(request, alert, form)
    cleaned_data = form.cleaned_data
    duration = cleaned_data["duration"]
    others = open_alerts.same_cause(alert) if cleaned_data["same_cause"] else ()
    with pages.errors_as_messages(request), transaction.atomic():
        until = database.now() + duration if duration else None
        for row in (alert, *others):
            open_alerts.acknowledge(
                row,
                by=request.user.get_username(),
                reason=cleaned_data["reason"],
                until=until,
            )
        messages.success(request, gettext("The alert was acknowledged."))
    return HttpResponseRedirect(display.url_of(alert))


def _page(
    request: HttpRequest, alert: Alert, submitted: AcknowledgeForm | None = None
) -> HttpResponse:
    form = submitted or AcknowledgeForm()
    group = open_alerts.same_cause(alert)[:MOST]
    if not group:
        del form.fields["same_cause"]
    deliveries: QuerySet[Delivery] = Delivery.objects.none()
    if request.user.has_perm("pools.view_delivery"):
        deliveries = Delivery.objects.filter(alert=alert).select_related("target").defer("body")
    before = Alert.objects.filter(code=alert.code, subject=alert.subject).exclude(pk=alert.pk)
    return pages.page(
        request,
        "alert.html",
        alert,
        title=alert.title,
        condition=registry.words(alert.code),
        runbook=registry.runbook(alert.code),
        group=group,
        deliveries=deliveries[:MOST],
        before=before[:MOST],
        form=form if alert.is_open and request.user.has_perm("pools.change_alert") else None,
        call=f"alerts/{alert.pk}/",
    )


def _runbook(alert: Alert) -> SafeString:
    runbook = registry.runbook(alert.code)
    if not runbook:
        return display.DASH
    return display.link(reverse("admin:runbook", args=[runbook]), gettext("Runbook"))


def _end(alert: Alert) -> SafeString | str:
    if alert.ended_at:
        return display.timestamp(alert.ended_at)
    if alert.is_acknowledged:
        return display.state("acknowledged", alert.acknowledged_reason)
    return gettext("open")


def _code_choices(_request: HttpRequest) -> list[tuple[str, str]]:
    return [(code, registry.words(code)) for code in sorted(registry.codes())]


@admin.register(Alert)
class AlertAdmin(lists.ListAdmin[Alert]):
    list_display = (
        columns.state("level", _("level")),
        columns.link("title", _("alert")),
        Column("code", _("condition"), lambda alert: registry.words(alert.code)),
        columns.timestamp("since", _("since")),
        Column("ended_at", _("ended"), _end),
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
                "acknowledged": (_("acknowledged"), open_alerts.ACKNOWLEDGED),
                "false": (_("ended"), Q(ended_at__isnull=False)),
            },
        ),
        filters.by_value(_("level"), "level", Level),
        filters.by_value(_("condition"), "code", _code_choices),
    )
    exported = (
        "id", "code", "subject", "level", "title", "detail", "since", "ended_at",
        "acknowledged_at", "acknowledged_by", "acknowledged_until", "acknowledged_reason",
    )  # fmt: skip
    search_fields = ("title", "detail", "subject")
    search_help_text = _("Title, detail or subject (for example cluster/3)")
    # Open alerts first, by severity; then ended ones, the newest first.
    ordering = (F("ended_at").desc(nulls_first=True), open_alerts.SEVERITY, "-id")
    list_before_template = "cadastre/alerts_intro.html"
    row_pages = (
        Page("change", _page),
        Page("acknowledge", _acknowledge, "pools.view_alert", "pools.change_alert"),
        # Alerts have no history of their own.
        Page("history", lambda _request, _alert: HttpResponseRedirect(reverse(LIST))),
    )

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**scheduler_context(), "has_email": bool(settings.EMAIL_HOST)}
