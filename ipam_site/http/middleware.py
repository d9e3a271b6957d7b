"""Request ids, problem documents instead of HTML pages below /api/, its language, the admin's methods and time zone,
compression of pages, and the headers of responses in addition to those of Django's SecurityMiddleware.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from csp import middleware as csp
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.utils import timezone, translation

from ipam_site.http import problems
from pools.models import time_zones

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Request-Id"
ADMIN = "/admin/"
TIME_ZONE_COOKIE = "time_zone"
_PAGE_METHODS = ("GET", "HEAD", "POST")
# Request ids of clients are kept for tracing if they are safe in logs and pages.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")


class Middleware:
    """Answers a request in `__call__`, with `get_response` or without it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response


class RequestIdMiddleware(Middleware):
    """Set `request.META[problems.REQUEST_ID]` for views, events and errors, and X-Request-Id.

    It runs before Django's own middlewares, so that their errors and redirects are problem
    documents below /api/, too.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        client_id = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = client_id if _SAFE.fullmatch(client_id) else uuid.uuid4().hex
        request.META[problems.REQUEST_ID] = request_id
        response = self.get_response(request)
        if request.path_info.startswith(problems.API):
            response = problems.replace_page(request, response)
        response.headers[HEADER] = request_id
        return response


class APILanguageMiddleware(Middleware):
    """Answer below /api/ in English: programs read it, and LANGUAGE_CODE is for the pages."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(problems.API):
            return self.get_response(request)
        with translation.override("en"):
            return self.get_response(request)


class AdminMethodsMiddleware(Middleware):
    """Refuse other methods than GET, HEAD and POST: Django's admin would treat them like GET."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(ADMIN) and request.method not in _PAGE_METHODS:
            return HttpResponseNotAllowed(_PAGE_METHODS)
        return self.get_response(request)


class TimeZoneMiddleware(Middleware):
    """Activate the time zone of pages: the one that the user has chosen, else that of the browser, else UTC.

    `frame.js` stores the browser's in a cookie. REST, exports and metrics are in UTC whatever is active.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(ADMIN):
            return self.get_response(request)
        chosen = ""
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            chosen = getattr(getattr(request.user, "preferences", None), "time_zone", "")
        name = chosen or request.COOKIES.get(TIME_ZONE_COOKIE, "")
        with timezone.override(ZoneInfo(name) if name in time_zones() else None):
            return self.get_response(request)


class PageCompressionMiddleware(GZipMiddleware):
    """Compress pages, which are a tenth of their size then.

    REST answers are sent as they are: to compress a page of a list takes a tenth of its request.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


_DATA = ("application/json", "application/problem+json")
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


class HeadersMiddleware(csp.CSPMiddleware):
    """Set Content-Security-Policy by path, Permissions-Policy, and no caching of private pages."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault(
            "Permissions-Policy", "camera=(), geolocation=(), microphone=()"
        )
        response.headers.setdefault("Cache-Control", "private, no-store")
        # The API browser sets a weaker policy, for sign-in in a window of another site.
        response.headers["Cross-Origin-Opener-Policy"] = settings.SECURE_CROSS_ORIGIN_OPENER_POLICY
        if response.headers.get("Content-Type", "").startswith(_DATA):
            # Data loads no resources: a constant policy is enough.
            response.headers.setdefault("Content-Security-Policy", _NOTHING)
            return response
        return super().process_response(request, response)

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> csp.PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and parts.config is None:
            parts.config = _policy(request.path_info)
        return parts


def _policy(path: str) -> dict[str, list[str]] | None:
    by_prefix: dict[str, dict[str, list[str]]] = settings.IPAM_CSP_BY_PREFIX
    matching = [prefix for prefix in by_prefix if path.startswith(prefix)]
    return by_prefix[max(matching, key=len)] if matching else None
