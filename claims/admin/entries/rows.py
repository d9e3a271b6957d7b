"""Editable table of an IPPool's entries, with warnings while the user types."""

from dataclasses import dataclass, field

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.entries import entries as entry_admin
from claims.core import entries as core
from claims.core.entries import EntrySpec
from claims.entries import entries as services
from claims.models import Entry, IndexEntry, IPPool
from pools.core import errors
from pools.platform import search
from pools.platform.admin import lists, pages, row_forms

PER_PAGE = 50
NEW = 3  # empty rows for new entries
_MOST_ROWS = PER_PAGE + NEW


@dataclass
class EntryFormRow:
    """One row of the form: its texts and their problems."""

    prefix: str
    entry: Entry | None
    texts: dict[str, str]
    version: str = ""  # of the entry as the page showed it, as in its own form
    remove: bool = False
    problems: list[str] = field(default_factory=list)
    spec: EntrySpec | None = None

    @property
    def is_empty(self) -> bool:
        return not any(self.texts.values())

    @property
    def is_changed(self) -> bool:
        """Return True unless it is as the page showed it, whoever changed the entry meanwhile."""
        if self.entry is None:
            return True
        shown = row_forms.parse_version(self.version) or _entry_texts(self.entry)
        return any(self.texts[name] != shown.get(name) for name in core.FIELDS)

    def check_version(self, locked: Entry) -> None:
        """Raise VersionMismatch, and say so beside the row, if somebody changed the entry meanwhile."""
        data = {"version": self.version} if self.version else {}
        entry_form = entry_admin.EntryForm(data, instance=locked)
        try:
            entry_form.check_version(locked)
        except errors.VersionMismatch as error:
            self.problems = [error.message, gettext("Save again to overwrite it.")]
            self.version = entry_form.version
            raise


def _entry_texts(entry: Entry) -> dict[str, str]:
    values = entry_admin.EntryForm(instance=entry).initial
    return {name: str(values[name]) for name in core.FIELDS}


def _version(entry: Entry) -> str:
    return entry_admin.EntryForm(instance=entry).version


def view(request: HttpRequest, ippool: IPPool) -> HttpResponse:
    """Show the table; a POST saves all rows or none."""
    pages.require(request, "claims.change_entry", "claims.view_every_namespace")
    page = max(lists.parse_id(request.GET.get("p", "")), 1)
    text = request.GET.get("q", "").strip()
    rows = scoped.rows(request, Entry).filter(ippool=ippool)
    if text:
        rows = search.matching(rows, text)
    if request.GET.get("duplicate"):
        flagged_index_rows = IndexEntry.objects.filter(
            network=ippool.network_id, entry__isnull=False
        )
        flagged_index_rows = flagged_index_rows.filter(
            duplicate_mac=True
        ) | flagged_index_rows.filter(duplicate_ip=True)
        rows = rows.filter(pk__in=flagged_index_rows.values("entry_id"))
    offset = (page - 1) * PER_PAGE
    entries = list(rows.order_by("mac", "pk")[offset : offset + PER_PAGE + 1])
    if request.method == "POST":
        form_rows = _submitted_rows(request, ippool)
        if _save_rows(request, ippool, form_rows):
            return HttpResponseRedirect(request.get_full_path())
    else:
        form_rows = [
            EntryFormRow(str(entry.pk), entry, _entry_texts(entry), _version(entry))
            for entry in entries[:PER_PAGE]
        ]
        form_rows += [
            EntryFormRow(f"new{n}", None, dict.fromkeys(core.FIELDS, "")) for n in range(NEW)
        ]
    return pages.page(
        request,
        "entry_rows.html",
        ippool,
        title=gettext("Entries of %(ippool)s") % {"ippool": ippool.name},
        rows=form_rows,
        search_text=text,
        page=page,
        more=len(entries) > PER_PAGE,
        check_url=reverse("admin:claims_entry_check"),
        has_problems=any(row.problems for row in form_rows),
    )


def _submitted_rows(request: HttpRequest, ippool: IPPool) -> list[EntryFormRow]:
    """Return the submitted rows; a row whose entry was deleted in the meantime becomes a new entry."""
    prefixes = [name.removesuffix("-mac") for name in request.POST if name.endswith("-mac")][
        :_MOST_ROWS
    ]
    ids = [number for prefix in prefixes if (number := lists.parse_id(prefix))]
    entries_by_id = scoped.rows(request, Entry).filter(ippool=ippool).in_bulk(ids)
    return [
        EntryFormRow(
            prefix,
            entries_by_id.get(lists.parse_id(prefix)),
            {name: request.POST.get(f"{prefix}-{name}", "").strip() for name in core.FIELDS},
            request.POST.get(f"{prefix}-version", ""),
            remove=f"{prefix}-remove" in request.POST,
        )
        for prefix in prefixes
    ]


def _save_rows(request: HttpRequest, ippool: IPPool, form_rows: list[EntryFormRow]) -> bool:
    remaining_rows = [
        row for row in form_rows if not row.remove and not (row.entry is None and row.is_empty)
    ]
    changed = [row for row in remaining_rows if row.is_changed]
    for row in changed:
        row.spec, problems = entry_admin.parse_entry(row.texts, ippool)
        row.problems = [pages.sentence(problem.message) for problem in problems]
    if any(row.problems for row in changed):
        return False
    deleted_ids = [row.entry.pk for row in form_rows if row.remove and row.entry is not None]
    if deleted_ids:
        pages.require(request, "claims.delete_entry")
    try:
        with transaction.atomic():
            saved = _store(request, ippool, changed, deleted_ids)
    except errors.IpamError as error:
        messages.error(request, pages.sentence(error.message))
        return False
    if saved or deleted_ids:
        messages.success(request, _saved_message(len(saved), len(deleted_ids)))
        entry_admin.warn_of_duplicates(request, saved)
    return True


def _store(
    request: HttpRequest, ippool: IPPool, changed: list[EntryFormRow], deleted_ids: list[int]
) -> list[Entry]:
    author = pages.author(request)
    if deleted_ids:
        services.delete(deleted_ids, author=author)
    saved = [
        services.change(row.entry.pk, row.spec, author=author, version=row.check_version)
        for row in changed
        if row.entry is not None and row.spec is not None
    ]
    new_specs = [row.spec for row in changed if row.entry is None and row.spec is not None]
    return saved + (entry_admin.add_entries(request, ippool, new_specs) if new_specs else [])


def _saved_message(saved_count: int, deleted_count: int) -> str:
    if saved_count and deleted_count:
        text = gettext("Entries: %(saved)s saved, %(deleted)s deleted.")
    elif saved_count:
        text = gettext("Entries: %(saved)s saved.")
    else:
        text = gettext("Entries: %(deleted)s deleted.")
    return text % {"saved": saved_count, "deleted": deleted_count}
