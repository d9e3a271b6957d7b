"""The documentation in the product: chapters and runbooks, as they are shipped with it."""

import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pools.platform.admin import menu, pages
from pools.platform.conditions import registry

START = "README"
_NAME = re.compile(r"(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


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
    return reverse("admin:documentation", args=[menu.chapter_of_page(request.path) or START])


def _read(name: str) -> str:
    path = settings.BASE_DIR / "docs" / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Http404(gettext("This page of the documentation does not exist."))
    return str(path.read_text())


def _html(text: str, folder: str) -> SafeString:
    """Return Markdown as HTML, in which links to chapters of the same documentation lead to their pages."""
    tokens = _MARKDOWN.parse(text)
    for heading, content in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            # The name that Markdown's readers give a heading.
            heading.attrSet("id", re.sub(r"[^\w -]", "", content.content.lower()).replace(" ", "-"))
    for token in tokens:
        if token.children:
            token.children = list(_shown(token.children, folder))
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return mark_safe(html)  # noqa: S308 - HTML in the text is escaped


def _shown(tokens: Iterable[Token], folder: str) -> Iterator[Token]:
    """Yield tokens with the URLs of pages; without pictures and links to files, which are not shipped."""
    is_link = True
    for token in tokens:
        if token.type == "link_open":
            url = _url(str(token.attrGet("href")), folder)
            is_link = bool(url)
            token.attrs = {"href": url, "class": "cad-link"}
        if token.type == "image" or (token.type in {"link_open", "link_close"} and not is_link):
            continue
        yield token


def _url(target: str, folder: str) -> str:
    """Return the URL of a link: a site, a heading or a chapter; "" for anything else."""
    path, _, heading = target.partition("#")
    if target.startswith(("https://", "#")):
        return target
    name = posixpath.normpath(posixpath.join(folder, path)).removesuffix(".md")
    if not path.endswith(".md") or not _NAME.fullmatch(name):
        return ""
    url = reverse("admin:documentation", args=[name])
    return f"{url}#{heading}" if heading else url
