"""The page of an import of any kind: its progress, its rows with their reasons, and its buttons."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext_lazy
from django_stubs_ext import StrOrPromise

from pools import tasks
from pools.core import errors
from pools.models.imports import Import, ImportStatus as Status, RowStatus
from pools.platform import database, search
from pools.platform.admin import display, import_texts, lists, pages, row_forms
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Imports

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


class ImportPage:
    """The page of an import in one request. A kind of imports has a class with what it shows and does besides.

    A button whose value is `NAME` calls `post_NAME`; without an answer the page is shown again.
    """

    engine: ClassVar[Imports[Any]]
    template: ClassVar[str]
    what: ClassVar[StrOrPromise]  # its rows, in the list of imports
    formats: ClassVar[Mapping[str, StrOrPromise]]
    # What an import of the kind needs before it can be undone.
    undo_text: ClassVar[StrOrPromise]

    def __init__(self, request: HttpRequest, row: Import) -> None:
        self.request = request
        self.row: Any = self.engine.get(row.pk)
        self.may_change = self.engine.permits(request.user, "change")
        self.actor: dict[str, Any] = {"author": pages.author(request), "user": request.user}

    # --- what a kind says -------------------------------------------------------------------------

    def context(self) -> dict[str, Any]:
        """Return what the template of the page needs beside what all kinds have."""
        return {}

    def lines(self, rows: list[Any]) -> dict[str, Any]:
        """Return the lines of a page of rows as `rows`, and what the template shows beside them."""
        raise NotImplementedError

    def undo_effects(self) -> list[str]:
        """Return sentences on what undoing the import does beside its rows."""
        return []

    def inputs(self, row: Any) -> Iterable[Input]:
        """Return the texts of a row of an import that can be corrected."""
        raise NotImplementedError

    def corrections(self, sent: Mapping[str, str]) -> dict[str, Any]:
        """Return the sent texts of a correction; what is invalid is said by the row afterwards."""
        raise NotImplementedError

    # --- the page ---------------------------------------------------------------------------------

    def answer(self) -> HttpResponse:
        ask, status = self.request.GET.get("ask", ""), self.row.status
        if self.request.method == "POST":
            self.require_change()
            return self._perform()
        if ask == "undo" and status == Status.COMMITTED:
            self.require_change()
            return self._undo_page()
        if ask == "discard" and status in states.CANCELLABLE:
            self.require_change()
            return self._discard_page()
        return self.page()

    def require_change(self) -> None:
        if not self.may_change:
            raise PermissionDenied

    def page(self, correction: CorrectionForm | None = None, **context: Any) -> HttpResponse:
        """Return the page, with a correction that was not saved in the place of its row's."""
        row, may_change = self.row, self.may_change
        progress = self._progress()
        has_rows = not progress and row.status not in {Status.FAILED, Status.CANCELLED}
        drafted, committed = row.status == Status.DRAFTED, row.status == Status.COMMITTED
        effect = _effect(row)
        has_effect = effect["writes"] + effect["released"] > 0
        return pages.page(
            self.request,
            self.template,
            row,
            title=import_texts.name(row),
            state=import_texts.badge(row),
            format=self.formats.get(row.format, row.format),
            progress=progress,
            may_cancel=may_change and row.status in states.CANCELLABLE and not row.cancel_wanted,
            may_change=may_change and drafted,
            may_undo=may_change and committed and not row.undo_wanted and has_effect,
            may_add=self.engine.permits(self.request.user, "add"),
            drafted=drafted,
            effect=effect,
            commit_text=import_texts.commit_text(effect),
            listed=self._listed(correction) if has_rows else None,
            call=f"imports/{row.pk}/",
            **{**self.context(), **context},
        )

    def _progress(self) -> dict[str, Any] | None:
        """Return `{"percent", "text"}` of an import that a worker processes; percent is None if the number of rows is unknown."""
        if not states.is_working(self.row):
            return None
        shown = states.import_progress(self.row, database.now())
        return {"percent": shown.percent, "text": _progress_text(self.row, shown)}

    def _listed(self, correction: CorrectionForm | None) -> dict[str, Any]:
        """Return one page of the filtered rows, with the chips that filter them."""
        row, query = self.row, self.request.GET
        status = query.get("status", "")
        status = status if status in {*RowStatus.values, WARNING} else ""
        text = query.get("q", "").replace("\0", "").strip()
        after = lists.parse_id(query.get("after", ""))
        warned = states.with_warnings(row.rows.all())
        rows = warned if status == WARNING else row.rows.all()
        if status in RowStatus.values:
            rows = rows.filter(status=status)
        if text:
            rows = search.matching(rows, text)
        rows = rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")
        with database.in_parallel():
            found = list(rows[: PER_PAGE + 1])
        chosen = {"status": status, "q": text}
        more = found[PER_PAGE - 1].number if len(found) > PER_PAGE else 0
        lines = self.lines(found[:PER_PAGE])
        counted = {**row.counts, "": sum(row.counts.values()), WARNING: warned.count()}
        for line in lines["rows"]:
            is_kept = correction is not None and correction.row == line["row"]
            line["form"] = correction if is_kept else CorrectionForm(line["row"], self.inputs, None)
            line["bad"] = line["row"].status in BAD
            line["status"] = import_texts.row_badge(line["row"].status)
        return {
            **lines,
            "chips": _chips(row, counted, status, text),
            "search_text": text,
            "status": status,
            "corrected": status in {*BAD, WARNING} and not text and not counted.get(status),
            "after": after,
            "all": _url(row),
            "first": _url(row, **chosen) if after else "",
            "more": _url(row, **chosen, after=more) if more else "",
            "here": _url(row, **chosen, after=after),
        }

    # --- questions before an action ---------------------------------------------------------------

    def _undo_page(self) -> HttpResponse:
        effect = _effect(self.row)
        effects = [
            text % {"count": effect[status], "number": display.digits(effect[status])}
            for status, text in _UNDONE.items()
            if effect[status]
        ]
        return pages.confirmation(
            self.request,
            self.row,
            title=gettext("Undo %(name)s?") % {"name": import_texts.name(self.row)},
            effects=[*effects, *self.undo_effects(), str(self.undo_text)],
            button=gettext("Undo the import"),
            action="undo",
        )

    def _discard_page(self) -> HttpResponse:
        title, button = gettext("Cancel %(name)s?"), gettext("Cancel the import")
        if self.row.status == Status.DRAFTED:
            title, button = gettext("Discard the draft of %(name)s?"), gettext("Discard draft")
        effects = [gettext("Nothing was written to the register.")]
        if rows := sum(self.row.counts.values()):
            text = gettext("Rows that are deleted, with their corrections: %(rows)s.")
            effects.insert(0, text % {"rows": display.digits(rows)})
        return pages.confirmation(
            self.request,
            self.row,
            title=title % {"name": import_texts.name(self.row)},
            effects=effects,
            button=button,
            action="cancel",
        )

    # --- buttons ----------------------------------------------------------------------------------

    def _perform(self) -> HttpResponse:
        """Perform the action of a button and redirect back to it, with a message of its result."""
        perform = getattr(self, f"post_{self.request.POST.get('action', '')}", None)
        if perform is None:
            raise BadRequest(gettext("There is no such action."))
        with pages.errors_as_messages(self.request):
            answer: HttpResponse | None = perform()
            if answer is not None:
                return answer
        here = self.request.get_full_path()
        number = lists.parse_id(self.request.POST.get("row", ""))
        return HttpResponseRedirect(
            f"{here}#row-{number}" if number else here.partition("?ask=")[0]
        )

    def row_number(self) -> int:
        """Return the number of the row that a button belongs to. Raises NotFound."""
        number = lists.parse_id(self.request.POST.get("row", ""))
        if not 0 < number < 1 << 31:
            raise errors.NotFound(gettext("There is no such row."))
        return number

    def report(self, text: str, row: Import) -> None:
        """Show a message with the counts of an import."""
        messages.success(self.request, text % {"counts": import_texts.counts_text(row.counts)})

    def post_correct(self) -> HttpResponse | None:
        """Correct a row; if somebody else did so meanwhile, show both and keep what was typed."""
        number, sent = self.row_number(), self.request.POST
        corrected = self.row.rows.filter(number=number).first()
        if corrected is None:
            raise errors.NotFound(gettext("There is no such row."))
        form = CorrectionForm(corrected, self.inputs, sent.dict())
        values, version = self.corrections(sent), form.check_version
        try:
            line = self.engine.correct_row(
                self.row.pk, number, values, version=version, **self.actor
            )
        except errors.VersionMismatch:
            return self.page(correction=form)
        words = {"row": line.line, "status": RowStatus(line.status).label}
        if line.status not in BAD:
            messages.success(self.request, gettext("Row %(row)s is %(status)s now.") % words)
            return None
        text = gettext("Row %(row)s is still invalid. %(reason)s")
        if line.status == RowStatus.CONFLICT:
            text = gettext("Row %(row)s is still in conflict. %(reason)s")
        reason = pages.sentence(line.reasons[0]["message"]) if line.reasons else ""
        messages.warning(self.request, text % {**words, "reason": reason})
        if self.request.GET.get("status", "") in {"", line.status}:
            return None
        # Its filter would hide it.
        url = _url(self.row, status=line.status, after=number - 1)
        return HttpResponseRedirect(f"{url}#row-{number}")

    def post_skip(self) -> None:
        skipped = self.request.POST["action"] == "skip"
        self.engine.skip_rows(self.row.pk, [self.row_number()], skipped=skipped, **self.actor)

    post_unskip = post_skip

    def post_check(self) -> None:
        changed = self.engine.revalidate(self.row.pk, **self.actor)
        self.report(gettext("Revalidated against the current register: %(counts)s."), changed)

    def post_commit(self) -> None:
        skip_bad = self.request.POST.get("skip_bad") == "true"
        changed = self.engine.commit(self.row.pk, skip_bad=skip_bad, **self.actor)
        if changed.status == Status.COMMITTING:
            tasks.notify_import_worker(changed.pk)
        else:
            self.report(gettext("Committed: %(counts)s."), changed)

    def post_undo(self) -> None:
        changed = self.engine.undo(self.row.pk, **self.actor)
        text = gettext("Import undone, previous values restored.")
        if changed.undo_wanted:
            tasks.notify_import_worker(changed.pk)
            text = gettext("A worker is undoing the import.")
        messages.success(self.request, text)

    def post_cancel(self) -> None:
        changed = self.engine.cancel(self.row.pk, **self.actor)
        text = gettext("The import is being cancelled; nothing will be written.")
        if changed.status == Status.CANCELLED:
            text = gettext("The import was cancelled; nothing was written.")
        messages.success(self.request, text)


def _progress_text(row: Import, shown: states.ImportProgress) -> str:
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


def _chips(row: Import, counted: Mapping[str, int], chosen: str, text: str) -> list[display.Chip]:
    """Return a chip for all rows, one for each status that a row has, and one for the rows with warnings."""
    title = gettext("imported all the same")
    labels: dict[str, StrOrPromise] = {
        "": gettext("All"),
        **{status: import_texts.row_badge(status) for status in RowStatus.values},
        WARNING: display.badge("warning", "▲", gettext("with warnings"), title),
    }
    return [
        (label, counted.get(status, 0), _url(row, q=text, status=status), status == chosen)
        for status, label in labels.items()
        if counted.get(status) or status in {"", chosen}
    ]
