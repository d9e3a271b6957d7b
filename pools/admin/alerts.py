"""Alerts: open conditions and past ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.models import Alert, Delivery
from pools.models.alerts import Level
from pools.platform import database, scheduler
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.platform.alerts import acknowledgement, open_alerts
from pools.platform.conditions import registry

MOST = 50  # deliveries on the page of an alert
_STATES = {
    "true": (_("open"), Q(ended_at=None)),
    "acknowledged": (_("acknowledged"), Q(ended_at=None, acknowledged_at__isnull=False)),
    "false": (_("ended"), Q(ended_at__isnull=False)),
}


class AlertStateFilter(lists.ChoiceFilter):
    title = _("state")
    parameter_name = "open"

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [(key, str(label)) for key, (label, _condition) in _STATES.items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        _label, condition = _STATES.get(self.value() or "", ("", Q()))
        return rows.filter(condition)


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


def acknowledge_view(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Acknowledge an alert, or withdraw its acknowledgement (`withdraw`)."""
    pages.require(request, "pools.view_alert", "pools.change_alert")
    alert = Alert.objects.filter(pk=alert_id).first()
    if alert is None:
        raise Http404(gettext("This alert does not exist."))
    if request.method != "POST":
        return HttpResponseRedirect(display.url_of(alert))
    if "withdraw" in request.POST:
        with pages.errors_as_messages(request):
            acknowledgement.withdraw(alert)
            messages.success(request, gettext("The acknowledgement was withdrawn."))
        return HttpResponseRedirect(display.url_of(alert))
    form = AcknowledgeForm(request.POST)
    if not form.is_valid():
        return _alert_page(request, alert, form)
    cleaned_data = form.cleaned_data
    duration = cleaned_data["duration"]
    others = open_alerts.same_cause(alert) if cleaned_data["same_cause"] else ()
    with pages.errors_as_messages(request), transaction.atomic():
        for row in (alert, *others):
            acknowledgement.acknowledge(
                row,
                by=request.user.get_username(),
                reason=cleaned_data["reason"],
                until=database.now() + duration if duration else None,
            )
        messages.success(request, gettext("The alert was acknowledged."))
    return HttpResponseRedirect(display.url_of(alert))


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
    exported = (
        "id", "code", "subject", "level", "title", "detail", "since", "ended_at",
        "acknowledged_at", "acknowledged_by", "acknowledged_until", "acknowledged_reason",
    )  # fmt: skip
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
        if alert.ended_at:
            return display.timestamp(alert.ended_at)
        if alert.is_acknowledged:
            return display.state("acknowledged", alert.acknowledged_reason)
        return SafeString(gettext("open"))

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
        return _alert_page(request, alert, AcknowledgeForm())

    def get_urls(self) -> list[URLPattern]:
        view = pages.in_admin(acknowledge_view)
        name = "pools_alert_acknowledge"
        return [path("<int:alert_id>/acknowledge/", view, name=name), *super().get_urls()]

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        """Redirect to the list: alerts have no history of their own."""
        pages.require(request, "pools.view_alert")
        return HttpResponseRedirect(reverse("admin:pools_alert_changelist"))


def _alert_page(request: HttpRequest, alert: Alert, form: AcknowledgeForm) -> HttpResponse:
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
        title=alert.title,
        opts=Alert._meta,
        original=alert,
        row=alert,
        condition=registry.words(alert.code),
        runbook=registry.runbook(alert.code),
        group=group,
        deliveries=deliveries[:MOST],
        before=before[:MOST],
        form=form if alert.is_open and request.user.has_perm("pools.change_alert") else None,
        call=f"alerts/{alert.pk}/",
    )
