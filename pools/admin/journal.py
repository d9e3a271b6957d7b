"""The journal on the pages of objects, and the page with all notes about an object."""

from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import errors
from pools.models import JournalEntry, JournalKind
from pools.platform.admin import display, forms as fields, pages
from pools.register import journal

SHOWN = 10  # notes on the page of an object
MOST = 500  # notes on the page of a journal
_STATES = {
    JournalKind.INFO: "info",
    JournalKind.SUCCESS: "succeeded",
    JournalKind.WARNING: "warning",
    JournalKind.DANGER: "error",
}


class JournalForm(forms.Form):
    kind = forms.ChoiceField(label=_("Kind"), choices=JournalKind.choices, widget=fields.select())
    text = fields.note_field(label=_("Note"), help_text=_("Plain text, at most 5000 characters."))


def context(request: HttpRequest, row: Any, *, limit: int = SHOWN) -> dict[str, Any]:
    """Return what the template `journal.html` shows about an object: its newest notes and a form."""
    rows = list(journal.entries_of(row)[: limit + 1])
    for entry in rows:
        entry.deletable = journal.may_delete(request.user, entry)  # type: ignore[attr-defined]
    return {
        "entries": rows[:limit],
        "more": len(rows) > limit,
        "form": JournalForm() if journal.may_write(request.user, row) else None,
        "url": url_of(row),
    }


def url_of(row: Any) -> str:
    """Return the URL of the journal of an object."""
    return reverse("admin:journal", args=[row._meta.model_name, row.pk])


def kind_label(entry: JournalEntry) -> SafeString:
    """Return the kind of a note with its shape and colour."""
    state = _STATES[JournalKind(entry.kind)]
    return display.state(state, entry.get_kind_display())


def view(request: HttpRequest, subject: str, subject_id: int) -> HttpResponse:
    """Show all notes about an object; a POST adds one."""
    row = _object(request, subject, subject_id)
    shown = context(request, row, limit=MOST)
    if request.method == "POST":
        pages.require(request, journal.find_subject(subject).permission("change"))
        form = JournalForm(request.POST)
        if form.is_valid():
            journal.add(row, **form.cleaned_data, user=request.user, author=pages.author(request))
            return pages.done(
                request, gettext("The note was added."), f"{display.url_of(row)}#journal"
            )
        shown["form"] = form
    return pages.page(
        request,
        "journal_page.html",
        row,
        title=gettext("Journal of %(object)s") % {"object": row},
        **shown,
    )


def delete(request: HttpRequest, note_id: int) -> HttpResponse:
    """Delete a note after a confirmation."""
    entry = journal.visible_entries(request.user).filter(pk=note_id).first()
    if entry is None:
        raise Http404(gettext("There is no such object."))
    row: Any = entry.subject
    if not journal.may_delete(request.user, entry):
        pages.require(request, journal.DELETE_ANY)
    if request.method == "POST":
        journal.delete(entry, user=request.user, author=pages.author(request))
        return pages.done(
            request, gettext("The note was deleted."), f"{display.url_of(row)}#journal"
        )
    return pages.confirmation(
        request,
        row,
        title=gettext("Delete this note?"),
        effects=[entry.text],
        button=gettext("Delete"),
        back=url_of(row),
    )


def _object(request: HttpRequest, name: str, object_id: int) -> Any:
    """Return an object that the user may see, or raise Http404."""
    try:
        subject = journal.find_subject(name)
    except errors.NotFound as error:
        raise Http404(gettext("There is no such object.")) from error
    pages.require(request, subject.permission("view"))
    row = subject.rows(request.user).filter(pk=object_id).first()
    if row is None:
        raise Http404(gettext("There is no such object."))
    return row
