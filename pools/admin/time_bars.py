"""Bars of time: who had an address, a block, the addresses of a VM or most of a pool when, drawn on the server as SVG.

Each row of a bar is an SVG as wide as the page. A segment has the name of its holder, a cooldown is hatched, and a
mark stands where something changed. Positions are percentages, so that texts are never stretched.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, ngettext

from pools.models import Pool
from pools.platform.admin import display
from pools.platform.history import search as history_search
from pools.register.history import holders
from pools.register.history.addresses import Tenure

ROWS = 20  # drawn, those that changed last
SEGMENTS = 100  # drawn in a row, the newest
_NARROWEST = 0.4  # per cent of the width
_NAMED = 3.0  # per cent of the width from which a segment has a text


@dataclass(frozen=True)
class Segment:
    """A time in which nothing changed; `until` is None while it lasts, `state` one of `display.state`."""

    label: str
    state: str
    since: datetime
    until: datetime | None = None
    url: str = ""


@dataclass(frozen=True)
class SegmentRow:
    """The segments of one object, in any order."""

    title: str
    segments: Sequence[Segment]

    @cached_property
    def newest(self) -> list[Segment]:
        """The drawn segments, newest first."""
        return sorted(self.segments, key=lambda segment: segment.since, reverse=True)[:SEGMENTS]


@dataclass(frozen=True)
class TimeBar:
    """A bar from the beginning of the first drawn segment until `now`.

    `has_table`: the page shows its rows as a table already.
    """

    all_rows: Sequence[SegmentRow]
    now: datetime
    has_table: bool = False

    @cached_property
    def rows(self) -> list[SegmentRow]:
        filled = [row for row in self.all_rows if row.segments]
        return sorted(filled, key=lambda row: row.newest[0].since, reverse=True)[:ROWS]

    @cached_property
    def start(self) -> datetime:
        return min(segment.since for row in self.rows for segment in row.newest)

    @property
    def is_cut(self) -> bool:
        return len(self.all_rows) > ROWS or any(len(row.segments) > SEGMENTS for row in self.rows)

    @property
    def ends(self) -> list[str]:
        """The labels of the scale: its start, its middle and now."""
        start = self.start
        middle = start + (self.now - start) / 2
        return [
            *map(_day if self.now - start > timedelta(days=2) else _minute, (start, middle)),
            _("now"),
        ]

    @property
    def drawn(self) -> list[tuple[str, SafeString]]:
        """(title, SVG) of each row."""
        return [(row.title, self._svg(row)) for row in self.rows]

    def _svg(self, row: SegmentRow) -> SafeString:
        return format_html(
            '<svg class="cad-time" height="34" role="group" aria-label="{}">'
            '<rect class="t-free" y="8" width="100%" height="26"/>{}{}</svg>',
            _("%(object)s over time") % {"object": row.title},
            format_html_join("", "{}", ((self._segment(segment),) for segment in row.newest)),
            format_html_join(
                "",
                '<circle class="t-mark" cx="{}%" cy="4" r="3"><title>{}</title></circle>',
                ((self._x(moment), text) for moment, text in _marks(row.newest)),
            ),
        )

    def _x(self, moment: datetime) -> float:
        whole = (self.now - self.start).total_seconds() or 1
        return round(min(max(100 * (moment - self.start).total_seconds() / whole, 0), 100), 2)

    def _segment(self, segment: Segment) -> SafeString:
        """Return a segment, a link if it has a URL, and its name, which ends where the segment does."""
        x = self._x(segment.since)
        width = max(round(self._x(segment.until or self.now) - x, 2), _NARROWEST)
        x, text = min(x, 100 - width), _title(segment)
        drawing = format_html(
            '<rect class="t-{}" x="{}%" y="8" width="{}%" height="26"><title>{}</title></rect>',
            segment.state,
            x,
            width,
            text,
        )
        if segment.url:
            drawing = format_html('<a href="{}" aria-label="{}">{}</a>', segment.url, text, drawing)
        return format_html(
            '{}<svg x="{}%" y="8" width="{}%" height="26"><text class="t-on-{}" x="6" y="18">{}</text></svg>',
            drawing,
            x,
            width,
            segment.state,
            segment.label if width >= _NAMED else "",
        )


def of_tenures(
    request: HttpRequest, tenures: Iterable[Tenure], *, has_table: bool = True
) -> TimeBar | None:
    """Return the bar of the tenures, a row for each block; None without any."""
    by_block: dict[str, list[Segment]] = {}
    permitted = history_search.is_permitted(request.user)
    for tenure in tenures:
        block = display.plain_cidr(tenure.block)
        query = {"q": block, "at": tenure.since.isoformat()}
        segment = Segment(
            f"{tenure.holder['kind']} {tenure.holder['id']}",
            tenure.state,
            tenure.since,
            tenure.until,
            reverse("admin:history", query=query) if permitted else "",
        )
        by_block.setdefault(f"{block} · {tenure.cluster}/{tenure.pool}", []).append(segment)
    rows = [SegmentRow(title, segments) for title, segments in by_block.items()]
    return TimeBar(rows, timezone.now(), has_table) if rows else None


def of_pool(request: HttpRequest, pool: Pool) -> TimeBar | None:
    """Return the bar of who holds most of a pool, a row for each holder with the number of its blocks; None for nobody."""
    now = timezone.now()
    permitted = history_search.is_permitted(request.user)
    rows = []
    for (kind, name), tenures in holders.find_largest(pool).items():
        url = reverse("admin:history", query={"q": name}) if permitted else ""
        rows.append(SegmentRow(f"{kind} {name}", list(_count_blocks(tenures, now, url))))
    return TimeBar(rows, now) if rows else None


def _count_blocks(tenures: Iterable[Tenure], now: datetime, url: str) -> Iterator[Segment]:
    """Yield the times in which a holder had equally many blocks, or only blocks in cooldown."""
    changes: dict[datetime, Counter[str]] = defaultdict(Counter)
    for tenure in tenures:
        changes[tenure.since][tenure.state] += 1
        if tenure.until is not None:
            changes[tenure.until][tenure.state] -= 1
    counts: Counter[str] = Counter()
    steps: list[tuple[datetime, str, int]] = []
    for moment in sorted(moment for moment in changes if moment <= now):
        counts.update(changes[moment])
        state = "held" if counts["held"] else "cooling"
        if not steps or steps[-1][1:] != (state, counts[state]):
            steps.append((moment, state, counts[state]))
    ends = [*(moment for moment, _state, _number in steps[1:]), None]
    for (since, state, number), until in zip(steps, ends, strict=True):
        if number:
            label = ngettext("%(number)s block", "%(number)s blocks", number)
            label %= {"number": display.digits(number)}
            at = f"{url}&{urlencode({'at': since.isoformat()})}" if url else ""
            yield Segment(label, state, since, until, at)


def _marks(segments: Sequence[Segment]) -> Iterator[tuple[datetime, str]]:
    """Yield the moments at which something changed, with what happened."""
    starts = {segment.since for segment in segments}
    for segment in segments:
        yield segment.since, f"{_minute(segment.since)}: {_describe(segment)}"
        if segment.until and segment.until <= timezone.now() and segment.until not in starts:
            yield segment.until, f"{_minute(segment.until)}: {display.state_label('free')}"


def _describe(segment: Segment) -> str:
    return f"{segment.label}, {display.state_label(segment.state)}"


def _title(segment: Segment) -> str:
    names = {
        "what": _describe(segment),
        "since": _minute(segment.since),
        "until": _minute(segment.until) if segment.until else _("now"),
    }
    return _("%(what)s: %(since)s to %(until)s") % names


def _minute(moment: datetime) -> str:
    return formats.date_format(timezone.localtime(moment), "Y-m-d H:i")  # no text: a format


def _day(moment: datetime) -> str:
    return formats.date_format(timezone.localtime(moment), "Y-m-d")  # no text: a format
