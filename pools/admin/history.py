"""The history: events of a search, allocations at a time and now, a pool at a time, and two moments compared."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.admin import events, time_bars
from pools.admin.clusters import field as cluster_fields
from pools.admin.pools import blocks
from pools.core import block_fields, errors, periods
from pools.core.periods import Period
from pools.models import Event, Pool
from pools.platform import database, search
from pools.platform.admin import display, export, forms as fields, lists, pages, related
from pools.platform.history import search as history_search
from pools.platform.history.search import HistoryQuery
from pools.register.history import addresses, comparison, holders, pools
from pools.register.history.addresses import Tenure

PAGE = 50
EXPORTED = 10_000  # events
FIELDS = 8  # changed fields that an entry shows
_HEAD = (
    "id",
    "at",
    "type",
    "cidr",
    "holder_kind",
    "holder_id",
    "org",
    "env",
    "actor",
    "request_id",
    "reason",
    "message",
)


@dataclass(frozen=True)
class TimelineEntry:
    """An event of the timeline with the fields that it changed; `further` is the number of the others."""

    event: Event
    changed: list[events.FieldChange]
    further: int


class PeriodForm(forms.Form):
    at = fields.PeriodField()


class HistoryForm(PeriodForm):
    q = forms.CharField(required=False)  # platform/search.py reads it


@dataclass(frozen=True)
class _Query:
    text: str
    period: Period | None
    searches: list[HistoryQuery]


def view(request: HttpRequest) -> HttpResponseBase:
    if not history_search.is_permitted(request.user):
        raise PermissionDenied
    period_form = HistoryForm(request.GET)
    query = _parse_query(request, period_form)
    form = request.GET.get("format", "")
    if form and query.searches:
        rows = ([row[name] for name in _HEAD] for row in _rows(query, request.user))
        return export.download(form, "history", _HEAD, rows)
    result = history_search.HistoryPage([], None)
    if query.searches:
        below = lists.parse_id(request.GET.get("cursor", "")) or None
        result = history_search.search(query.searches, user=request.user, below=below, limit=PAGE)
    return pages.page(
        request,
        "history.html",
        title=gettext("History of %(text)s") % {"text": query.text}
        if query.text
        else gettext("History"),
        query=query,
        form=period_form,
        presets=_presets(request),
        lines=lines(result.events, request.user),
        following=pages.url_with(request.GET, cursor=result.below) if result.below else "",
        links={form: pages.url_with(request.GET, format=form) for form in export.FORMATS},
        sees=request.user.has_perm(history_search.VIEW_EVENTS),
        bar=time_bars.of_tenures(request, _all_tenures(request, query), has_table=False),
        **_tenures(request, query),
    )


def _parse_query(request: HttpRequest, form: HistoryForm) -> _Query:
    """Return what is searched for; nothing where the form has errors."""
    text = search.parse(request.GET.get("q", "")).text
    if not form.is_valid():
        return _Query(text, None, [])
    period: Period | None = form.cleaned_data["at"]
    kind, number = request.GET.get("kind", ""), lists.parse_id(request.GET.get("object", ""))
    searches: list[HistoryQuery] = []
    if kind and number:
        searches = [HistoryQuery(kind=kind, object_id=number)]
    elif text:
        searches = history_search.queries_of_text(text)
    elif period:
        searches = [HistoryQuery()]
    if period is None:
        return _Query(text, None, searches)
    # The events up to a point in time, those of its second included, or those of a period.
    since = None if period.is_moment else period.start
    until = period.end + timedelta(seconds=1) if period.is_moment else period.end
    return _Query(text, period, [replace(query, since=since, until=until) for query in searches])


def _presets(request: HttpRequest) -> dict[StrOrPromise, str]:
    """Return links to this page about other times, by their labels."""
    labels = {
        "1 h": gettext("last hour"),
        "24 h": gettext("last 24 hours"),
        "7 d": gettext("last 7 days"),
        "yesterday": gettext("yesterday"),
        "last week": gettext("last week"),
    }
    return {
        label: pages.url_with(request.GET, at=text, at_picked="", cursor="")
        for text, label in labels.items()
    }


# --- then and now ---------------------------------------------------------------------------------


def _tenures(request: HttpRequest, query: _Query) -> dict[str, Any]:
    """Return the allocations of the address or holder, at the given time and now."""
    if not (query.text and query.searches and request.user.has_perm("pools.view_block")):
        return {}
    now = database.now()
    period = query.period or Period(now, now)
    sections: dict[str, Any] = {"now": _tenures_in(query.text, Period(now, now))}
    sees = request.user.has_perm(history_search.VIEW_EVENTS)
    if sees:
        sections["registrations"] = _registrations(query.text, period.last_moment)
    if query.period is not None:
        sections["then"] = _tenures_in(query.text, period)
        sections["same"] = _holder_keys(sections["then"]) == _holder_keys(sections["now"])
    return sections


def _all_tenures(request: HttpRequest, query: _Query) -> list[Tenure]:
    """Return the newest tenures of the address or holder at any time."""
    if not (query.text and query.searches and request.user.has_perm("pools.view_block")):
        return []
    address = search.parse(query.text).address
    if address is not None:
        return addresses.find_holders(address)[1]
    return _of_holders(query.text)


def _of_holders(text: str, **options: Any) -> list[Tenure]:
    names = [query.mac or query.holder for query in history_search.queries_of_text(text)]
    return [
        tenure
        for name in {*names} - {""}
        for tenure in holders.find_tenures(holder=name, limit=PAGE, **options).tenures
    ][:PAGE]


def _tenures_in(text: str, period: Period) -> list[Tenure]:
    searched = search.parse(text)
    start = None if period.is_moment else period.start
    if searched.address is not None:
        return addresses.find_holders(searched.address, at=period.last_moment, start=start)[0]
    if searched.network is not None:
        return []
    return _of_holders(text, moment=period.last_moment, start=start)


def _registrations(text: str, moment: datetime) -> list[dict[str, Any]]:
    """Return the entries and claims that named a MAC address or VM at that time."""
    return [row for reader in holders.ADDRESS_NAMERS for row in reader(text, None, moment)][:PAGE]


def _holder_keys(tenures: Iterable[Tenure]) -> list[tuple[str, str, str, str]]:
    return sorted(
        (tenure.block, tenure.state, tenure.holder["kind"], tenure.holder["id"])
        for tenure in tenures
    )


# --- the timeline ---------------------------------------------------------------------------------


def lines(rows: list[Event], user: Any) -> list[TimelineEntry]:
    """Return the events, each with the fields that it changed."""
    changes = events.read_changes(rows, user)
    changed = {event.pk: changes[event.pk].changed for event in rows}
    return [
        TimelineEntry(event, changed[event.pk][:FIELDS], max(0, len(changed[event.pk]) - FIELDS))
        for event in rows
    ]


def _rows(query: _Query, user: Any) -> Iterator[dict[str, Any]]:
    below: int | None = None
    count = 0
    while count < EXPORTED:
        limit = min(1000, EXPORTED - count)
        result = history_search.search(query.searches, user=user, below=below, limit=limit)
        for event in result.events:
            count += 1
            yield {name: getattr(event, name) for name in _HEAD} | {
                "at": block_fields.format_time(event.at)
            }
        below = result.below
        if below is None:
            return


# --- a pool ---------------------------------------------------------------------------------------


def pool_view(request: HttpRequest, pool_id: int) -> HttpResponse:
    pages.require(request, "pools.view_pool", "pools.view_block")
    form = PeriodForm(request.GET)
    period = form.cleaned_data["at"] if form.is_valid() else None
    moment = period.last_moment if period else database.now()
    try:
        snapshot = pools.pool_snapshot(pool_id, moment)
    except errors.NotFound as error:
        raise Http404(error.message) from error
    below = lists.parse_id(request.GET.get("cursor", "")) or None
    holders = pools.pool_holders(pool_id, moment, below=below, limit=PAGE)
    pool = Pool.objects.filter(pk=pool_id).select_related("cluster").first()
    name = snapshot.settings.name if snapshot.settings else pool.name if pool else str(pool_id)
    return pages.page(
        request,
        "history_pool.html",
        title=gettext("%(pool)s: state at a point in time") % {"pool": name},
        snapshot=snapshot,
        cooldown=display.duration(snapshot.settings.cooldown_seconds) if snapshot.settings else "",
        cluster=snapshot.cluster,
        pool=pool,
        name=name,
        form=form,
        presets=_presets(request),
        tenures=holders.tenures,
        following=pages.url_with(request.GET, cursor=holders.below) if holders.below else "",
        call=f"pools/{pool_id}/at/?at={block_fields.format_time(moment)}",
    )


# --- two moments ----------------------------------------------------------------------------------

COMPARED = 100  # differences
_COMPARISON_HEAD = (
    "change", "block", "cluster", "pool", "before_kind", "before_id", "after_kind", "after_id",
    "org", "env", "changed_at",
)  # fmt: skip
COMPARISON_PRESETS = (
    (_("1 hour"), timedelta(hours=1)),
    (_("24 hours"), timedelta(days=1)),
    (_("7 days"), timedelta(days=7)),
    (_("30 days"), timedelta(days=30)),
)
_OFFERED_POOLS = related.offer("pools", "pools.view_pool", blocks.POOLS)
_MINUTES = "%Y-%m-%dT%H:%M"


def _moment_field(label: Any) -> fields.TimeField:
    widget = forms.DateTimeInput(
        format=_MINUTES, attrs={"type": "datetime-local", "class": "cad-input"}
    )
    return fields.TimeField(label=label, required=False, widget=widget)


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


def comparison_view(request: HttpRequest) -> HttpResponseBase:
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
                    request.GET["format"],
                    "comparison",
                    _COMPARISON_HEAD,
                    _difference_rows(rows.differences),
                )
            below = lists.parse_id(request.GET.get("cursor", "")) or None
            result = comparison.compare(*moments, form.pool_ids(), below=below, limit=COMPARED)
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
            for label, ago in COMPARISON_PRESETS
        ],
        call=_comparison_call(form, result),
    )


def _local(moment: Any) -> str:
    return timezone.localtime(moment).strftime(_MINUTES)


def _comparison_call(form: ComparisonForm, result: comparison.Comparison | None) -> str:
    if result is None:
        return ""
    since, until = map(block_fields.format_time, (result.since, result.until))
    pool, cluster = form.cleaned_data["pool"], form.cleaned_data["cluster"]
    subject = f"&pool={pool.pk}" if pool else f"&cluster={cluster.name}" if cluster else ""
    return f"history/compare/?since={since}&until={until}{subject}"


def _difference_rows(differences: list[comparison.Difference]) -> Iterator[tuple[object, ...]]:
    nobody = {"kind": "", "id": ""}
    for difference in differences:
        before, after = difference.before or nobody, difference.after or nobody
        yield (
            difference.change, difference.block, difference.cluster, difference.pool,
            before["kind"], before["id"], after["kind"], after["id"],
            difference.org, difference.env, block_fields.format_time(difference.changed_at),
        )  # fmt: skip
