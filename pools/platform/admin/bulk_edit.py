"""Change or delete several rows of a list on one page: choose, preview, confirm; all rows or none.

A list takes part with a `BulkEdit` value, its `action` and its `page`.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.db import models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools.core import errors
from pools.platform import database, events
from pools.platform.admin import forms as fields, lists, pages

MOST = 200  # rows that one change may have
_TICK = "change_"


class BulkForm(forms.Form):
    """The fields that can be set for all rows, each with a tick: a field is set if it is filled in or ticked.

    `clearable` names the text fields that may be set to nothing, by the tick alone.
    """

    clearable: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._names = list(self.fields)
        for name in self._names:
            text = (
                gettext("Clear %(field)s") if name in self.clearable else gettext("Set %(field)s")
            )
            label = text % {"field": self.fields[name].label}
            self.fields[f"{_TICK}{name}"] = forms.BooleanField(
                required=False, widget=fields.tick(), label=label
            )
        self.fields["reason"] = fields.reason_field(label=_("Reason"))

    def pairs(self) -> Iterator[tuple[forms.BoundField, forms.BoundField]]:
        """Yield each field with its tick."""
        return ((self[name], self[f"{_TICK}{name}"]) for name in self._names)

    def clean(self) -> dict[str, Any]:
        for name in self._names:
            if not self._is_set(name):
                self.errors.pop(name, None)
            elif name in self.clearable:
                self.cleaned_data[name] = self.cleaned_data.get(name) or ""
            elif self.cleaned_data.get(name) is None and name not in self.errors:
                self.add_error(name, gettext("Enter a value."))
        if self._names and not any(map(self._is_set, self._names)):
            self.add_error(None, gettext("Fill in or tick at least one field to change."))
        return self.cleaned_data

    def _is_set(self, name: str) -> bool:
        text = self[name].data
        filled = text.strip() if isinstance(text, str) else text
        return bool(filled or self.cleaned_data.get(f"{_TICK}{name}"))

    def changes(self) -> dict[str, Any]:
        """Return the values of the fields that are set."""
        return {name: self.cleaned_data[name] for name in self._names if self._is_set(name)}


@dataclass(frozen=True)
class RowPreview:
    """What happens to a row: (field, value before, value after) of each field that changes, or refusals."""

    row: Any
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class BulkEdit:
    """A change of several rows of a list.

    `rows` returns the rows that a user may choose. `change` calls the service with a row, the values of
    the fields that are set and the author, and returns the changed row, or None if it was deleted. `show`
    returns a value as text.
    """

    model: type[models.Model]
    permissions: tuple[str, ...]
    change: Callable[[Any, Mapping[str, Any], events.Author], Any]
    rows: Callable[[HttpRequest], QuerySet[Any]]
    form: type[BulkForm] = BulkForm
    show: Callable[[Any, str], str] = lambda row, name: str(getattr(row, name))
    deletes: bool = False

    @property
    def verb(self) -> str:
        return "delete" if self.deletes else "edit"

    @property
    def _names(self) -> str:
        return f"admin:{self.model._meta.app_label}_{self.model._meta.model_name}"

    def action(self) -> Callable[..., HttpResponse]:
        """Return the action of the list."""
        name = f"bulk_{self.verb}"
        title = _("Delete") if self.deletes else _("Edit")
        return lists.action(name, title, f"{self._names}_{name}", *self.permissions, most=MOST)

    def page(self) -> lists.Page:
        """Return the page of the list."""
        return lists.Page(
            f"bulk_{self.verb}", self.view, *self.permissions, path=f"bulk-{self.verb}"
        )

    def view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, then the preview, then change all rows or none."""
        list_url = lists.list_url(request, f"{self._names}_changelist")
        rows = self._selected_rows(request)
        if not rows:
            messages.warning(request, gettext("None of the selected rows exists."))
            return HttpResponseRedirect(list_url)
        form = self.form(request.POST or None)
        previews: list[RowPreview] = []
        if request.method == "POST" and form.is_valid():
            author = pages.author(request, form.cleaned_data["reason"])
            agreed = request.POST.get("_confirmed", "")
            previews = database.with_retries(
                functools.partial(self._change_all, rows, form.changes(), author, agreed)
            )
            if agreed and agreed == _digest(previews):
                return pages.done(request, self._success_message(len(rows)), list_url)
            if agreed:
                form.add_error(None, gettext("The preview was out of date. Read it again."))
        return self._page(request, form, rows, previews, list_url)

    def _selected_rows(self, request: HttpRequest) -> list[Any]:
        rows = self.rows(request).filter(pk__in=lists.chosen_ids(request, MOST))
        return list(rows.order_by("pk"))

    def _change_all(
        self, rows: list[Any], values: Mapping[str, Any], author: events.Author, agreed: str
    ) -> list[RowPreview]:
        """Change all rows in one transaction, and commit it if the result is the agreed preview."""
        with transaction.atomic():
            previews = [self._change(row, values, author) for row in rows]
            if not agreed or agreed != _digest(previews):
                transaction.set_rollback(True)
        return previews

    def _change(self, row: Any, values: Mapping[str, Any], author: events.Author) -> RowPreview:
        before = {name: self.show(row, name) for name in values}
        try:
            with transaction.atomic():
                changed = self.change(row, values, author)
        except errors.IpamError as error:
            texts = [pages.sentence(problem.message) for problem in pages.problems(error)]
            return RowPreview(row, refusals=texts)
        if changed is None:
            return RowPreview(row)
        after = {name: self.show(changed, name) for name in values}
        labels = {name: str(field.label) for name, field in self.form().fields.items()}
        return RowPreview(
            row,
            [
                (labels[name], before[name], after[name])
                for name in values
                if before[name] != after[name]
            ],
        )

    def _success_message(self, count: int) -> str:
        if self.deletes:
            text = ngettext("%(count)s row was deleted.", "%(count)s rows were deleted.", count)
        else:
            text = ngettext("%(count)s row was changed.", "%(count)s rows were changed.", count)
        return text % {"count": count}

    def _page(
        self,
        request: HttpRequest,
        form: BulkForm,
        rows: list[Any],
        previews: list[RowPreview],
        list_url: str,
    ) -> HttpResponse:
        plural = self.model._meta.verbose_name_plural
        title = gettext("Delete %(rows)s") if self.deletes else gettext("Edit %(rows)s")
        return pages.page(
            request,
            "bulk_edit.html",
            self.model,
            title=title % {"rows": plural},
            form=form,
            rows=rows,
            previews=previews,
            refused=sum(bool(preview.refusals) for preview in previews),
            agreed=_digest(previews),
            deletes=self.deletes,
            back=list_url,
        )


def _digest(previews: list[RowPreview]) -> str:
    """Return a digest of a preview without refusals; "" if a row is refused, or there is none."""
    if not previews or any(preview.refusals for preview in previews):
        return ""
    texts = [[preview.row.pk, preview.changes] for preview in previews]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
