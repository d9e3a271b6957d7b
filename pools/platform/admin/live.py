"""Parts of pages that renew themselves (`static/cadastre/live.js`).

The button *Live* in the head asks for the page again every five seconds. The answer has the live parts only, and
none at all (304) while they are those that the browser has.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.cache import get_conditional_response, set_response_etag
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

BUTTON = "cad-live"  # the id of the button
_PARTS = "live_parts"  # the attribute of a request


def is_asked(request: HttpRequest) -> bool:
    """Return True if a page asks for its live parts."""
    return request.headers.get("HX-Trigger") == BUTTON


def part(request: HttpRequest, name: str, content: str, *, reload: bool = False) -> SafeString:
    """Return a live part of a page; `name` is unique on the page.

    With `reload` the page is loaded anew once the part is gone.
    """
    html = format_html(
        '<div id="live-{}" data-live="{}">{}</div>', name, "reload" * reload, content
    )
    if is_asked(request):
        swap = '<div id="live-{}" hx-swap-oob="innerHTML">{}</div>'
        request.__dict__.setdefault(_PARTS, []).append((format_html(swap, name, content),))
    return html


class LiveMiddleware:
    """Answer a page that asks for its live parts with these alone, or with 304."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if response.status_code != 200 or not is_asked(request):
            return response
        storage: Any = messages.get_messages(request)
        storage.used = False  # the page that follows an action shows its messages
        answer = HttpResponse(format_html_join("", "{}", getattr(request, _PARTS, [])))
        set_response_etag(answer)  # none of an empty answer: some users have no live part
        return get_conditional_response(request, answer.get("ETag"), response=answer) or answer


def menu_view(request: HttpRequest) -> HttpResponse:
    """Return the live parts of the frame, for a page that has no others."""
    return TemplateResponse(request, "cadastre/live.html", admin.site.each_context(request))
