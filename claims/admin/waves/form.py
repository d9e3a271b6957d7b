"""The form of a wave: its name, its planned time, a note."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.models import Wave
from claims.waves import waves
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields


def _datetime_input() -> forms.Widget:
    attrs = {"class": "cad-input cad-input-short", "placeholder": "2026-12-05 22:00"}
    return forms.DateTimeInput(attrs=attrs, format="%Y-%m-%d %H:%M")  # no text: a format


class WaveForm(forms.Form):
    """The cluster of an existing wave cannot be changed."""

    cluster = forms.ModelChoiceField(Cluster.objects.none(), widget=fields.select())
    name = forms.CharField(max_length=63, widget=fields.text(placeholder="Saturday 1"))
    planned_at = forms.DateTimeField(
        label=_("Planned for"), required=False, widget=_datetime_input(), help_text=_("In UTC.")
    )
    note = forms.CharField(required=False, max_length=500, widget=fields.text())


def add(request: HttpRequest, clusters: QuerySet[Cluster]) -> HttpResponse:
    """Show the form of a new wave and create it without VMs; its page adds them."""
    only_cluster_id = clusters[0].pk if len(clusters[:2]) == 1 else None
    form = WaveForm(
        request.POST or None, initial={"cluster": only_cluster_id, **request.GET.dict()}
    )
    form.fields["cluster"].queryset = clusters  # type: ignore[attr-defined]
    if request.method == "POST" and form.is_valid():
        values: dict[str, Any] = dict(form.cleaned_data)
        try:
            wave = waves.create(
                values.pop("cluster"), values.pop("name"), **values, author=pages.author(request)
            )
        except errors.IpamError as error:
            _add_problems(form, error)
        else:
            messages.success(
                request,
                (gettext("The wave %(wave)s was created. Add its VMs.") % {"wave": wave.name}),
            )
            return HttpResponseRedirect(display.url_of(wave))
    back = reverse("admin:claims_wave_changelist")
    return _page(request, form, gettext("Add a wave"), back, clusters_exist=clusters.exists())


def edit(request: HttpRequest, wave: Wave) -> HttpResponse:
    initial = {name: getattr(wave, name) for name in ("name", "planned_at", "note")}
    form = WaveForm(request.POST or None, initial=initial)
    del form.fields["cluster"]
    if request.method == "POST" and form.is_valid():
        try:
            waves.change(wave.pk, form.cleaned_data, author=pages.author(request))
        except errors.IpamError as error:
            _add_problems(form, error)
        else:
            messages.success(request, gettext("The wave was changed."))
            return HttpResponseRedirect(display.url_of(wave))
    return _page(
        request,
        form,
        (gettext("Edit %(wave)s") % {"wave": wave.name}),
        display.url_of(wave),
        clusters_exist=True,
    )


def _add_problems(form: WaveForm, error: errors.IpamError) -> None:
    pages.add_errors(form, error, lambda problem: problem.field or "name")


def _page(
    request: HttpRequest, form: WaveForm, title: str, back: str, *, clusters_exist: bool
) -> HttpResponse:
    return pages.page(
        request,
        "wave_form.html",
        title=title,
        opts=Wave._meta,
        form=form,
        back=back,
        clusters_exist=clusters_exist,
    )
