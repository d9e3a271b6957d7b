"""Request ids, problem documents instead of HTML pages below /api/, its language, the admin's methods, compression of pages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.utils import translation

from ipam_site.http import problems

HEADER = "X-Request-Id"
ADMIN = "/admin/"
_PAGE_METHODS = ("GET", "HEAD", "POST")
# Request ids of clients are kept for tracing if they are safe in logs and pages.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")


class RequestIdMiddleware:
    """Set `request.META[problems.REQUEST_ID]` for views, events and errors, and X-Request-Id.

    It runs before Django's own middlewares, so that their errors and redirects are problem
    documents below /api/, too.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        client_id = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = client_id if _SAFE.fullmatch(client_id) else uuid.uuid4().hex
        request.META[problems.REQUEST_ID] = request_id
        response = self._get_response(request)
        if request.path_info.startswith(problems.API):
            response = problems.replace_page(request, response)
        response.headers[HEADER] = request_id
        return response


class APILanguageMiddleware:
    """Answer below /api/ in English: programs read it, and LANGUAGE_CODE is for the pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(problems.API):
            return self._get_response(request)
        with translation.override("en"):
            return self._get_response(request)


class AdminMethodsMiddleware:
    """Refuse other methods than GET, HEAD and POST: Django's admin would treat them like GET."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(ADMIN) and request.method not in _PAGE_METHODS:
            return HttpResponseNotAllowed(_PAGE_METHODS)
        return self._get_response(request)


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
