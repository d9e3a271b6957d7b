"""Functions that all pages of the admin use: author, response, permissions, errors beside fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse

from pools.core import errors
from pools.platform import events

FieldOf = Callable[[errors.FieldProblem], str | None]  # the form field of a problem; None: no field


def author(request: HttpRequest, reason: str = "") -> events.Author:
    """Return the user of a request as the author of a change made in the admin."""
    return events.Author(
        actor=request.user.get_username(),
        source="admin",
        request_id=getattr(request, "request_id", ""),
        reason=reason,
    )


def page(
    request: HttpRequest, template: str, *, title: str, status: int = 200, **context: Any
) -> TemplateResponse:
    """Return a page of the product inside the frame of the admin site."""
    request.current_app = admin.site.name
    frame = admin.site.each_context(request)
    return TemplateResponse(
        request, f"cadastre/{template}", {**frame, "title": title, **context}, status=status
    )


def confirmation(
    request: HttpRequest,
    row: Any,
    *,
    title: str,
    effects: Sequence[str],
    button: str,
    action: str = "",
    back: str = "",
) -> TemplateResponse:
    """Return the page that asks before a dangerous action on a row.

    With `action` it posts this value to the page of the row, otherwise to itself. `back` is the page that
    *Cancel* leads to, by default that of the row.
    """
    context = {"row": row, "effects": effects, "button": button, "action": action, "back": back}
    return page(request, "confirm.html", title=title, opts=row._meta, original=row, **context)


def require(request: HttpRequest, *permissions: str) -> None:
    """Raise PermissionDenied (403) unless the user has all of the permissions."""
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def problems(error: errors.IpamError) -> tuple[errors.FieldProblem, ...]:
    """Return the problems of an error, at least one."""
    return error.problems or (errors.FieldProblem("", error.code, error.message),)


def add_errors(form: forms.Form, error: errors.IpamError, field_of: FieldOf | None = None) -> None:
    """Add the problems of an error to a form, each at its field; `field_of` maps problems to fields."""
    for problem in problems(error):
        field = field_of(problem) if field_of else problem.field
        form.add_error(field if field in form.fields else None, validation_error(problem))


def validation_error(problem: errors.FieldProblem) -> forms.ValidationError:
    """Return a problem as a form error, with its code."""
    return forms.ValidationError(sentence(problem.message), code=problem.code)


def sentence(message: str) -> str:
    """Return a message with a capital and a full stop; messages of problems are parts of sentences."""
    text = capitalize(message)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def capitalize(text: str) -> str:
    """Capitalize a text unless its first word is a path, an address or a name with its own spelling."""
    first_word = text.split(" ", 1)[0].rstrip(",.;")
    return text[:1].upper() + text[1:] if first_word.isalpha() else text


@contextmanager
def errors_as_messages(request: HttpRequest) -> Iterator[None]:
    """Show an error of the block as a message on the next page."""
    try:
        yield
    except errors.IpamError as error:
        for problem in problems(error):
            messages.error(request, sentence(problem.message))


@contextmanager
def errors_at_field(form: forms.Form, field: str) -> Iterator[None]:
    """Add an error of the block to one field of a form."""
    try:
        yield
    except errors.IpamError as error:
        for problem in problems(error):
            form.add_error(field, validation_error(problem))


def in_admin(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Restrict a view to staff who are logged in."""
    return admin.site.admin_view(view)
