"""Error pages: for signed-in users with the frame of the admin site, else without it."""

import http

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template import loader
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.platform.admin import pages

_TEXTS = {
    400: _("The request is not valid."),
    403: _("You lack the permission for this. An administrator can grant it to you."),
    404: _("This page or object does not exist, or you have no permission to view it."),
    500: _("An internal error occurred. Your changes were not saved. The log has the details."),
}


def answer(request: HttpRequest, status: int, text: str = "") -> HttpResponseBase:
    """Return the error page of a status; `text` describes the error further."""
    if not _has_frame(request):
        return plain(status, text)
    title, text = _words(status, text)
    return pages.page(request, "error.html", title=title, status=status, text=text)


def _has_frame(request: HttpRequest) -> bool:
    """Return True for pages of the admin site with a signed-in user.

    On other paths the content security policy forbids the scripts and styles of the frame.
    """
    if not request.path_info.startswith(reverse("admin:index")):
        return False
    return hasattr(request, "user") and admin.site.has_permission(request)


def plain(
    status: int, text: str = "", *, title: str = "", link: tuple[str, StrOrPromise] | None = None
) -> HttpResponse:
    """Return an error page without the frame of the admin site, which uses the database.

    `link` is the URL and the text of a further way on.
    """
    heading, text = _words(status, text)
    context = {"title": title or heading, "text": text, "link": link}
    page = loader.render_to_string("cadastre/error_plain.html", context)
    return HttpResponse(page, status=status)


def _words(status: int, text: str) -> tuple[str, str]:
    title = http.HTTPStatus(status).phrase.capitalize()
    return title, pages.sentence(text or str(_TEXTS[status]))
