"""The page that compares two moments of a pool, a cluster or the fleet."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.pools import blocks
from pools.core import block_fields, errors, periods
from pools.models import Pool
from pools.platform import database
from pools.platform.admin import export, lists, pages, related
from pools.register.history import comparison

PAGE = 100
_HEAD = (
    "change", "block", "cluster", "pool", "before_kind", "before_id", "after_kind", "after_id",
    "org", "env", "changed_at",
)  # fmt: skip
PRESETS = (
    (_("1 hour"), timedelta(hours=1)),
    (_("24 hours"), timedelta(days=1)),
    (_("7 days"), timedelta(days=7)),
    (_("30 days"), timedelta(days=30)),
)
_OFFERED_POOLS = related.offer("pools", "pools.view_pool", blocks.POOLS)
_MINUTES = "%Y-%m-%dT%H:%M"


def _moment_field(label: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(
        format=_MINUTES, attrs={"type": "datetime-local", "class": "cad-input"}
    )
    return forms.DateTimeField(label=label, required=False, widget=widget)


class ComparisonForm(forms.Form):
    """The two moments, in the user's time zone, and what is compared; without a pool or a cluster the fleet."""

    since = _moment_field(_("From"))
    until = _moment_field(_("To (empty: now)"))
    cluster = cluster_fields.cluster_field(required=False, empty_label=_("all"))
    pool = related.RelatedField(
        _OFFERED_POOLS,
        Pool.objects.select_related("cluster").order_by("cluster__name", "name"),
        label=_("Pool or VM network"),
        required=False,
        empty_label=_("all"),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        latest = database.now() + periods.AHEAD
        for name in ("since", "until"):
            if values.get(name) and values[name] > latest:
                self.add_error(
                    name, forms.ValidationError(_("This is in the future."), code="future_time")
                )
        return values

    def pool_ids(self) -> set[int] | None:
        """Return the ids of the pools that are compared, None for all."""
        pool, cluster = self.cleaned_data["pool"], self.cleaned_data["cluster"]
        return comparison.select_pools(cluster and cluster.pk, pool and {pool.pk})


def view(request: HttpRequest) -> HttpResponseBase:
    """Show what changed between two moments, the last change first; `format` exports all of it."""
    pages.require(request, "pools.view_pool", "pools.view_block")
    now = database.now()
    parameters = request.GET.copy()
    parameters.pop("cursor", None)
    if not parameters.get("since"):
        day_before = timezone.localtime(now) - timedelta(days=1)
        parameters["since"] = day_before.strftime(_MINUTES)
    form = ComparisonForm(parameters)
    result: comparison.Comparison | None = None
    if form.is_valid():
        chosen = form.cleaned_data
        moments = (chosen["since"], chosen["until"] or now)
        try:
            if "format" in request.GET:
                rows = comparison.compare(*moments, form.pool_ids(), limit=export.MOST)
                return export.download(
                    request.GET["format"], "comparison", _HEAD, _rows(rows.differences)
                )
            below = lists.parse_id(request.GET.get("cursor", "")) or None
            result = comparison.compare(*moments, form.pool_ids(), below=below, limit=PAGE)
        except errors.InvalidInput as error:
            pages.add_errors(form, error)
    return pages.page(
        request,
        "comparison.html",
        title=gettext("Compare two moments"),
        form=form,
        comparison=result,
        following=pages.url_with(parameters, cursor=result.below)
        if result and result.below
        else "",
        exports={
            form_name: pages.url_with(parameters, format=form_name) for form_name in export.FORMATS
        },
        presets=[
            (label, pages.url_with(parameters, since=_local(now - ago), until=""))
            for label, ago in PRESETS
        ],
        call=_call(form, result),
    )


def _local(moment: Any) -> str:
    return timezone.localtime(moment).strftime(_MINUTES)


def _call(form: ComparisonForm, result: comparison.Comparison | None) -> str:
    if result is None:
        return ""
    since, until = map(block_fields.format_time, (result.since, result.until))
    pool, cluster = form.cleaned_data["pool"], form.cleaned_data["cluster"]
    subject = f"&pool={pool.pk}" if pool else f"&cluster={cluster.name}" if cluster else ""
    return f"history/compare/?since={since}&until={until}{subject}"


def _rows(differences: list[comparison.Difference]) -> Iterator[tuple[object, ...]]:
    nobody = {"kind": "", "id": ""}
    for difference in differences:
        before, after = difference.before or nobody, difference.after or nobody
        yield (
            difference.change, difference.block, difference.cluster, difference.pool,
            before["kind"], before["id"], after["kind"], after["id"],
            difference.org, difference.env, block_fields.format_time(difference.changed_at),
        )  # fmt: skip
