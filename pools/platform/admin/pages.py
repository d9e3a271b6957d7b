"""What every page of the admin does: say who asks, answer with a page, put errors beside fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse

from pools.core import errors
from pools.platform import events

Place = Callable[[errors.FieldProblem], str | None]


def author(request: HttpRequest, reason: str = "") -> events.Author:
    """Who asks through the admin."""
    return events.Author(
        actor=request.user.get_username(),
        source="admin",
        request_id=getattr(request, "request_id", ""),
        reason=reason,
    )


def page(
    request: HttpRequest, template: str, *, title: str, status: int = 200, **context: Any
) -> TemplateResponse:
    """One of our own pages, inside the site's frame."""
    request.current_app = admin.site.name
    frame = admin.site.each_context(request)
    return TemplateResponse(
        request, f"cadastre/{template}", {**frame, "title": title, **context}, status=status
    )


def require(request: HttpRequest, *permissions: str) -> None:
    """PermissionDenied (403) without all of them."""
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def problems(error: errors.IpamError) -> tuple[errors.FieldProblem, ...]:
    """At least one problem of any refusal."""
    return error.problems or (errors.FieldProblem("", error.code, error.message),)


def put(form: forms.Form, error: errors.IpamError, place: Place | None = None) -> None:
    """Show a refusal in the form, beside the field that `place` names (None: above all)."""
    for problem in problems(error):
        named = place(problem) if place else problem.field
        form.add_error(named if named in form.fields else None, shown(problem))


def shown(problem: errors.FieldProblem) -> forms.ValidationError:
    """A problem as a form shows it, with its code."""
    return forms.ValidationError(sentence(problem.message), code=problem.code)


def sentence(message: str) -> str:
    """With a capital and a full stop: problems are written as parts of sentences."""
    text = begun(message)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def begun(text: str) -> str:
    """With a capital, unless it begins with a path, an address or a name that has its own letters."""
    first = text.split(" ", 1)[0].rstrip(",.;")
    return text[:1].upper() + text[1:] if first.isalpha() else text


@contextmanager
def told(request: HttpRequest) -> Iterator[None]:
    """A refusal becomes a message on the next page."""
    try:
        yield
    except errors.IpamError as error:
        for problem in problems(error):
            messages.error(request, sentence(problem.message))


@contextmanager
def beside_field(form: forms.Form, field: str) -> Iterator[None]:
    """A refusal becomes an error of one field."""
    try:
        yield
    except errors.IpamError as error:
        for problem in problems(error):
            form.add_error(field, shown(problem))


def in_admin(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Behind the login, for staff only."""
    return admin.site.admin_view(view)
