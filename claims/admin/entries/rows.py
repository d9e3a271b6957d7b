"""Many entries on one page: changed where they stand, with warnings while somebody types."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from claims.admin import scoped
from claims.admin.entries import form
from claims.core.entries import EntrySpec
from claims.entries import entries as services
from claims.entries import search
from claims.models import Entry, IndexEntry, IPPool
from pools.core import errors
from pools.platform.admin import lists, pages

_NAMES = ("mac", "ips", "vm", "namespace", "note")
PER_PAGE = 50
NEW = 3  # empty rows
_MOST = PER_PAGE + NEW


@dataclass
class EntryFormRow:
    """One row of the form: what stands in it, and what is wrong with it."""

    prefix: str
    entry: Entry | None
    texts: dict[str, str]
    remove: bool = False
    problems: list[str] = field(default_factory=list)
    spec: EntrySpec | None = None

    @property
    def is_empty(self) -> bool:
        return not any(self.texts.values())

    @property
    def is_changed(self) -> bool:
        return self.entry is None or self.texts != _form_texts(self.entry)


def _form_texts(entry: Entry) -> dict[str, str]:
    texts = {name: str(getattr(entry, name)) for name in _NAMES}
    return {**texts, "ips": ", ".join(entry.ips)}


def view(request: HttpRequest, ippool: IPPool) -> HttpResponseBase:
    """The page; a POST saves all rows or none."""
    pages.require(request, "claims.change_entry", "claims.view_every_namespace")
    page = max(lists.number(request.GET.get("p", "")), 1)
    words = request.GET.get("q", "")
    rows = scoped.rows(request, Entry).filter(ippool=ippool)
    if words.strip() and "\0" not in words:
        rows = search.matching_entries(rows, words)
    if request.GET.get("duplicate"):
        flagged = IndexEntry.objects.filter(network=ippool.network_id, entry__isnull=False)
        flagged = flagged.filter(duplicate_mac=True) | flagged.filter(duplicate_ip=True)
        rows = rows.filter(pk__in=flagged.values("entry_id"))
    first = (page - 1) * PER_PAGE
    entries = list(rows.order_by("mac", "pk")[first : first + PER_PAGE + 1])
    if request.method == "POST":
        shown = _posted(request, ippool)
        if _saved(request, ippool, shown):
            return HttpResponseRedirect(request.get_full_path())
    else:
        shown = [
            EntryFormRow(str(entry.pk), entry, _form_texts(entry)) for entry in entries[:PER_PAGE]
        ]
        shown += [EntryFormRow(f"new{n}", None, dict.fromkeys(_NAMES, "")) for n in range(NEW)]
    return pages.page(
        request,
        "entry_rows.html",
        title=(gettext("Entries of %(ippool)s") % {"ippool": ippool.name}),
        opts=IPPool._meta,
        original=ippool,
        ippool=ippool,
        rows=shown,
        words=words,
        page=page,
        more=len(entries) > PER_PAGE,
        check_url=reverse("admin:claims_entry_check"),
        wrong=any(row.problems for row in shown),
    )


def _posted(request: HttpRequest, ippool: IPPool) -> list[EntryFormRow]:
    """The rows that came back; one whose entry is gone meanwhile becomes a new one."""
    prefixes = [name.removesuffix("-mac") for name in request.POST if name.endswith("-mac")][:_MOST]
    ids = [number for prefix in prefixes if (number := lists.number(prefix))]
    entries_by_id = scoped.rows(request, Entry).filter(ippool=ippool).in_bulk(ids)
    return [
        EntryFormRow(
            prefix,
            entries_by_id.get(lists.number(prefix)),
            {name: request.POST.get(f"{prefix}-{name}", "").strip() for name in _NAMES},
            remove=f"{prefix}-remove" in request.POST,
        )
        for prefix in prefixes
    ]


def _saved(request: HttpRequest, ippool: IPPool, shown: list[EntryFormRow]) -> bool:
    remaining_rows = [
        row for row in shown if not row.remove and not (row.entry is None and row.is_empty)
    ]
    changed = [row for row in remaining_rows if row.is_changed]
    for row in changed:
        row.spec, problems = form.read(row.texts, ippool)
        row.problems = [pages.sentence(problem.message) for problem in problems]
    if any(row.problems for row in changed):
        return False
    gone = [row.entry.pk for row in shown if row.remove and row.entry is not None]
    if gone:
        pages.require(request, "claims.delete_entry")
    try:
        with transaction.atomic():
            saved = _store(request, ippool, changed, gone)
    except errors.IpamError as error:
        messages.error(request, pages.sentence(error.message))
        return False
    if saved or gone:
        messages.success(request, _saved_message(len(saved), len(gone)))
        form.warn(request, saved)
    return True


def _store(
    request: HttpRequest, ippool: IPPool, changed: list[EntryFormRow], gone: list[int]
) -> list[Entry]:
    author = pages.author(request)
    if gone:
        services.delete(gone, author=author)
    saved = [
        services.change(row.entry.pk, row.spec, author=author)
        for row in changed
        if row.entry is not None and row.spec is not None
    ]
    new = [row.spec for row in changed if row.entry is None and row.spec is not None]
    return saved + (form.add_all(request, ippool, new) if new else [])


def _saved_message(saved: int, gone: int) -> str:
    parts = [(gettext("%(saved)s saved") % {"saved": saved})] * bool(saved) + [
        (gettext("%(gone)s deleted") % {"gone": gone})
    ] * bool(gone)
    return gettext("Entries: %(parts)s.") % {"parts": ", ".join(parts)}
