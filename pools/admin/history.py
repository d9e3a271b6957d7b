"""What was: one box, a time, a timeline; what somebody had then and has now; a pool at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse

from pools.admin.overview import attention
from pools.core import block_fields, errors
from pools.models import Event, Pool
from pools.platform import database
from pools.platform.admin import export, lists, pages, search_text
from pools.platform.audit import verification
from pools.platform.history import search as history_search
from pools.platform.history import snapshots
from pools.platform.history.search import HistoryQuery
from pools.register.history import addresses, holders, pools
from pools.register.history.addresses import Tenure

PAGE = 50
EXPORTED = 10_000  # events
FIELDS = 8  # changed ones that a line shows
_HEAD = (
    "id", "at", "type", "cidr", "holder_kind", "holder_id", "org", "env", "actor", "request_id",
    "reason", "message",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """An event of the timeline; `changed` are (field, before, after) as texts."""

    event: Event
    changed: list[tuple[str, str, str]]
    further: int  # fields that changed besides


@dataclass(frozen=True)
class _Asked:
    text: str
    at: datetime | None
    since: datetime | None
    wanted: list[HistoryQuery]
    problems: list[str]

    @property
    def anything(self) -> bool:
        return bool(self.wanted) and not self.problems


def view(request: HttpRequest) -> HttpResponseBase:
    if not any(request.user.has_perm(name) for name in history_search.PERMISSIONS):
        raise PermissionDenied
    asked = _asked(request)
    form = request.GET.get("format", "")
    if form and asked.anything:
        rows = ([row[name] for name in _HEAD] for row in _rows(asked, request.user))
        return export.download(form, "history", _HEAD, rows)
    found = history_search.HistoryPage([], None)
    if asked.anything:
        below = lists.number(request.GET.get("cursor", "")) or None
        found = history_search.search(asked.wanted, user=request.user, below=below, limit=PAGE)
    return pages.page(
        request,
        "history.html",
        title=f"History of {asked.text}" if asked.text else "History",
        asked=asked,
        at_text=request.GET.get("at", ""),
        since_text=request.GET.get("since", ""),
        lines=lines(found.events, request.user),
        following=_link(request, cursor=found.below) if found.below else "",
        links={form: _link(request, format=form) for form in export.FORMATS},
        sees=request.user.has_perm(history_search.VIEW_EVENTS),
        **_tenures(request, asked),
    )


def _asked(request: HttpRequest) -> _Asked:
    text = search_text.parse(request.GET.get("q", "")).text
    problems: list[str] = []
    at, since = (_moment(request.GET.get(name, ""), problems) for name in ("at", "since"))
    kind, number = request.GET.get("kind", ""), lists.number(request.GET.get("object", ""))
    wanted: list[HistoryQuery] = []
    if kind and number:
        wanted = [HistoryQuery(kind=kind, object_id=number)]
    elif text:
        wanted = history_search.queries_of_text(text)
    elif at or since:
        wanted = [HistoryQuery()]
    until = at and at + addresses.AHEAD / 30
    return _Asked(
        text, at, since, [replace(one, since=since, until=until) for one in wanted], problems
    )


def _moment(text: str, problems: list[str]) -> datetime | None:
    """A time of the form, which has no zone: UTC; or RFC 3339."""
    if not text.strip():
        return None
    given = text.strip()
    if "T" in given and not given.endswith("Z") and "+" not in given and given.count("-") == 2:
        given += "Z"
    try:
        return addresses.parse_past_time(given)
    except errors.InvalidInput as error:
        problems.append(pages.sentence(f"the time {errors.shown(text)} {error.message}"))
        return None


def _link(request: HttpRequest, **changes: object) -> str:
    given = request.GET.copy()
    for name, value in changes.items():
        given[name] = str(value)
    return f"?{given.urlencode()}"


# --- then and now ---------------------------------------------------------------------------------


def _tenures(request: HttpRequest, asked: _Asked) -> dict[str, Any]:
    """Who had the address, or what the holder had, then and now."""
    if not (asked.text and asked.anything and request.user.has_perm("pools.view_block")):
        return {}
    now = database.now()
    found: dict[str, Any] = {"now": _had(asked.text, now)}
    sees = request.user.has_perm(history_search.VIEW_EVENTS)
    if sees:
        found["named"] = _named(asked.text, asked.at or now)
    if asked.at is not None:
        found["then"] = _had(asked.text, asked.at)
        found["same"] = _who(found["then"]) == _who(found["now"])
    return found


def _had(text: str, moment: datetime) -> list[Tenure]:
    searched = search_text.parse(text)
    if searched.address is not None:
        return addresses.find_holders(searched.address, at=moment)[0]
    if searched.network is not None:
        return []
    names = [one.mac or one.holder for one in history_search.queries_of_text(text)]
    held = [
        holders.find_tenures(holder=name, moment=moment, limit=PAGE) for name in {*names} - {""}
    ]
    return [one for found in held for one in found.tenures][:PAGE]


def _named(text: str, moment: datetime) -> list[dict[str, Any]]:
    """What named a MAC or a VM then: entries and claims."""
    return [row for reader in holders.ADDRESS_NAMERS for row in reader(text, None, moment)][:PAGE]


def _who(tenures: Iterable[Tenure]) -> list[tuple[str, str, str, str]]:
    return sorted((one.block, one.state, one.holder["kind"], one.holder["id"]) for one in tenures)


# --- the timeline ---------------------------------------------------------------------------------


def lines(events: list[Event], user: Any) -> list[Line]:
    """The events with the fields that each changed."""
    states = history_search.changes(events, user=user)
    return [_line(event, states[event.pk]) for event in events]


def _line(event: Event, change: snapshots.Change) -> Line:
    before, after = change.before, change.after
    if before is None or after is None:
        return Line(event, [], 0)
    changed = [
        (
            name.removesuffix("_id") if name != "holder_id" else name,
            _text(before[name]),
            _text(value),
        )
        for name, value in after.items()
        if before.get(name) != value
    ]
    return Line(event, changed[:FIELDS], max(0, len(changed) - FIELDS))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _rows(asked: _Asked, user: Any) -> Iterator[dict[str, Any]]:
    below: int | None = None
    count = 0
    while count < EXPORTED:
        limit = min(1000, EXPORTED - count)
        found = history_search.search(asked.wanted, user=user, below=below, limit=limit)
        for event in found.events:
            count += 1
            yield {name: getattr(event, name) for name in _HEAD} | {
                "at": block_fields.time(event.at)
            }
        below = found.below
        if below is None:
            return


# --- a pool ---------------------------------------------------------------------------------------


def of_pool(request: HttpRequest, pool_id: int) -> HttpResponseBase:
    pages.require(request, "pools.view_pool", "pools.view_block")
    problems: list[str] = []
    moment = _moment(request.GET.get("at", ""), problems) or database.now()
    try:
        standing = pools.pool_snapshot(pool_id, moment)
    except errors.NotFound as error:
        raise Http404(error.message) from error
    below = lists.number(request.GET.get("cursor", "")) or None
    found = pools.pool_holders(pool_id, moment, below=below, limit=PAGE)
    pool = Pool.objects.filter(pk=pool_id).select_related("cluster").first()
    name = standing.settings.name if standing.settings else pool.name if pool else str(pool_id)
    return pages.page(
        request,
        "history_pool.html",
        title=f"{name} at a time",
        standing=standing,
        cluster=pools.cluster_name(standing),
        pool=pool,
        name=name,
        at_text=request.GET.get("at", ""),
        problems=problems,
        tenures=found.tenures,
        following=_link(request, cursor=found.below) if found.below else "",
        call=f"pools/{pool_id}/at/?at={block_fields.time(moment)}",
    )


# --- the seal -------------------------------------------------------------------------------------


def chain_lines(request: HttpRequest) -> Iterator[attention.Attention]:
    """A history that is not what was sealed."""
    if not request.user.has_perm("pools.view_auditsegment"):
        return
    last = verification.latest()
    if last is None or last.ok:
        return
    words = "1 fault" if last.fault_count == 1 else f"{last.fault_count} faults"
    first = last.faults[0]["message"] if last.faults else ""
    url = reverse("admin:history")
    yield attention.Attention(
        "bad", f"The audit chain is broken: {words}", first, url, "History", url, last.finished_at
    )
