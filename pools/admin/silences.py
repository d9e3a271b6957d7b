"""Silences of alerts: list, form, and the page that ends one."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters.field import cluster_field
from pools.models import Silence
from pools.platform import database
from pools.platform.admin import columns, display, forms as fields, lists, pages
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.alerts import open_alerts
from pools.platform.conditions import registry

LIST = "admin:pools_silence_changelist"


def _codes() -> list[tuple[str, str]]:
    return [("", gettext("all")), *((code, registry.words(code)) for code in registry.codes())]


class SilenceForm(forms.Form):
    code = forms.ChoiceField(
        choices=_codes, required=False, label=_("Condition"), widget=fields.select()
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


def _add(request: HttpRequest) -> HttpResponse:
    initial = {name: request.GET.get(name, "") for name in ("code", "cluster")}
    form = SilenceForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        until = database.now() + values.pop("duration")
        with pages.errors_at_field(form):
            open_alerts.create_silence(**values, until=until, by=request.user.get_username())
            return pages.done(request, gettext("The alerts are silenced."), reverse(LIST))
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


def _end(request: HttpRequest, row: Silence) -> HttpResponseBase:
    return pages.deletion(
        request,
        row,
        lambda: open_alerts.end_silence(row),
        title=gettext("End the silence?"),
        deleted=gettext("The silence was ended."),
        button=gettext("End silence"),
        back=reverse(LIST),
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
    list_pages = (Page("add", _add, "pools.add_silence"),)
    row_pages = (
        Page("change", _end, "pools.delete_silence"),
        Page("delete", _end, "pools.delete_silence"),
        # Silences have no history of their own.
        Page("history", lambda _request, _silence: HttpResponseRedirect(reverse(LIST))),
    )
