"""What a receiver of webhooks answers: accepted, refused, or unavailable.

A refusal (4xx) is about the message: another one may be accepted. Whatever else is not 2xx is about the receiver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email import utils

LONGEST_PAUSE = 3600  # seconds between two tries, and the most of a Retry-After
TOO_LARGE = 413
_GONE = 410
_UNAVAILABLE = {408, _GONE, 425, 429}  # statuses of 4xx that are not about the message
_BUSY = {429, 503}
_REASONS = {_GONE: "the receiver says that it is gone for good"}


@dataclass(frozen=True)
class Answer:
    """`status` is None without an answer; `error` is "" if the message was accepted; `wait` in seconds."""

    status: int | None
    error: str
    wait: float = 0  # at least so long until the next try

    @property
    def accepted(self) -> bool:
        return not self.error

    @property
    def refused(self) -> bool:
        """True if the receiver refuses this message, and may accept others."""
        status = self.status or 0
        return 400 <= status < 500 and status not in _UNAVAILABLE


def answer(status: int, retry_after: str, now: datetime) -> Answer:
    """Return the answer that a status and a header Retry-After of a response mean."""
    if 200 <= status < 300:
        return Answer(status, "")
    redirect = "a redirect, which is not followed" if 300 <= status < 400 else "not accepted"
    error = f"HTTP {status}: {_REASONS.get(status, redirect)}"
    wait = parse_retry_after(retry_after, now) if status in _BUSY else 0
    return Answer(status, error, LONGEST_PAUSE if status == _GONE else wait)


def parse_retry_after(text: str, now: datetime) -> float:
    """Return the seconds of a header Retry-After (RFC 9110): a number or a date; 0 if it is neither."""
    text = text.strip()
    if re.fullmatch("[0-9]+", text):
        return LONGEST_PAUSE if len(text) > 9 else min(int(text), LONGEST_PAUSE)
    try:
        date = utils.parsedate_to_datetime(text)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, TypeError, OverflowError):
        return 0
    return min(max(seconds.total_seconds(), 0), LONGEST_PAUSE)
