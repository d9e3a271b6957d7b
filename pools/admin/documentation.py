"""The documentation in the product: chapters and runbooks, as they are shipped with it."""

from __future__ import annotations

import posixpath
import re

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from pools.platform.admin import menu, pages
from pools.platform.conditions import registry

START = "README"
_NAME = re.compile(r"(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+")
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^(#{1,4}) (.*)$", re.MULTILINE)


def chapter_view(request: HttpRequest, chapter: str) -> HttpResponse:
    """Show a chapter of the documentation, such as `reference/alerts`."""
    text = _read(chapter)
    title, text = text.partition("\n")[::2]
    return pages.page(
        request,
        "documentation.html",
        title=title.lstrip("# "),
        text=_html(text.strip(), posixpath.dirname(chapter)),
    )


def runbook_view(request: HttpRequest, runbook: str) -> HttpResponse:
    """Show a runbook: what a condition means, and what to do about it."""
    pages.require(request, "pools.view_alert")
    if runbook not in registry.runbooks():
        raise Http404(gettext("This runbook does not exist."))
    text = _read(f"runbooks/{runbook}").partition("\n")[2]
    return pages.page(
        request,
        "documentation.html",
        title=gettext("Runbook %(runbook)s") % {"runbook": runbook},
        text=_html(text.strip(), "runbooks"),
        is_runbook=True,
    )


def chapter_url(request: HttpRequest) -> str:
    """Return the URL of the chapter about a page; that of the start if there is none."""
    return reverse("admin:documentation", args=[menu.chapter(request.path) or START])


def _read(name: str) -> str:
    path = settings.BASE_DIR / "docs" / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Http404(gettext("This page of the documentation does not exist."))
    return str(path.read_text())


def _html(text: str, folder: str) -> SafeString:
    """Return Markdown as text with headings and links; it is readable as it is written."""
    parts: list[str] = []
    position = 0
    for match in _LINK.finditer(text):
        parts += [
            conditional_escape(text[position : match.start()]),
            _link(match[1], match[2], folder),
        ]
        position = match.end()
    parts.append(conditional_escape(text[position:]))
    html = _HEADING.sub(r"<strong>\2</strong>", "".join(parts))
    return mark_safe(html)  # noqa: S308 - every part is escaped above


def _link(label: str, target: str, folder: str) -> str:
    """Return a link to another chapter or site; the label alone if its target is not shipped."""
    if target.startswith("https://"):
        return format_html('<a class="cad-link" href="{}">{}</a>', target, label)
    path, _hash, _anchor = target.partition("#")
    name = posixpath.normpath(posixpath.join(folder, path)).removesuffix(".md")
    if not path.endswith(".md") or not _NAME.fullmatch(name):
        return conditional_escape(label)
    url = reverse("admin:documentation", args=[name])
    return format_html('<a class="cad-link" href="{}">{}</a>', url, label)
