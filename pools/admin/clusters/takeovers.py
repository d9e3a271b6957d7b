"""Take over fields of an object from other managers: preview, reason, confirmation."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.clusters import drift, takeovers
from pools.core import errors
from pools.models import Drift
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields


class TakeoverForm(forms.Form):
    reason = fields.reason_field(label=_("Reason"))


def view(request: HttpRequest, row: Drift) -> HttpResponse:
    """Show the current fields in the cluster; by POST with the token of the preview, take them over."""
    pages.require(request, *drift.adopt_permissions(row.kind))
    cluster_object = drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)
    form = TakeoverForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        try:
            takeover = takeovers.take_over(
                cluster_object, token=request.POST.get("token", ""), author=author
            )
        except errors.IpamError as error:
            pages.add_errors(form, error)
        else:
            names = ", ".join(taken_field.path for taken_field in takeover.fields)
            messages.success(
                request,
                gettext("Cadastre now manages %(fields)s of %(object)s.")
                % {"fields": names, "object": cluster_object},
            )
            return HttpResponseRedirect(reverse("admin:pools_drift_changelist"))
    try:
        preview = takeovers.preview(cluster_object, author=pages.author(request))
    except errors.IpamError as error:
        messages.error(request, pages.sentence(error.message or error.code))
        return HttpResponseRedirect(display.url_of(row))
    return pages.page(
        request,
        "takeover.html",
        title=gettext("Take over fields of %(object)s") % {"object": row.name},
        opts=Drift._meta,
        original=row,
        row=row,
        form=form,
        preview=preview,
        call=f"clusters/{row.cluster.name}/drift/{row.pk}/ownership/",
    )
