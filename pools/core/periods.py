"""Points in time and periods as people write them: `2026-11-19 14:02`, `19.11.2026`, `2026-11`, `yesterday`, `last week`, `7 d`."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from pools.core import errors

AHEAD = timedelta(seconds=30)  # clocks differ
_YEARS = (2000, 2200)
_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_MOMENT = timedelta(microseconds=1)
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": _DAY,
    "w": _WEEK,
}
_LAST = re.compile(
    r"(?P<number>\d{1,5})\s*(?P<unit>m|h|d|w)(?:in(?:ute)?s?|ours?|ays?|eeks?)?(?P<ago>\s+ago)?"
)
_WITH_POINTS = re.compile(r"^(?:(?P<day>\d{1,2})\.\s?)?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})")
_DATE = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2})(?:[Tt\s]\s*(\S.*))?)?")
_EXAMPLES = (
    "write a time such as 2026-11-19 14:02, a day (2026-11-19, 19.11.2026), a month (2026-11),"
    " yesterday, last week, or 7 d"
)


@dataclass(frozen=True)
class Period:
    """The time from `start` to before `end`; both are the same for a point in time."""

    start: datetime
    end: datetime

    @property
    def is_moment(self) -> bool:
        return self.start == self.end

    @property
    def last_moment(self) -> datetime:
        """The point in time, or the last one of the period."""
        return self.end if self.is_moment else self.end - _MOMENT


def parse_period(text: str, now: datetime, field: str = "") -> Period:
    """Return the point in time, day, month or span that a text means; it ends at `now` at the latest.

    `now` is in the time zone of texts that have none. Raises InvalidInput `time`, `future_time`.
    """
    words = " ".join(text.lower().split())
    try:
        period = _last(words, now) or _parse_name(words, now) or _written(words, now)
    except (ValueError, OverflowError):
        period = None
    if period is None or not _YEARS[0] <= period.start.year < _YEARS[1]:
        raise errors.InvalidInput.for_field(field, "time", _EXAMPLES, text)
    if period.start > now + AHEAD:
        message = "the time must not be in the future"
        raise errors.InvalidInput.for_field(field, "future_time", message, text)
    return period if period.is_moment else Period(period.start, min(period.end, now))


def _last(words: str, now: datetime) -> Period | None:
    """Return the span of `7 d`, which ends now, or the point in time of `7 d ago`."""
    match = _LAST.fullmatch(words)
    if match is None:
        return None
    start = now - int(match["number"]) * _UNITS[match["unit"]]
    return Period(start, start if match["ago"] else now)


def _parse_name(words: str, now: datetime) -> Period | None:
    today = now.date()
    monday, first = today - today.weekday() * _DAY, today.replace(day=1)
    days = {
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + _WEEK),
        "last week": (monday - _WEEK, monday),
        "this month": (first, _next_month(first)),
        "last month": ((first - _DAY).replace(day=1), first),
    }
    if words == "now":
        return Period(now, now)
    return _period_of_days(*days[words], now) if words in days else None


def _written(words: str, now: datetime) -> Period | None:
    """Return the period of a date, with or without its day, or the point in time of a date and a time."""
    match = _DATE.fullmatch(_WITH_POINTS.sub(_with_hyphens, words, count=1))
    if match is None:
        return None
    year, month, day, clock = match.groups()
    first = date(int(year), int(month), int(day or 1))
    if clock:
        # An unescaped "+" of a query string arrives as a blank.
        moment = datetime.combine(first, time.fromisoformat(clock.upper().replace(" ", "+")))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
        return Period(moment, moment)
    return _period_of_days(first, first + _DAY if day else _next_month(first), now)


def _with_hyphens(match: re.Match[str]) -> str:
    return "-".join(filter(None, (match["year"], match["month"], match["day"])))


def _next_month(first: date) -> date:
    return (first + 31 * _DAY).replace(day=1)


def _period_of_days(first: date, after: date, now: datetime) -> Period:
    start, end = (datetime.combine(day, time.min, now.tzinfo) for day in (first, after))
    return Period(start, end)
