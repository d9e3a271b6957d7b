"""Lists of objects that people add, change and delete: Django's own views over one ModelForm, and a service that saves.

An object names its form (`form`, a `row_forms.ObjectForm`), and the services in `save_row` and `delete_model`.
What a service refuses is shown at the fields of the form. The history is written by triggers, so Django's log
of the admin has nothing of it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django_stubs_ext import StrOrPromise

from pools.core import errors
from pools.platform import database, events
from pools.platform.admin import lists, pages
from pools.platform.admin.lists import Page, Row


class _RefusedError(Exception):
    """The service refused what a form says; the form has the errors. Raised so that the transaction is undone."""

    def __init__(self, form: Any) -> None:
        super().__init__()
        self.form = form


class ObjectAdmin(lists.ListAdmin[Row]):
    """A list with the pages *add*, *edit* and *delete*; *edit* is the page of a row that has no other one.

    With `shows_row` this page shows the row beside the form, and without it to who may view the row only.
    """

    form: Any
    add_form: ClassVar[Any] = None  # where a new row has other fields
    fixed_fields: ClassVar[tuple[str, ...]] = ()  # of the form, that a change leaves as they are
    default_field: ClassVar[str] = ""  # of the form, for a service's problem that names none
    form_template: ClassVar[str] = "edit_form.html"
    shows_row: ClassVar[bool] = False
    intro: ClassVar[StrOrPromise] = ""  # above the fields of a new row
    add_title: ClassVar[StrOrPromise] = ""
    # The `title`, `button` and message `deleted` of a deletion, with `%(name)s` for the row.
    deletion_texts: ClassVar[Mapping[str, StrOrPromise]] = {}
    more_permissions: ClassVar[tuple[str, ...]] = ()  # beside those of the model

    def __init__(self, model: type[Row], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        has_page = any(page.name == "change" for page in self.row_pages)
        self.has_page = has_page or self.shows_row
        if not any(page.name == "add" for page in self.list_pages):  # a page of its own, in steps
            self.list_pages = (Page("add", self._add_page, *self._needs("add")), *self.list_pages)
        self.row_pages = (
            *self.row_pages,
            Page("edit", self._edit_page, *self._needs("change"))
            if has_page
            else Page(
                "change", self._edit_page, *(() if self.shows_row else self._needs("change"))
            ),
            Page("delete", self._delete_page, *self._needs("delete")),
        )

    # --- what an object says ----------------------------------------------------------------------

    def save_row(self, row: Row | None, form: Any, author: events.Author) -> Row:
        """Add what the form says, or change the row, by a service. Raises IpamError."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Row) -> None:
        """Delete a row by its service. Raises IpamError."""
        raise NotImplementedError

    def name_of(self, row: Row) -> str:
        """Return the name of a row in titles and messages."""
        return str(row)

    def add_errors(self, form: Any, error: errors.IpamError) -> None:
        """Show what a service refused at the fields of the form."""
        pages.add_errors(form, error, self.field_of_problem)

    def field_of_problem(self, problem: errors.FieldProblem) -> str | None:
        """Return the field of the form at which a problem of the service is shown."""
        return problem.field or self.default_field

    def form_context(self, request: HttpRequest, row: Row | None) -> dict[str, Any]:
        """Return what the page of the form shows beside it."""
        return {} if row else {"intro": self.intro}

    def deletion_effects(self, row: Row) -> Sequence[str]:
        """Return what else happens when a row is deleted, as sentences."""
        return ()

    def deletion_context(self, request: HttpRequest, row: Row) -> dict[str, Any]:
        """Return what the page that asks before a deletion shows: pages.deletion."""
        return {"effects": self.deletion_effects(row)}

    def show_saved(self, request: HttpRequest, row: Row, message: str) -> HttpResponse:
        """Return the answer after a row was saved, with a message that says so."""
        return pages.done(request, message, row if self.has_page else self._list_name)

    # --- its pages --------------------------------------------------------------------------------

    @property
    def _list_name(self) -> str:
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"

    def _back(self) -> dict[str, str]:
        """Return where *Cancel* leads from the pages of a row without a page of its own: to the list."""
        return {} if self.has_page else {"back": reverse(self._list_name)}

    def _needs(self, verb: str) -> tuple[str, ...]:
        return (f"{self.opts.app_label}.{verb}_{self.opts.model_name}", *self.more_permissions)

    def _add_page(self, request: HttpRequest) -> HttpResponse:
        return self.changeform_view(request)

    def _edit_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        if not (self.shows_row or self.has_change_permission(request, row)):
            raise PermissionDenied  # Django would show the form to those who may view the row
        return self.changeform_view(request, str(row.pk))

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return request.user.has_perms(self._needs("change"))

    def get_form(
        self, request: HttpRequest, obj: Row | None = None, change: bool = False, **options: Any
    ) -> Any:
        if obj is None and self.add_form is not None:
            options = {**options, "form": self.add_form, "fields": None}
        form: Any = super().get_form(request, obj, change, **options)
        form.request = request  # the class is made for this request
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        return self.fixed_fields if obj else ()

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show and save the form, in a transaction that is repeated after a lost race."""
        view = partial(super().changeform_view, request, object_id, form_url, extra_context)
        try:
            return database.with_retries(view)
        except _RefusedError as refusal:
            return self.show_form(request, refusal.form)

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:
        try:
            saved = self.save_row(obj if change else None, form, pages.author(request))
        except errors.IpamError as error:
            self.add_errors(form, error)
            raise _RefusedError(form) from error
        obj.__dict__.update(saved.__dict__)

    def log_addition(self, *_arguments: Any) -> Any:
        """Log nothing: the triggers have written the event."""

    def log_change(self, *_arguments: Any) -> Any:
        """Log nothing: the triggers have written the event."""

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *_arguments: Any, **_options: Any
    ) -> HttpResponse:
        return self.show_form(request, context["adminform"].form)

    def show_form(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Return the page of a form that was not saved."""
        row = form.instance if form.instance.pk else None
        context = {
            "title": gettext("Edit %(name)s") % {"name": self.name_of(row)}
            if row
            else str(self.add_title) or gettext("Add %(kind)s") % {"kind": self.opts.verbose_name},
            "template": self.form_template,
            **self._back(),
            **self.form_context(request, row),
        }
        is_shown = row is None or self.has_change_permission(request, row)
        return pages.form_page(request, row or self.model, form if is_shown else None, **context)

    def response_add(
        self, request: HttpRequest, obj: Row, post_url_continue: str | None = None
    ) -> HttpResponse:
        message = gettext("%(kind)s %(name)s was added.") % self._names(obj)
        return self.show_saved(request, obj, message)

    def response_change(self, request: HttpRequest, obj: Row) -> HttpResponse:
        message = gettext("%(kind)s %(name)s was changed.") % self._names(obj)
        return self.show_saved(request, obj, message)

    def _names(self, row: Row) -> dict[str, str]:
        return {"kind": capfirst(str(self.opts.verbose_name)), "name": self.name_of(row)}

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return request.user.has_perms(self._needs("delete"))

    def _delete_page(self, request: HttpRequest, row: Row) -> HttpResponseBase:
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        names = self._names(row)
        context: dict[str, Any] = {
            "title": gettext("Delete %(kind)s %(name)s?")
            % {**names, "kind": self.opts.verbose_name},
            "deleted": gettext("%(kind)s %(name)s was deleted.") % names,
            **{key: text % names for key, text in self.deletion_texts.items()},
            **self._back(),
        }
        return pages.deletion(
            request,
            row,
            partial(self.delete_model, request, row),
            **context,
            **self.deletion_context(request, row),
        )
