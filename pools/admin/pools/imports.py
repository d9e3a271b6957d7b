"""Import pools from CiliumPodIPPool manifests: a preview per object, then all or none."""

import functools
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _
from unfold import widgets

from pools.admin.clusters import field as cluster_fields
from pools.models import ATTRIBUTES, Pool
from pools.platform.admin import attributes, forms as fields, pages
from pools.register import manifests

LARGEST = 2 * 1024 * 1024
_RESULTS = {
    "created": _("Created: %(pools)s."),
    "changed": _("Changed: %(pools)s."),
    "unchanged": _("Unchanged: %(pools)s."),
}


class ImportForm(attributes.BulkAttributeFields):
    attributed = Pool
    cluster = cluster_fields.cluster_field()
    file = forms.FileField(
        label=_("File"), required=False, widget=widgets.UnfoldAdminFileFieldWidget()
    )
    text = forms.CharField(
        label=_("Manifests"),
        required=False,
        strip=False,
        widget=fields.lines(16),
        help_text=_(
            "CiliumPodIPPools of cilium.io/v2 or v2alpha1 (several documents or a "
            "list), or Helm values with autoCreateCiliumPodIPPools."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        del self.fields["remove_tags"]

    def attribute_fields(self) -> list[forms.BoundField]:
        """Return the fields of the attributes that all pools get."""
        return [self[name] for name in self.fields if name not in {"cluster", "file", "text"}]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("file") is not None:
            self._read(values)
        if not values.get("text", "").strip() and not self.errors:
            self.add_error("text", gettext("Paste manifests here, or choose a file."))
        return values

    def _read(self, values: dict[str, Any]) -> None:
        """Replace the text field with the content of the file, so that the preview can show it."""
        if values["file"].size > LARGEST:
            message = gettext("The file is larger than 2 MiB.")
            self.add_error("file", forms.ValidationError(message, code="too_large"))
            return
        try:
            values["text"] = values["file"].read().decode()
        except UnicodeDecodeError:
            message = gettext("The file is not UTF-8 text.")
            self.add_error("file", forms.ValidationError(message, code="encoding"))


def view(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.add_pool", "pools.change_pool")
    initial = {"cluster": request.GET.get("cluster", "")}
    form = ImportForm(request.POST or None, request.FILES or None, initial=initial)
    reports: list[manifests.ManifestReport] = []
    overlapping = False
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        confirmed = "_commit" in request.POST
        ticked = cluster_fields.OVERLAPS_TICK in request.POST
        apply = functools.partial(
            manifests.apply_manifests,
            values["text"].encode(),
            values["cluster"],
            author=pages.author(request),
            attributes=_entered_attributes(values),
        )
        with pages.errors_at_field(form, "text"):
            reports = apply(dry_run=not (confirmed and ticked))
            overlapping = any(report.problems for report in reports)
            if confirmed and not (ticked or overlapping):
                reports = apply()
            if confirmed and (ticked or not overlapping) and _all_accepted(reports):
                _report_results(request, reports)
                query = {"cluster": values["cluster"].pk}
                return redirect(reverse("admin:pools_pool_changelist", query=query))
    return pages.page(
        request,
        "import.html",
        title=gettext("Import pools"),
        form=form,
        reports=reports,
        overlapping=overlapping,
        accepted=bool(reports) and _all_accepted(reports),
        text=form.cleaned_data.get("text", "") if form.is_bound and form.is_valid() else "",
    )


def _entered_attributes(values: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that were entered for all pools of the import."""
    entered = {name: value for name, value in values.items() if value}
    values = attributes.bulk_values(Pool(), entered)
    return {name: values[name] for name in ATTRIBUTES if name in values}


def _all_accepted(reports: list[manifests.ManifestReport]) -> bool:
    return all(report.result != "refused" for report in reports)


def _report_results(request: HttpRequest, reports: list[manifests.ManifestReport]) -> None:
    for result, message in _RESULTS.items():
        names = [report.name for report in reports if report.result == result]
        if names:
            messages.success(request, message % {"pools": ", ".join(names)})
