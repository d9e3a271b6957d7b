"""What a browser gets instead of a page: for staff inside the admin's frame, else plain."""

from __future__ import annotations

import http

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template import loader
from django.urls import reverse

from pools.platform.admin import pages

_TEXTS = {
    400: "The request could not be understood.",
    403: "You lack the permission for this. An administrator can give it to you.",
    404: "There is no such page or object, or it is not yours to see.",
    500: "Something went wrong in Cadastre. What you did was not saved; the log says why.",
}


def answer(request: HttpRequest, status: int, text: str = "") -> HttpResponseBase:
    """`text` is what is known besides the status."""
    if not _has_frame(request):
        return plain(status, text)
    title, text = _words(status, text)
    return pages.page(request, "error.html", title=title, status=status, text=text)


def _has_frame(request: HttpRequest) -> bool:
    """Elsewhere the policy forbids what the frame does; without a session nobody is known."""
    if not request.path_info.startswith(reverse("admin:index")):
        return False
    return hasattr(request, "user") and admin.site.has_permission(request)


def plain(status: int, text: str = "", *, title: str = "") -> HttpResponse:
    """Asks nothing of the database, as the site's frame does."""
    heading, text = _words(status, text)
    context = {"title": title or heading, "text": text}
    page = loader.render_to_string("cadastre/error_plain.html", context)
    return HttpResponse(page, status=status)


def _words(status: int, text: str) -> tuple[str, str]:
    title = http.HTTPStatus(status).phrase.capitalize()
    return title, pages.sentence(text or _TEXTS[status])
