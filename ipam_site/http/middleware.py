"""What every answer gets, whatever happens below: a request id, and below /api/ no page.

And which methods the admin knows.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed

from ipam_site.http import problems

HEADER = "X-Request-Id"
ADMIN = "/admin/"
_OF_PAGES = ("GET", "HEAD", "POST")
# Ids of other programs are taken over for tracing, as long as they cannot harm a log or a page.
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")


class RequestIdMiddleware:
    """`request.META[problems.REQUEST_ID]` for views, events and errors; echoed in X-Request-Id.

    Stands outside of Django's own middlewares, so that their refusals (host name, redirects,
    errors) are problem documents below /api/ too.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        brought = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = brought if _SANE.fullmatch(brought) else uuid.uuid4().hex
        request.META[problems.REQUEST_ID] = request_id
        response = self._get_response(request)
        if request.path_info.startswith(problems.API):
            response = problems.instead_of_page(request, response)
        response.headers[HEADER] = request_id
        return response


class AdminMethodsMiddleware:
    """Pages are read and posted to; Django's own answer other methods as if they were one of these."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(ADMIN) and request.method not in _OF_PAGES:
            return HttpResponseNotAllowed(_OF_PAGES)
        return self._get_response(request)
