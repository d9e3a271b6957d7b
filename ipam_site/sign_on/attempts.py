"""Whom attempts to sign in are counted for, and what says that there were too many."""

from __future__ import annotations

import math

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext


def address(request: HttpRequest) -> str:
    """Return the client's address; behind a proxy it is the last one of X-Forwarded-For."""
    last = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    peer = str(request.META.get("REMOTE_ADDR", "")).removeprefix(
        "::ffff:"
    )  # IPv4 by an IPv6 socket
    return last if settings.IPAM_BEHIND_PROXY and last else peer


def too_many(retry_after: int) -> ValidationError:
    """Return the error of an attempt above the limit; `retry_after` is in seconds."""
    minutes = math.ceil(retry_after / 60)
    message = ngettext(
        "Too many sign-ins have failed. Try again in %(minutes)d minute.",
        "Too many sign-ins have failed. Try again in %(minutes)d minutes.",
        minutes,
    )
    return ValidationError(message % {"minutes": minutes}, code="too_many_attempts")
