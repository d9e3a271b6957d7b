"""The form of a wave: its name, its planned time, a note."""

from __future__ import annotations

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.admin import scoped
from claims.models import Wave
from claims.waves import waves
from pools.core import errors
from pools.models import Cluster
from pools.platform.admin import forms as fields
from pools.platform.admin import pages, related, row_forms


def _datetime_input() -> forms.Widget:
    attrs = {"class": "cad-input cad-input-short", "placeholder": "2026-12-05 22:00"}
    return forms.DateTimeInput(attrs=attrs, format="%Y-%m-%d %H:%M")  # no text: a format


class WaveForm(row_forms.RowForm):
    """The cluster of an existing wave cannot be changed."""

    cluster = related.RelatedField(scoped.OFFERED_CLUSTERS, Cluster.objects.none())
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
        with pages.errors_at_field(form, _field_of_problem):
            wave = waves.create(**form.cleaned_data, author=pages.author(request))
            message = gettext("The wave %(wave)s was created. Add its VMs.") % {"wave": wave.name}
            return pages.done(request, message, wave)
    return pages.form_page(
        request,
        Wave,
        form,
        title=gettext("Add a wave"),
        template="wave_form.html",
        button=gettext("Save"),
        clusters_exist=clusters.exists(),
    )


def edit(request: HttpRequest, wave: Wave) -> HttpResponse:
    form = WaveForm(request.POST or None)
    del form.fields["cluster"]
    form.show_row(wave, lambda row: {name: getattr(row, name) for name in form.fields})
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, _field_of_problem):
            waves.change(
                wave.pk,
                form.cleaned_data,
                author=pages.author(request),
                version=form.check_version,
            )
            return pages.done(request, gettext("The wave was changed."), wave)
    return pages.form_page(
        request, wave, form, title=gettext("Edit %(wave)s") % {"wave": wave.name}
    )


def _field_of_problem(problem: errors.FieldProblem) -> str:
    return problem.field or "name"
