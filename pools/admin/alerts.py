"""Alerts, open conditions and past ones, and the silences that acknowledge them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import F, Func, Model, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.admin.clusters import field as cluster_fields
from pools.admin.clusters.field import cluster_field
from pools.models import (
    Alert,
    Cluster,
    Delivery,
    Drift,
    Environment,
    Level,
    Pool,
    Silence,
    WebhookTarget,
)
from pools.platform import database
from pools.platform.admin import columns, display, filters, forms as fields, lists, pages, related
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
    count = open_alerts.urgent_alerts().order_by().count()
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
    others = open_alerts.same_cause(alert) if form.cleaned_data["same_cause"] else ()
    _acknowledge_all(request, (alert, *others), form)
    return HttpResponseRedirect(display.url_of(alert))


def acknowledge_selected(request: HttpRequest) -> HttpResponse:
    """Ask for the reason, and acknowledge the open alerts of the parameter `id`, at most MOST."""
    ids = [lists.parse_id(text) for text in request.GET.getlist("id")[:MOST]]
    alerts = list(open_alerts.open_alerts().filter(pk__in=ids, acknowledged_at=None))
    form = AcknowledgeForm(request.POST if request.method == "POST" else None)
    del form.fields["same_cause"]
    if request.method == "POST" and form.is_valid():
        _acknowledge_all(request, alerts, form)
        return HttpResponseRedirect(lists.list_url(request, LIST))
    title = ngettext("Acknowledge %(count)s alert", "Acknowledge %(count)s alerts", len(alerts)) % {
        "count": len(alerts)
    }
    return pages.form_page(
        request,
        Alert,
        form,
        title=title,
        intro="; ".join(alert.title for alert in alerts),
        button=gettext("Acknowledge"),
        back=lists.list_url(request, LIST),
    )


def _acknowledge_all(request: HttpRequest, alerts: Sequence[Alert], form: AcknowledgeForm) -> None:
    duration = form.cleaned_data["duration"]
    with pages.errors_as_messages(request), transaction.atomic():
        until = database.now() + duration if duration else None
        for alert in alerts:
            open_alerts.acknowledge(
                alert,
                by=request.user.get_username(),
                reason=form.cleaned_data["reason"],
                until=until,
            )
        messages.success(
            request,
            ngettext("The alert was acknowledged.", "The alerts were acknowledged.", len(alerts)),
        )


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


_MODELS: dict[str, type[Model]] = {
    "cluster": Cluster,
    "pool": Pool,
    "environment": Environment,
    "drift": Drift,
    "webhook": WebhookTarget,
}
_PARTS_OF_CLUSTERS = ("pool", "drift", "environment")  # kinds with a `cluster`


def _subject_of(alert: Alert) -> tuple[str, int]:
    """Return the kind and the id of the subject: those of `pool/7/ipv4` are pool and 7."""
    kind, _slash, rest = alert.subject.partition("/")
    return kind, lists.parse_id(rest.partition("/")[0])


def _object(alert: Any) -> SafeString | str:
    if alert.object:
        return display.row_link(alert.object)
    return display.link(alert.url, gettext("Show")) if alert.url else display.DASH


def _cluster(alert: Any) -> SafeString | str:
    return display.row_link(alert.cluster) if alert.cluster else display.DASH


def _of_cluster(_request: HttpRequest, rows: QuerySet[Alert], value: str) -> QuerySet[Alert]:
    key = lists.parse_id(value)
    condition = Q(subject=f"cluster/{key}") | Q(subject__startswith=f"cluster/{key}/")
    for kind in _PARTS_OF_CLUSTERS:
        parts: Any = _MODELS[kind]._default_manager
        texts = parts.filter(cluster=key).values_list(Cast("pk", TextField()))
        condition |= Q(subject__startswith=f"{kind}/", subject_id__in=texts)
    subject_id = Func(
        "subject", Value("/"), Value(2), function="split_part", output_field=TextField()
    )
    return rows.alias(subject_id=subject_id).filter(condition)


def _if_permitted(request: HttpRequest, row: Any) -> Any:
    """Return the row; None if the user may not view it."""
    if row is None or not request.user.has_perm(f"pools.view_{row._meta.model_name}"):
        return None
    return row


def _acknowledge_link(alert: Alert) -> SafeString | str:
    if not alert.is_open or alert.is_acknowledged:
        return ""
    url = reverse("admin:pools_alert_acknowledge_selected", query={"id": alert.pk})
    return display.link(url, gettext("Acknowledge"))


@admin.register(Alert)
class AlertAdmin(lists.ListAdmin[Alert]):
    list_display = (
        columns.state("level", _("level"), ordering=open_alerts.SEVERITY),
        columns.link("title", _("alert")),
        Column("cluster", _("cluster"), _cluster),
        Column("subject", _("object"), _object, ordering="subject"),
        columns.timestamp("since", _("since"), ordering="since"),
        Column("ended_at", _("ended"), _end, ordering="ended_at"),
        Column("runbook", _("runbook"), _runbook),
        Column("acknowledge", _("acknowledge"), _acknowledge_link),
    )
    more_columns = (
        Column("code", _("condition"), lambda alert: registry.words(alert.code), ordering="code"),
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
        related.by_row(_("cluster"), "cluster", cluster_fields.CLUSTERS, _of_cluster),
        filters.by_value(_("level"), "level", Level),
        filters.by_value(_("condition"), "code", _code_choices),
    )
    exported = (
        "id", "code", "subject", "level", "title", "detail", "since", "ended_at",
        "acknowledged_at", "acknowledged_by", "acknowledged_until", "acknowledged_reason",
    )  # fmt: skip
    search_help_text = _("Title, detail or subject (for example cluster/3)")
    # Open alerts first, by severity; then ended ones, the newest first.
    ordering = (F("ended_at").desc(nulls_first=True), open_alerts.SEVERITY, "-id")
    list_before_template = "cadastre/alerts_intro.html"
    empty_text = _(
        "No alerts. An alert opens within 30 seconds of its cause, and ends when the cause "
        "is resolved."
    )
    list_pages = (
        Page(
            "acknowledge_selected",
            acknowledge_selected,
            "pools.view_alert",
            "pools.change_alert",
            path="acknowledge",
        ),
    )
    actions = (
        lists.action(
            "acknowledge",
            _("Acknowledge"),
            "admin:pools_alert_acknowledge_selected",
            "pools.change_alert",
            most=MOST,
        ),
    )
    row_pages = (
        Page("change", _page),
        Page("acknowledge", _acknowledge, "pools.view_alert", "pools.change_alert"),
        # Alerts have no history of their own.
        Page("history", lambda _request, _alert: HttpResponseRedirect(reverse(LIST))),
    )

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        context = {**scheduler_context(), "has_email": bool(settings.EMAIL_HOST)}
        if context["awaited"]:
            context["empty_text"] = gettext(
                "Conditions have not been evaluated yet: that happens every 30 seconds."
            )
        return context

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        shown = super().get_list_display(request)
        may_change = request.user.has_perm("pools.change_alert")
        return tuple(
            column
            for column in shown
            if may_change or getattr(column, "__name__", "") != "acknowledge"
        )

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        ids: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            kind, key = _subject_of(row)
            ids[kind].add(key)
        objects: dict[tuple[str, int], Any] = {}
        for kind, model in _MODELS.items():
            if ids[kind]:
                named: Any = model._default_manager.filter(pk__in=ids[kind])
                if kind in _PARTS_OF_CLUSTERS:
                    named = named.select_related("cluster")
                objects |= {(kind, row.pk): row for row in named}
        for row in rows:
            subject = objects.get(_subject_of(row))
            row.object = _if_permitted(request, subject)
            cluster = subject if isinstance(subject, Cluster) else getattr(subject, "cluster", None)
            row.cluster = _if_permitted(request, cluster)


# --- silences ---


SILENCES = "admin:pools_silence_changelist"


def _silenced_codes() -> list[tuple[str, str]]:
    return [("", gettext("all")), *((code, registry.words(code)) for code in registry.codes())]


class SilenceForm(forms.Form):
    code = forms.ChoiceField(
        choices=_silenced_codes, required=False, label=_("Condition"), widget=fields.select()
    )
    cluster = cluster_field(
        required=False, help_text=_("Empty: alerts of every cluster, and of none.")
    )
    duration = fields.DurationField(label=_("For"), help_text=_("For example 4 hours or 3 days."))
    reason = fields.reason_field(help_text=_("Shown with the alerts."))

    def clean_duration(self) -> timedelta:
        seconds = self.cleaned_data["duration"]
        if not seconds:
            raise forms.ValidationError(_("Enter a duration above 0."), code="out_of_range")
        return timedelta(seconds=seconds)


def _silence_alerts(request: HttpRequest) -> HttpResponse:
    initial = {name: request.GET.get(name, "") for name in ("code", "cluster")}
    form = SilenceForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        until = database.now() + values.pop("duration")
        with pages.errors_at_field(form):
            open_alerts.create_silence(**values, until=until, by=request.user.get_username())
            return pages.done(request, gettext("The alerts are silenced."), reverse(SILENCES))
    return pages.form_page(
        request,
        Silence,
        form,
        title=gettext("Silence alerts"),
        button=gettext("Silence"),
        intro=gettext(
            "Alerts that open meanwhile count as acknowledged, and no message about them is sent unless they become"
            " more severe. Those that are still open afterwards are sent then."
        ),
    )


def _end_silence(request: HttpRequest, row: Silence) -> HttpResponseBase:
    return pages.deletion(
        request,
        row,
        lambda: open_alerts.end_silence(row),
        title=gettext("End the silence?"),
        deleted=gettext("The silence was ended."),
        button=gettext("End silence"),
        back=reverse(SILENCES),
        effects=[gettext("Alerts that it acknowledged and that are still open are sent.")],
    )


@admin.register(Silence)
class SilenceAdmin(lists.ListAdmin[Silence]):
    list_display = (
        Column(
            "code",
            _("condition"),
            lambda row: display.link(
                display.url_of(row), registry.words(row.code) if row.code else gettext("all")
            ),
        ),
        Column(
            "cluster",
            _("cluster"),
            lambda row: display.row_link(row.cluster, "") if row.cluster else gettext("all"),
        ),
        columns.timestamp("until", _("until"), ordering="until"),
        columns.text("reason", _("reason")),
        columns.text("made_by", _("by")),
    )
    list_select_related = ("cluster",)
    ordering = ("until", "id")
    list_pages = (Page("add", _silence_alerts, "pools.add_silence"),)
    row_pages = (
        Page("change", _end_silence, "pools.delete_silence"),
        Page("delete", _end_silence, "pools.delete_silence"),
        # Silences have no history of their own.
        Page("history", lambda _request, _silence: HttpResponseRedirect(reverse(SILENCES))),
    )
