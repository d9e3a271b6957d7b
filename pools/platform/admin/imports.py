"""The admin pages of imports (pools/platform/imports): badges, the page with its rows, and its buttons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.core import errors
from pools.models.imports import Import, RowStatus
from pools.models.imports import ImportStatus as Status
from pools.platform import database, versions
from pools.platform.admin import display, lists, pages, row_forms
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Imports

Row = TypeVar("Row", bound=Import)
Input = tuple[str, StrOrPromise, str]  # a field of a row, its label and its text

PER_PAGE = 50
BAD = (RowStatus.CONFLICT, RowStatus.REFUSED)

# By the status of a row: its style, one of those of static/cadastre, its shape, and its meaning.
_ROW_BADGES: dict[str, tuple[str, str, StrOrPromise]] = {
    "new": ("created", "+", _("not registered yet")),
    "changed": ("changed", "~", _("registered with other values")),
    "unchanged": ("unchanged", "=", _("already registered, unchanged")),
    "conflict": ("conflict", "▲", ""),
    "refused": ("refused", "✕", ""),
    "skipped": ("ignored", "‖", _("skipped manually")),
    "vanished": ("pending", "?", _("the source has it no more: release it, or keep it here")),
    "released": ("ignored", "↓", _("released: the source has it no more, or with other ends")),
}
_STATUS_BADGES: dict[str, tuple[str, str]] = {
    Status.QUEUED: ("pending", "◔"),
    Status.DRAFTING: ("running", "◔"),
    Status.DRAFTED: ("open", "○"),
    Status.COMMITTING: ("running", "◔"),
    Status.COMMITTED: ("ok", "●"),
    Status.UNDONE: ("ignored", "↶"),
    Status.CANCELLED: ("ignored", "✕"),
    Status.FAILED: ("failed", "▲"),
}


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts by row status as text: `12 new, 3 changed`, or `no rows`."""
    parts = [
        f"{display.digits(counts[status])} {status.label}"
        for status in RowStatus
        if counts.get(status)
    ]
    return ", ".join(parts) or gettext("no rows")


def row_number(request: HttpRequest) -> int:
    """Return the number of the row that a button belongs to. Raises NotFound."""
    number = lists.parse_id(request.POST.get("row", ""))
    if not 0 < number < 1 << 31:
        raise errors.NotFound(gettext("There is no such row."))
    return number


def actor(request: HttpRequest) -> dict[str, Any]:
    return {"author": pages.author(request), "user": request.user}


class CorrectionForm(row_forms.RowForm):
    """The texts of a row of a draft that can be corrected: (field, label, text)."""

    def __init__(
        self, row: Any, inputs: Callable[[Any], Iterable[Input]], data: Mapping[str, str] | None
    ) -> None:
        fields = list(inputs(row))
        # A button may send one of the fields only.
        super().__init__(data and {**{name: text for name, _label, text in fields}, **data})
        for name, label, _text in fields:
            self.fields[name] = forms.CharField(label=label, required=False)
        self.show_row(row, lambda row: {name: text for name, _label, text in inputs(row)})


class ImportPages(ABC, Generic[Row]):
    """The pages of one kind of imports; `notify` wakes a worker for an import."""

    kind: Imports[Row]
    notify: Callable[[int], None]
    template: str
    endpoint: str  # of REST
    unnamed: StrOrPromise  # name of an import without a file: a text with %(number)s
    unnamed_inside: StrOrPromise  # the same inside of a sentence
    formats: Mapping[str, StrOrPromise]
    status_labels: Mapping[str, StrOrPromise] = dict(Status.choices)
    conflict_help: StrOrPromise
    refused_help: StrOrPromise

    # --- what a kind says -------------------------------------------------------------------------

    @abstractmethod
    def context(self, request: HttpRequest, row: Row, effect: dict[str, int]) -> dict[str, Any]:
        """Return what the template of the page needs beside what all kinds have."""

    def rows(self, row: Row) -> QuerySet[Any]:
        """Return the rows of an import with what their lines show."""
        rows: QuerySet[Any] = row.rows.all()
        return rows

    @abstractmethod
    def lines(self, row: Row, rows: list[Any]) -> dict[str, Any]:
        """Return the lines of a page of rows as `rows`, and what the template shows beside them."""

    @abstractmethod
    def undo_effects(self, row: Row, effect: dict[str, int]) -> list[str]:
        """Return sentences on what undoing an import does."""

    @abstractmethod
    def inputs(self, row: Any) -> Iterable[Input]:
        """Return the texts of a row of an import that can be corrected."""

    @abstractmethod
    def correct(
        self, request: HttpRequest, row: Row, number: int, version: versions.Version
    ) -> None:
        """Save the typed values of a row, also invalid ones: the row then shows what is still invalid."""

    # --- badges -----------------------------------------------------------------------------------

    def row_badge(self, status: str) -> SafeString:
        style, shape, title = _ROW_BADGES[status]
        special = {"conflict": self.conflict_help, "refused": self.refused_help}
        return display.badge(style, shape, RowStatus(status).label, special.get(status, title))

    def badge(self, row: Row) -> SafeString:
        style, shape = _STATUS_BADGES[row.status]
        return display.badge(style, shape, self.status_labels[row.status], row.error)

    def format_name(self, row: Row) -> str:
        return str(self.formats.get(row.format, row.format))

    def name(self, row: Row) -> str:
        return row.file_name or str(self.unnamed) % {"number": row.pk}

    def name_and_format(self, row: Row) -> SafeString:
        return display.two_lines(display.row_link(row, self.name(row)), self.format_name(row))

    def counts_stack(self, row: Row) -> SafeString:
        return display.stack(
            [
                format_html(
                    '<span class="cad-nowrap">{} {}</span>',
                    self.row_badge(status),
                    display.digits(row.counts[status]),
                )
                for status in RowStatus.values
                if row.counts.get(status)
            ]
        )

    # --- progress ---------------------------------------------------------------------------------

    def poll(self, _request: HttpRequest, row: Row) -> HttpResponse:
        """Answer the script that polls the progress."""
        return JsonResponse(self.progress_values(row))

    def progress_values(self, row: Row) -> dict[str, Any]:
        """Return `{"status", "working", "percent", "text"}`; percent is None if the number of rows is unknown."""
        shown = states.import_progress(row, database.now())
        return {
            "status": row.status,
            "working": states.is_working(row),
            "percent": shown.percent,
            "text": self._progress_text(row, shown),
        }

    def _progress_text(self, row: Row, shown: states.ImportProgress) -> str:
        if row.status == Status.QUEUED:
            return gettext("Waiting for a worker.")
        if not states.is_working(row):
            return f"{str(self.status_labels[row.status]).capitalize()}."
        done = display.digits(shown.done)
        if shown.total is None:
            return gettext("%(done)s rows") % {"done": done}
        total = display.digits(shown.total)
        text = gettext("%(done)s of %(total)s rows") % {"done": done, "total": total}
        begins = row.status == Status.COMMITTING and not shown.done
        if shown.total and (begins or shown.done >= shown.total):
            return gettext("%(text)s; validating the rows") % {"text": text}
        if shown.remaining is None:
            return text
        remaining = display.duration(max(shown.remaining, 1))
        return gettext("%(text)s, about %(remaining)s left") % {
            "text": text,
            "remaining": remaining,
        }

    # --- the page ---------------------------------------------------------------------------------

    def view(self, request: HttpRequest, row: Row) -> HttpResponse:
        if request.method == "POST":
            self.require_change(request)
            return self._perform(request, row)
        question = (request.GET.get("ask", ""), row.status)
        if question == ("undo", Status.COMMITTED):
            self.require_change(request)
            return self._undo_page(request, row)
        if question[0] == "discard" and row.status in states.CANCELLABLE:
            self.require_change(request)
            return self._discard_page(request, row)
        return self.page(request, row)

    def require_change(self, request: HttpRequest) -> None:
        pages.require(request, self._change_permission())

    def _change_permission(self) -> str:
        meta = self.kind.model._meta
        return f"{meta.app_label}.change_{meta.model_name}"

    def page(
        self,
        request: HttpRequest,
        row: Row,
        correction: CorrectionForm | None = None,
        **context: Any,
    ) -> HttpResponse:
        """Return the page, with a correction that was not saved in the place of its row's."""
        shown = self.progress_values(row)
        has_rows = not shown["working"] and row.status not in {Status.FAILED, Status.CANCELLED}
        may_change = request.user.has_perm(self._change_permission())
        drafted, committed = row.status == Status.DRAFTED, row.status == Status.COMMITTED
        effect = self._effect(row)
        has_effect = effect["writes"] + effect["released"] > 0
        return pages.page(
            request,
            self.template,
            title=self.name(row),
            opts=row._meta,
            original=row,
            state=self.badge(row),
            format=self.format_name(row),
            progress=shown if shown["working"] else None,
            progress_url=self._url(row, "progress"),
            may_cancel=may_change and row.status in states.CANCELLABLE,
            may_change=may_change and drafted,
            may_undo=may_change and committed and not row.undo_wanted and has_effect,
            drafted=drafted,
            effect=effect,
            listed=self._listed(request, row, correction) if has_rows else None,
            call=f"{self.endpoint}/{row.pk}/",
            **{**self.context(request, row, effect), **context},
        )

    def _url(self, row: Row, name: str = "change", **query: Any) -> str:
        parameters = {name: value for name, value in query.items() if value}
        meta = row._meta
        view = f"admin:{meta.app_label}_{meta.model_name}_{name}"
        return reverse(view, args=[row.pk], query=parameters)

    def _effect(self, row: Row) -> dict[str, int]:
        """Return the numbers of rows by status, and of rows that a commit writes or leaves out."""
        counts: dict[str, int] = dict.fromkeys(RowStatus.values, 0) | row.counts
        return {
            **counts,
            "writes": counts["new"] + counts["changed"],
            "bad": counts["conflict"] + counts["refused"],
        }

    def _listed(
        self, request: HttpRequest, row: Row, correction: CorrectionForm | None
    ) -> dict[str, Any]:
        """Return one page of the filtered rows, with the chips that filter them."""
        status = request.GET.get("status", "")
        status = status if status in RowStatus.values else ""
        text = request.GET.get("q", "").replace("\0", "").strip()
        after = lists.parse_id(request.GET.get("after", ""))
        rows = self.rows(row)
        if status:
            rows = rows.filter(status=status)
        if text:
            rows = self.kind.search(rows, text)
        rows = rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")
        with database.in_parallel():
            found = list(rows[: PER_PAGE + 1])
        query = {"status": status, "q": text}
        more = found[PER_PAGE - 1].number if len(found) > PER_PAGE else 0
        lines = self.lines(row, found[:PER_PAGE])
        for line in lines["rows"]:
            is_kept = correction is not None and correction.row == line["row"]
            line["form"] = correction if is_kept else CorrectionForm(line["row"], self.inputs, None)
        return {
            **lines,
            "chips": list(self._chips(row, status, text)),
            "search_text": text,
            "status": status,
            "after": after,
            "first": self._url(row, **query) if after else "",
            "more": self._url(row, **query, after=more) if more else "",
            "here": self._url(row, **query, after=after),
        }

    def _chips(self, row: Row, chosen: str, text: str) -> Iterator[dict[str, Any]]:
        """Yield a chip for all rows, and one for each status that a row has."""
        yield {
            "name": gettext("All"),
            "count": sum(row.counts.values()),
            "url": self._url(row, q=text),
            "chosen": not chosen,
        }
        for status in RowStatus.values:
            count = row.counts.get(status, 0)
            if count or status == chosen:
                yield {
                    "badge": self.row_badge(status),
                    "count": count,
                    "url": self._url(row, q=text, status=status),
                    "chosen": status == chosen,
                }

    # --- questions before an action ---------------------------------------------------------------

    def _name_inside(self, row: Row) -> str:
        return row.file_name or str(self.unnamed_inside) % {"number": row.pk}

    def _undo_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        return pages.confirmation(
            request,
            row,
            title=gettext("Undo %(name)s?") % {"name": self._name_inside(row)},
            effects=self.undo_effects(row, self._effect(row)),
            button=gettext("Undo the import"),
            action="undo",
        )

    def _discard_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        title, button = gettext("Cancel %(name)s?"), gettext("Cancel the import")
        if row.status == Status.DRAFTED:
            title, button = gettext("Discard the draft of %(name)s?"), gettext("Discard draft")
        rows = display.digits(sum(row.counts.values()))
        text = gettext("Rows that are deleted, with their corrections: %(rows)s.")
        return pages.confirmation(
            request,
            row,
            title=title % {"name": self._name_inside(row)},
            effects=[text % {"rows": rows}, gettext("Nothing was written to the register.")],
            button=button,
            action="cancel",
        )

    # --- buttons ----------------------------------------------------------------------------------

    def actions(self) -> dict[str, Callable[[HttpRequest, Row], HttpResponse | None]]:
        """Return what the buttons do, by the value of `action`; the page is shown again, if not another one."""
        return {
            "correct": self._correct,
            "skip": self._skip,
            "unskip": self._skip,
            "check": self._revalidate,
            "commit": self._commit,
            "undo": self._undo,
            "cancel": self.cancel,
        }

    def _perform(self, request: HttpRequest, row: Row) -> HttpResponse:
        """Perform the action of a button and redirect back to it, with a message of its result."""
        action = self.actions().get(request.POST.get("action", ""))
        if action is None:
            raise BadRequest(gettext("There is no such action."))
        with pages.errors_as_messages(request):
            if (answer := action(request, row)) is not None:
                return answer
        here, number = request.get_full_path(), lists.parse_id(request.POST.get("row", ""))
        return HttpResponseRedirect(
            f"{here}#row-{number}" if number else here.partition("?ask=")[0]
        )

    def _correct(self, request: HttpRequest, row: Row) -> HttpResponse | None:
        """Correct a row; if somebody else did so meanwhile, show both and keep what was typed."""
        number = row_number(request)
        corrected = self.rows(row).filter(number=number).first()
        if corrected is None:
            raise errors.NotFound(gettext("There is no such row."))
        form = CorrectionForm(corrected, self.inputs, request.POST.dict())
        try:
            self.correct(request, row, number, form.check_version)
        except errors.VersionMismatch:
            return self.page(request, row, correction=form)
        return None

    def _skip(self, request: HttpRequest, row: Row) -> None:
        skipped = request.POST["action"] == "skip"
        self.kind.skip_rows(row.pk, [row_number(request)], skipped=skipped, **actor(request))

    def report(self, request: HttpRequest, text: str, row: Row) -> None:
        """Show a message with the counts of an import."""
        messages.success(request, text % {"counts": counts_text(row.counts)})

    def _revalidate(self, request: HttpRequest, row: Row) -> None:
        changed = self.kind.revalidate(row.pk, **actor(request))
        text = gettext("Revalidated against the current register: %(counts)s.")
        self.report(request, text, changed)

    def _commit(self, request: HttpRequest, row: Row) -> None:
        skip_bad = request.POST.get("skip_bad") == "true"
        changed = self.kind.commit(row.pk, skip_bad=skip_bad, **actor(request))
        if changed.status == Status.COMMITTING:
            self.notify(changed.pk)
        else:
            self.report(request, gettext("Committed: %(counts)s."), changed)

    def _undo(self, request: HttpRequest, row: Row) -> None:
        changed = self.kind.undo(row.pk, **actor(request))
        if changed.undo_wanted:
            self.notify(changed.pk)
            messages.success(request, gettext("A worker is undoing the import."))
        else:
            messages.success(request, gettext("The import was undone."))

    def cancel(self, request: HttpRequest, row: Row) -> None:
        self.kind.cancel(row.pk, **actor(request))
        messages.success(request, gettext("The import is cancelled; nothing is written."))


class ImportAdmin(lists.ListAdmin[Row]):
    """A list of imports; its page *add* takes files."""

    list_per_page = 50
    search_fields: ClassVar = ("file_name",)
    ordering = ("-pk",)

    @staticmethod
    def search(rows: QuerySet[Row], text: str) -> QuerySet[Row]:
        if "\0" in text:
            return rows.none()
        return rows.filter(Q(file_name__icontains=text) | Q(actor__icontains=text))

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        return super().add_view(request, *arguments, **options)

    # CSRF protection would read the files to find the token: the page checks their size first.
    add_view.csrf_exempt = True  # type: ignore[attr-defined]
