"""Whom attempts to sign in are counted for, and the page that says that there were too many."""

from __future__ import annotations

import math

from allauth.core.exceptions import ImmediateHttpResponse
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from ipam_site.http import error_pages
from pools.platform import login_limits
from pools.platform.rest import authentication


def count(request: HttpRequest, name: str) -> login_limits.Attempt:
    """Count an attempt of an account; above the limit the answer of the request is a page with 429."""
    attempt = login_limits.count_attempt(name, authentication.client_address(request))
    if attempt.retry_after:
        minutes = math.ceil(attempt.retry_after / 60)
        text = ngettext(
            "Too many sign-ins have failed. Try again in %(minutes)d minute.",
            "Too many sign-ins have failed. Try again in %(minutes)d minutes.",
            minutes,
        )
        page = error_pages.plain(429, text % {"minutes": minutes}, title=gettext("Sign-in refused"))
        page.headers["Retry-After"] = str(attempt.retry_after)
        raise ImmediateHttpResponse(page)
    return attempt
