"""Alerts: open conditions and past ones."""

from __future__ import annotations

from typing import Any

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
        return [(code, words(code)) for code in registry.codes()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        return rows.filter(code=self.value()) if self.value() else rows


def words(code: str) -> str:
    """Return a condition code as text: `pool_nearly_full` -> `pool nearly full`."""
    return code.replace("_", " ")


def count(request: HttpRequest) -> str:
    """Return the number of open alerts for the menu; empty if there are none or the user may not view them."""
    if not request.user.has_perm("pools.view_alert"):
        return ""
    count = Alert.objects.filter(ended_at=None).order_by()[: lists.REACH].count()
    return display.digits(count) if count else ""


@admin.register(Alert)
class AlertAdmin(lists.ReadOnlyAdmin[Alert]):
    list_display = (
        "shown_level",
        "shown_title",
        "shown_code",
        "shown_since",
        "shown_end",
        "shown_link",
    )
    list_display_links = None
    list_filter = (AlertStateFilter, AlertLevelFilter, AlertCodeFilter)
    exported = ("id", "code", "subject", "level", "title", "detail", "since", "ended_at")
    search_fields = ("title", "detail", "subject")
    search_help_text = _("Title, detail or subject (for example cluster/3)")
    # Open alerts first; newest first in each group.
    ordering = (F("ended_at").desc(nulls_first=True), "-id")
    sortable_by = ()
    paginator = lists.BoundedPaginator
    list_before_template = "cadastre/alerts_intro.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        silence = scheduler.seconds_since_tick()
        stopped = silence is not None and silence > scheduler.MOST_SILENCE
        more = {"silence": display.duration(silence or 0)} if stopped else {}
        return super().changelist_view(request, {**(extra_context or {}), **more})

    @admin.display(description=_("level"))
    def shown_level(self, alert: Alert) -> SafeString:
        return display.state(alert.level)

    @admin.display(description=_("alert"))
    def shown_title(self, alert: Alert) -> SafeString:
        return display.row_link(alert, alert.title)

    @admin.display(description=_("condition"))
    def shown_code(self, alert: Alert) -> str:
        return words(alert.code)

    @admin.display(description=_("since"))
    def shown_since(self, alert: Alert) -> SafeString:
        return display.timestamp(alert.since)

    @admin.display(description=_("ended"))
    def shown_end(self, alert: Alert) -> SafeString:
        return display.timestamp(alert.ended_at) if alert.ended_at else SafeString(gettext("open"))

    @admin.display(description=_("subject"))
    def shown_link(self, alert: Alert) -> SafeString:
        return display.link(alert.url, gettext("Show")) if alert.url else display.DASH

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
            condition=words(alert.code),
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
