"""The admin page of an import (pools/platform/imports): its progress, its rows with their reasons, and its buttons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext_lazy
from django_stubs_ext import StrOrPromise

from pools.core import errors
from pools.models.imports import Import, ImportStatus as Status, RowStatus
from pools.platform import database, search
from pools.platform.admin import display, import_texts, lists, pages, row_forms
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Imports

Row = TypeVar("Row", bound=Import)
Input = tuple[str, StrOrPromise, str]  # a field of a row, its label and its text

PER_PAGE = 50
BAD = (RowStatus.CONFLICT, RowStatus.INVALID)
WARNING = "warning"  # the filter of the rows with warnings

# What undoing an import does to its rows, by their status: for one and for many.
_UNDONE: dict[str, Any] = {
    "new": ngettext_lazy(
        "%(number)s record that the import created is deleted.",
        "%(number)s records that the import created are deleted.",
        "count",
    ),
    "changed": ngettext_lazy(
        "%(number)s changed record gets its previous values.",
        "%(number)s changed records get their previous values.",
        "count",
    ),
    "released": ngettext_lazy(
        "%(number)s released object is restored, unless somebody else has its addresses by now.",
        "%(number)s released objects are restored, unless somebody else has their addresses by now.",
        "count",
    ),
}


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
    """The page of one kind of imports; `notify` wakes a worker for an import."""

    kind: Imports[Row]
    notify: Callable[[int], None]
    template: str
    endpoint: str  # of REST
    what: ClassVar[StrOrPromise]  # its rows, in the list of imports
    formats: Mapping[str, StrOrPromise]

    # --- what a kind says -------------------------------------------------------------------------

    def context(self, _request: HttpRequest, _row: Row) -> dict[str, Any]:
        """Return what the template of the page needs beside what all kinds have."""
        return {}

    @abstractmethod
    def lines(self, row: Row, rows: list[Any]) -> dict[str, Any]:
        """Return the lines of a page of rows as `rows`, and what the template shows beside them."""

    @abstractmethod
    def undo_effects(self, row: Row) -> list[str]:
        """Return sentences on what undoing an import of the kind does, and when it cannot be undone."""

    @abstractmethod
    def inputs(self, row: Any) -> Iterable[Input]:
        """Return the texts of a row of an import that can be corrected."""

    @abstractmethod
    def corrections(self, sent: Mapping[str, str]) -> dict[str, Any]:
        """Return the sent texts of a correction; what is invalid is said by the row afterwards."""

    def format_name(self, row: Import) -> str:
        return str(self.formats.get(row.format, row.format))

    # --- progress ---------------------------------------------------------------------------------

    def progress_values(self, row: Row) -> dict[str, Any] | None:
        """Return `{"percent", "text"}` of an import that a worker processes; percent is None if the number of rows is unknown."""
        if not states.is_working(row):
            return None
        shown = states.import_progress(row, database.now())
        return {"percent": shown.percent, "text": self._progress_text(row, shown)}

    def _progress_text(self, row: Row, shown: states.ImportProgress) -> str:
        if row.status == Status.QUEUED:
            return gettext("Waiting for a worker.")
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
        words = {"text": text, "remaining": display.duration(max(shown.remaining, 1))}
        return gettext("%(text)s, about %(remaining)s left") % words

    # --- the page ---------------------------------------------------------------------------------

    def view(self, request: HttpRequest, row: Row) -> HttpResponse:
        question = (request.GET.get("ask", ""), row.status)
        asks_undo = question == ("undo", Status.COMMITTED)
        asks_discard = question[0] == "discard" and row.status in states.CANCELLABLE
        if request.method == "POST" or asks_undo or asks_discard:
            self.require_change(request)
        if request.method == "POST":
            return self._perform(request, row)
        if asks_undo:
            return self._undo_page(request, row)
        return self._discard_page(request, row) if asks_discard else self.page(request, row)

    def require_change(self, request: HttpRequest) -> None:
        if not self.kind.permits(request.user, "change"):
            raise PermissionDenied

    def page(
        self,
        request: HttpRequest,
        row: Row,
        correction: CorrectionForm | None = None,
        **context: Any,
    ) -> HttpResponse:
        """Return the page, with a correction that was not saved in the place of its row's."""
        progress = self.progress_values(row)
        has_rows = not progress and row.status not in {Status.FAILED, Status.CANCELLED}
        may_change = self.kind.permits(request.user, "change")
        drafted, committed = row.status == Status.DRAFTED, row.status == Status.COMMITTED
        effect = _effect(row)
        has_effect = effect["writes"] + effect["released"] > 0
        return pages.page(
            request,
            self.template,
            row,
            title=import_texts.name(row),
            state=import_texts.badge(row),
            format=self.format_name(row),
            progress=progress,
            may_cancel=may_change and row.status in states.CANCELLABLE,
            may_change=may_change and drafted,
            may_undo=may_change and committed and not row.undo_wanted and has_effect,
            may_add=self.kind.permits(request.user, "add"),
            drafted=drafted,
            effect=effect,
            commit_text=import_texts.commit_text(effect),
            listed=self._listed(request, row, correction) if has_rows else None,
            call=f"{self.endpoint}/{row.pk}/",
            **{**self.context(request, row), **context},
        )

    def _listed(
        self, request: HttpRequest, row: Row, correction: CorrectionForm | None
    ) -> dict[str, Any]:
        """Return one page of the filtered rows, with the chips that filter them."""
        status = request.GET.get("status", "")
        status = status if status in {*RowStatus.values, WARNING} else ""
        text = request.GET.get("q", "").replace("\0", "").strip()
        after = lists.parse_id(request.GET.get("after", ""))
        warned = states.with_warnings(row.rows.all())
        rows = warned if status == WARNING else row.rows.all()
        if status in RowStatus.values:
            rows = rows.filter(status=status)
        if text:
            rows = search.matching(rows, text)
        rows = rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")
        with database.in_parallel():
            found = list(rows[: PER_PAGE + 1])
        query = {"status": status, "q": text}
        more = found[PER_PAGE - 1].number if len(found) > PER_PAGE else 0
        lines = self.lines(row, found[:PER_PAGE])
        for line in lines["rows"]:
            is_kept = correction is not None and correction.row == line["row"]
            line["form"] = correction if is_kept else CorrectionForm(line["row"], self.inputs, None)
            line["bad"] = line["row"].status in BAD
            line["status"] = import_texts.row_badge(line["row"].status)
        return {
            **lines,
            "chips": list(_chips(row, status, text, warned.count())),
            "search_text": text,
            "status": status,
            "corrected": status in BAD and not row.counts.get(status) and not text,
            "after": after,
            "all": _url(row),
            "first": _url(row, **query) if after else "",
            "more": _url(row, **query, after=more) if more else "",
            "here": _url(row, **query, after=after),
        }

    # --- questions before an action ---------------------------------------------------------------

    def _undo_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        effect = _effect(row)
        effects = [
            text % {"count": effect[status], "number": display.digits(effect[status])}
            for status, text in _UNDONE.items()
            if effect[status]
        ]
        return pages.confirmation(
            request,
            row,
            title=gettext("Undo %(name)s?") % {"name": import_texts.name(row)},
            effects=[*effects, *self.undo_effects(row)],
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
            title=title % {"name": import_texts.name(row)},
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
            "cancel": self._cancel,
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
        corrected = row.rows.filter(number=number).first()
        if corrected is None:
            raise errors.NotFound(gettext("There is no such row."))
        form = CorrectionForm(corrected, self.inputs, request.POST.dict())
        try:
            line = self.kind.correct_row(
                row.pk,
                number,
                self.corrections(request.POST),
                version=form.check_version,
                **actor(request),
            )
        except errors.VersionMismatch:
            return self.page(request, row, correction=form)
        words = {"row": line.line, "status": RowStatus(line.status).label}
        if line.status not in BAD:
            messages.success(request, gettext("Row %(row)s is %(status)s now.") % words)
            return None
        text = gettext("Row %(row)s is still invalid. %(reason)s")
        if line.status == RowStatus.CONFLICT:
            text = gettext("Row %(row)s is still in conflict. %(reason)s")
        reason = pages.sentence(line.reasons[0]["message"]) if line.reasons else ""
        messages.warning(request, text % {**words, "reason": reason})
        return None

    def _skip(self, request: HttpRequest, row: Row) -> None:
        skipped = request.POST["action"] == "skip"
        self.kind.skip_rows(row.pk, [row_number(request)], skipped=skipped, **actor(request))

    def report(self, request: HttpRequest, text: str, row: Row) -> None:
        """Show a message with the counts of an import."""
        messages.success(request, text % {"counts": import_texts.counts_text(row.counts)})

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
            messages.success(request, gettext("Import undone, previous values restored."))

    def _cancel(self, request: HttpRequest, row: Row) -> None:
        changed = self.kind.cancel(row.pk, **actor(request))
        text = gettext("The import is being cancelled; nothing will be written.")
        if changed.status == Status.CANCELLED:
            text = gettext("The import was cancelled; nothing was written.")
        messages.success(request, text)


def _url(row: Import, page: str = "change", **query: Any) -> str:
    parameters = {name: value for name, value in query.items() if value}
    return reverse(f"admin:pools_import_{page}", args=[row.pk], query=parameters)


def _effect(row: Import) -> dict[str, int]:
    """Return the numbers of rows by status, of all, and of those that a commit writes or leaves out."""
    counts: dict[str, int] = dict.fromkeys(RowStatus.values, 0) | row.counts
    return {
        **counts,
        "all": sum(counts.values()),
        "writes": counts["new"] + counts["changed"],
        "bad": counts["conflict"] + counts["invalid"],
    }


def _chips(row: Import, chosen: str, text: str, warned: int) -> Iterator[dict[str, Any]]:
    """Yield a chip for all rows, one for each status that a row has, and one for the rows with warnings."""
    title = gettext("imported all the same")
    warnings = display.badge("warning", "▲", gettext("with warnings"), title)
    counted: list[tuple[StrOrPromise, str, int]] = [
        (gettext("All"), "", sum(row.counts.values())),
        *(
            (import_texts.row_badge(status), status, row.counts.get(status, 0))
            for status in RowStatus
        ),
        (warnings, WARNING, warned),
    ]
    for label, status, count in counted:
        if count or status in {"", chosen}:
            yield {
                "label": label,
                "count": count,
                "url": _url(row, q=text, status=status),
                "chosen": status == chosen,
            }
