"""The history: events of a search, allocations at a time and now, and a pool at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext

from pools.core import block_fields, errors
from pools.models import Event, Pool
from pools.platform import database, search_text
from pools.platform.admin import display, export, lists, pages
from pools.platform.history import representation
from pools.platform.history import search as history_search
from pools.platform.history.search import HistoryQuery
from pools.register.history import addresses, holders, pools
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
    """An event of the timeline. `changed` are (field, before, after) as strings."""

    event: Event
    changed: list[tuple[str, str, str]]
    further: int  # number of the other changed fields


@dataclass(frozen=True)
class _Query:
    text: str
    moment: datetime | None
    since: datetime | None
    searches: list[HistoryQuery]
    problems: list[str]

    @property
    def is_search(self) -> bool:
        return bool(self.searches) and not self.problems


def view(request: HttpRequest) -> HttpResponseBase:
    if not any(request.user.has_perm(name) for name in history_search.PERMISSIONS):
        raise PermissionDenied
    query = _parse_query(request)
    form = request.GET.get("format", "")
    if form and query.is_search:
        rows = ([row[name] for name in _HEAD] for row in _rows(query, request.user))
        return export.download(form, "history", _HEAD, rows)
    result = history_search.HistoryPage([], None)
    if query.is_search:
        below = lists.parse_id(request.GET.get("cursor", "")) or None
        result = history_search.search(query.searches, user=request.user, below=below, limit=PAGE)
    return pages.page(
        request,
        "history.html",
        title=gettext("History of %(text)s") % {"text": query.text}
        if query.text
        else gettext("History"),
        query=query,
        at_text=request.GET.get("at", ""),
        since_text=request.GET.get("since", ""),
        lines=lines(result.events, request.user),
        following=_page_url(request, cursor=result.below) if result.below else "",
        links={form: _page_url(request, format=form) for form in export.FORMATS},
        sees=request.user.has_perm(history_search.VIEW_EVENTS),
        **_tenures(request, query),
    )


def _parse_query(request: HttpRequest) -> _Query:
    text = search_text.parse(request.GET.get("q", "")).text
    problems: list[str] = []
    moment, since = (_parse_time(request.GET.get(name, ""), problems) for name in ("at", "since"))
    kind, number = request.GET.get("kind", ""), lists.parse_id(request.GET.get("object", ""))
    searches: list[HistoryQuery] = []
    if kind and number:
        searches = [HistoryQuery(kind=kind, object_id=number)]
    elif text:
        searches = history_search.queries_of_text(text)
    elif moment or since:
        searches = [HistoryQuery()]
    until = moment and moment + addresses.AHEAD / 30
    return _Query(
        text,
        moment,
        since,
        [replace(search, since=since, until=until) for search in searches],
        problems,
    )


def _parse_time(text: str, problems: list[str]) -> datetime | None:
    """Parse a time of the form (no zone: UTC) or in RFC 3339; add errors to `problems`."""
    if not text.strip():
        return None
    timestamp = text.strip()
    if "T" not in timestamp:
        day, _blank, time = timestamp.partition(" ")
        timestamp = f"{day}T{time.strip() or '00:00'}"
    if (
        "T" in timestamp
        and not timestamp.endswith("Z")
        and "+" not in timestamp
        and timestamp.count("-") == 2
    ):
        timestamp += "Z"
    try:
        return addresses.parse_past_time(timestamp)
    except errors.InvalidInput as error:
        message = error.message
        if any(problem.code == "time" for problem in error.problems):
            message = gettext("enter a date such as 2026-05-05, or 2026-05-05 14:02")
        problems.append(
            gettext("%(time)s is no time of the history: %(error)s.")
            % {"time": errors.display_value(text), "error": message}
        )
        return None


def _page_url(request: HttpRequest, **changes: object) -> str:
    parameters = request.GET.copy()
    for name, value in changes.items():
        parameters[name] = str(value)
    return f"?{parameters.urlencode()}"


# --- then and now ---------------------------------------------------------------------------------


def _tenures(request: HttpRequest, query: _Query) -> dict[str, Any]:
    """Return the allocations of the address or holder, at the given time and now."""
    if not (query.text and query.is_search and request.user.has_perm("pools.view_block")):
        return {}
    now = database.now()
    sections: dict[str, Any] = {"now": _tenures_at(query.text, now)}
    sees = request.user.has_perm(history_search.VIEW_EVENTS)
    if sees:
        sections["registrations"] = _registrations(query.text, query.moment or now)
    if query.moment is not None:
        sections["then"] = _tenures_at(query.text, query.moment)
        sections["same"] = _holder_keys(sections["then"]) == _holder_keys(sections["now"])
    return sections


def _tenures_at(text: str, moment: datetime) -> list[Tenure]:
    searched = search_text.parse(text)
    if searched.address is not None:
        return addresses.find_holders(searched.address, at=moment)[0]
    if searched.network is not None:
        return []
    names = [search.mac or search.holder for search in history_search.queries_of_text(text)]
    held = [
        holders.find_tenures(holder=name, moment=moment, limit=PAGE) for name in {*names} - {""}
    ]
    return [tenure for held_page in held for tenure in held_page.tenures][:PAGE]


def _registrations(text: str, moment: datetime) -> list[dict[str, Any]]:
    """Return the entries and claims that named a MAC address or VM at that time."""
    return [row for reader in holders.ADDRESS_NAMERS for row in reader(text, None, moment)][:PAGE]


def _holder_keys(tenures: Iterable[Tenure]) -> list[tuple[str, str, str, str]]:
    return sorted(
        (tenure.block, tenure.state, tenure.holder["kind"], tenure.holder["id"])
        for tenure in tenures
    )


# --- the timeline ---------------------------------------------------------------------------------


def lines(events: list[Event], user: Any) -> list[TimelineEntry]:
    """Return the events, each with the fields that it changed."""
    states = history_search.changes(events, user=user)
    return [_timeline_entry(event, states[event.pk]) for event in events]


def _timeline_entry(event: Event, change: representation.Change) -> TimelineEntry:
    before, after = change.before, change.after
    if before is None or after is None:
        return TimelineEntry(event, [], 0)
    changed = [
        (
            name.removesuffix("_id") if name != "holder_id" else name,
            _text(before[name]),
            _text(value),
        )
        for name, value in after.items()
        if before.get(name) != value
    ]
    return TimelineEntry(event, changed[:FIELDS], max(0, len(changed) - FIELDS))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


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
    problems: list[str] = []
    moment = _parse_time(request.GET.get("at", ""), problems) or database.now()
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
        cluster=pools.cluster_name(snapshot),
        pool=pool,
        name=name,
        at_text=request.GET.get("at", ""),
        problems=problems,
        tenures=holders.tenures,
        following=_page_url(request, cursor=holders.below) if holders.below else "",
        call=f"pools/{pool_id}/at/?at={block_fields.format_time(moment)}",
    )
