"""Whom attempts to sign in are counted for, and what says that there were too many."""

from __future__ import annotations

import math

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext

from pools.platform.rest import authentication


def address(request: HttpRequest) -> str:
    """Return the address that attempts of a request are counted for."""
    return authentication.client_address(request)


def too_many(retry_after: int) -> ValidationError:
    """Return the error of an attempt above the limit; `retry_after` is in seconds."""
    minutes = math.ceil(retry_after / 60)
    message = ngettext(
        "Too many sign-ins have failed. Try again in %(minutes)d minute.",
        "Too many sign-ins have failed. Try again in %(minutes)d minutes.",
        minutes,
    )
    return ValidationError(message % {"minutes": minutes}, code="too_many_attempts")
