"""What all pages of the admin use: author, response, permissions, errors beside fields."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext

from pools.core import errors
from pools.platform import events
from pools.platform.admin import display, forms as fields

# The form field of a problem, None for no field; or the field of all problems.
FieldOf = Callable[[errors.FieldProblem], str | None] | str


def author(request: HttpRequest, reason: str = "") -> events.Author:
    """Return the user of a request as the author of a change made in the admin."""
    return events.Author(
        actor=request.user.get_username(),
        source="admin",
        request_id=getattr(request, "request_id", ""),
        reason=reason,
    )


def page(
    request: HttpRequest,
    template: str,
    about: type[Model] | Model | None = None,
    *,
    title: str,
    status: int = 200,
    **context: Any,
) -> TemplateResponse:
    """Return a page of the product inside the frame of the admin site.

    `about` is the model that the page belongs to, or a row of it. As in Django's DetailView the template has
    the row under the name of its model; also as `row`, and as `original` for Django's own templates. The tag
    `tab` fills `object_tabs`.
    """
    request.current_app = admin.site.name
    frame = admin.site.each_context(request)
    return TemplateResponse(
        request,
        f"cadastre/{template}",
        {**frame, "title": title, "object_tabs": [], **_subject(about), **context},
        status=status,
    )


def url_with(parameters: QueryDict, **changes: object) -> str:
    """Return the relative URL of this page with other values of some parameters."""
    query = parameters.copy()
    for name, value in changes.items():
        query[name] = str(value)
    return f"?{query.urlencode()}"


def post_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer other methods than POST with 405 and a link to the row: a sign-in leads to the address of a button."""

    @functools.wraps(view)
    def check(request: HttpRequest, row: Model) -> HttpResponse:
        if request.method == "POST":
            return view(request, row)
        title, text = gettext("Nothing was done"), gettext("Use the button on this page:")
        answer = page(request, "error.html", row, title=title, status=405, text=text)
        answer.headers["Allow"] = "POST"
        return answer

    return check


def _subject(about: type[Model] | Model | None) -> dict[str, Any]:
    if about is None:
        return {}
    if isinstance(about, type):
        return {"opts": about._meta}
    name = about._meta.model_name or ""
    original, table = about, about._meta.concrete_model
    if about._meta.proxy and table is not None:  # its list is that of its table
        original = copy(about)
        original.__class__ = table
    # Under the name `user` templates have whoever reads the page.
    named = {} if name == "user" else {name: about}
    return {"opts": original._meta, "original": original, "row": about, **named}


def done(request: HttpRequest, message: str, to: Model | str) -> HttpResponseRedirect:
    """Return to the page of a row, a URL or the name of one, with a message that says what was done."""
    messages.success(request, message)
    return redirect(display.url_of(to) if isinstance(to, Model) else to)


def confirmation(
    request: HttpRequest,
    row: Any,
    *,
    title: str,
    button: str,
    effects: Sequence[str] = (),
    action: str = "",
    back: str = "",
    form: forms.Form | None = None,
    values: Sequence[tuple[str, object]] | None = None,
    **context: Any,
) -> TemplateResponse:
    """Return the page that asks before a dangerous action on a row, or on rows of a model.

    With `action` it posts this value to the page of the row, otherwise to itself. It posts `values`, too: by
    default all values of a request that was posted, so that the view knows by `is_confirmed` that the user was
    asked. `form` has what the user may say about it, and `details` is a template that shows more than `effects`.
    Without a button the page says why the action is impossible. `back` is the page that *Cancel* leads to, by
    default that of the row.
    """
    context |= {"effects": effects, "button": button, "action": action, "form": form}
    context["back"] = back or display.url_of(row)
    context["posted_values"] = posted_values(request) if values is None else values
    return page(request, "confirm.html", row, title=title, **context)


def is_confirmed(request: HttpRequest) -> bool:
    """Return True if a page that asks before the action was answered."""
    return "_confirmed" in request.POST


def posted_values(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the values of a form for the hidden fields of the page that asks."""
    return [
        (name, str(value))
        for name, values in request.POST.lists()
        if name not in {"csrfmiddlewaretoken", "_back", "_confirmed"}
        for value in values
    ]


def deletion(
    request: HttpRequest,
    row: Model,
    delete: Callable[[], object],
    *,
    title: str,
    deleted: str,
    button: str = "",
    refusal: bool = False,
    back: str = "",
    **context: Any,
) -> HttpResponseBase:
    """Return the page that asks before a row is deleted; by POST, delete it and return to its list.

    A refusal of the service is a message on the page of the row, or on `back`, where *Cancel* leads, too. With
    `refusal` it is known before: the page says why, and has no button.
    """
    if request.method == "POST":
        with errors_as_messages(request):
            delete()
            return done(request, deleted, _list_url(row))
        return redirect(back or display.url_of(row))
    button = "" if refusal else button or gettext("Delete")
    return confirmation(request, row, title=title, button=button, back=back, **context)


def django_deletion(
    request: HttpRequest, context: dict[str, Any], refusal: str = ""
) -> TemplateResponse:
    """Return the page by which Django's own `delete_view` asks, with the numbers of rows that go with the row.

    Their names are not shown: that of a session is the cookie of its browser. With `refusal` the page says why it
    is impossible, and has no button.
    """
    row = context["object"]
    effects = [
        f"{capitalize(str(name))}: {display.digits(count)}"
        for name, count in context["model_count"]
    ]
    reasons = [*map(str, context["protected"]), *map(str, context["perms_lacking"])]
    if refusal:
        effects = [refusal]
    elif reasons:
        text = gettext("It cannot be deleted, because these objects belong to it: %(objects)s.")
        effects = [text % {"objects": ", ".join(reasons)}]
    return confirmation(
        request,
        row,
        title=gettext("Delete %(name)s?") % {"name": row},
        button="" if reasons else gettext("Delete"),
        effects=effects,
        values=[("post", "yes")],
    )


def _list_url(about: type[Model] | Model) -> str:
    return reverse(f"admin:{about._meta.app_label}_{about._meta.model_name}_changelist")


def form_page(
    request: HttpRequest,
    about: type[Model] | Model,
    form: forms.BaseForm | None,
    *,
    title: str,
    template: str = "edit_form.html",
    **context: Any,
) -> TemplateResponse:
    """Return the page of a form.

    Unless `button` and `back` are given, its button is *Add* and *Cancel* leads to the list; for a row *Save*,
    and to its page.
    """
    if isinstance(about, type):
        names = f"{about._meta.app_label}_{about._meta.model_name}"
        context = {
            "button": gettext("Add"),
            "back": reverse(f"admin:{names}_changelist"),
            **context,
        }
    else:
        context = {"button": gettext("Save"), "back": display.url_of(about), **context}
    return page(request, template, about, title=title, form=form, **context)


def require(request: HttpRequest, *permissions: str) -> None:
    """Raise PermissionDenied (403) unless the user has all of the permissions."""
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def problems(error: errors.IpamError) -> tuple[errors.FieldProblem, ...]:
    """Return the problems of an error, at least one."""
    return error.problems or (errors.FieldProblem("", error.code, error.message),)


def add_errors(
    form: forms.BaseForm, error: errors.IpamError, field_of: FieldOf | None = None
) -> None:
    """Add the problems of an error to a form, each at its field or at that of `field_of`."""
    if isinstance(error, errors.VersionMismatch):
        field_of = _no_field
    for problem in problems(error):
        field = field_of(problem) if callable(field_of) else field_of or problem.field
        form.add_error(field if field in form.fields else None, fields.validation_error(problem))


def _no_field(_problem: errors.FieldProblem) -> None:
    """What somebody else saved meanwhile is shown above the fields (form_errors.html)."""


sentence, capitalize = errors.sentence, errors.capitalize


@contextmanager
def errors_as_messages(request: HttpRequest) -> Iterator[None]:
    """Show an error of the block as a message on the next page."""
    try:
        yield
    except errors.IpamError as error:
        for problem in problems(error):
            messages.error(request, sentence(problem.message))


@contextmanager
def errors_at_field(form: forms.BaseForm, field_of: FieldOf | None = None) -> Iterator[None]:
    """Add an error of the block to a form, each problem at its field or at that of `field_of`."""
    try:
        yield
    except errors.IpamError as error:
        add_errors(form, error, field_of)
