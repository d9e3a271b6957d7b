"""The page of an import: its effect, its rows with their reasons and corrections, and the buttons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from pools import tasks
from pools.admin.register_imports import display
from pools.core import errors
from pools.models import RegisterImport, RegisterRow
from pools.models.register_imports import ImportStatus as Status
from pools.models.register_imports import RegisterRowStatus
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages
from pools.register.imports import drafts, search

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PER_PAGE = 50
_CANCELLABLE = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)


def view(request: HttpRequest, register_import: RegisterImport) -> HttpResponse:
    if request.method == "POST":
        pages.require(request, "pools.change_registerimport")
        return _perform(request, register_import)
    question = _QUESTIONS.get((request.GET.get("ask", ""), register_import.status))
    if question is not None:
        pages.require(request, "pools.change_registerimport")
        return question(request, register_import)
    shown = display.progress_values(register_import)
    has_rows = not shown["working"] and register_import.status not in {
        Status.FAILED,
        Status.CANCELLED,
    }
    may_change = request.user.has_perm("pools.change_registerimport")
    drafted = register_import.status == Status.DRAFTED
    effect = _effect(register_import)
    return pages.page(
        request,
        "register_import.html",
        title=_name(register_import),
        opts=RegisterImport._meta,
        original=register_import,
        register_import=register_import,
        state=display.import_status_badge(register_import),
        format=display.format_name(register_import),
        progress=shown if shown["working"] else None,
        progress_url=reverse("admin:pools_registerimport_progress", args=[register_import.pk]),
        may_cancel=may_change and register_import.status in _CANCELLABLE,
        may_change=may_change and drafted,
        may_undo=may_change
        and register_import.status == Status.COMMITTED
        and not register_import.undo_wanted
        and effect["writes"] > 0,
        drafted=drafted,
        effect=effect,
        listed=_rows(request, register_import) if has_rows else None,
        call=f"register-imports/{register_import.pk}/",
    )


def progress(_request: HttpRequest, register_import: RegisterImport) -> HttpResponse:
    return JsonResponse(display.progress_values(register_import))


def _name(register_import: RegisterImport) -> str:
    return register_import.file_name or gettext("Register import %(number)s") % {
        "number": register_import.pk
    }


def _effect(register_import: RegisterImport) -> dict[str, int]:
    """Return the numbers of rows by status, and of rows that a commit writes or leaves out."""
    counts = dict.fromkeys(RegisterRowStatus.values, 0) | register_import.counts
    return {
        **counts,
        "writes": counts["new"] + counts["changed"],
        "bad": counts["conflict"] + counts["refused"],
    }


# --- rows -----------------------------------------------------------------------------------------


def _rows(request: HttpRequest, register_import: RegisterImport) -> dict[str, Any]:
    """Return one page of the filtered rows, with the chips that filter them."""
    status = request.GET.get("status", "")
    status = status if status in RegisterRowStatus.values else ""
    text = request.GET.get("q", "").replace("\0", "").strip()
    after = lists.parse_id(request.GET.get("after", ""))
    rows: QuerySet[RegisterRow] = RegisterRow.objects.filter(register_import=register_import)
    if status:
        rows = rows.filter(status=status)
    if text:
        rows = search.matching_rows(rows, text)
    rows = rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")
    page = list(rows[: PER_PAGE + 1])
    query = {"status": status, "q": text}
    more = page[PER_PAGE - 1].number if len(page) > PER_PAGE else 0
    return {
        "rows": [_line(row) for row in page[:PER_PAGE]],
        "chips": list(_chips(register_import, status, text)),
        "search_text": text,
        "status": status,
        "after": after,
        "first": _url(register_import, **query) if after else "",
        "more": _url(register_import, **query, after=more) if more else "",
        "here": _url(register_import, **query, after=after),
    }


def _url(register_import: RegisterImport, **query: Any) -> str:
    parameters = {name: value for name, value in query.items() if value}
    return reverse("admin:pools_registerimport_change", args=[register_import.pk], query=parameters)


def _chips(register_import: RegisterImport, chosen: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield a chip for all rows, and one for each status that a row has."""
    yield {
        "name": gettext("All"),
        "count": sum(register_import.counts.values()),
        "url": _url(register_import, q=text),
        "chosen": not chosen,
    }
    for status in RegisterRowStatus.values:
        count = register_import.counts.get(status, 0)
        if count or status == chosen:
            yield {
                "badge": display.row_status_badge(status),
                "count": count,
                "url": _url(register_import, q=text, status=status),
                "chosen": status == chosen,
            }


_KEYS = {"prefix": ("prefix", "mask"), "address": ("address",), "range": ("first", "last")}


def _line(row: RegisterRow) -> dict[str, Any]:
    keys = _KEYS[row.kind]
    place = "-".join(filter(None, (row.texts.get(name, "") for name in keys if name != "mask")))
    return {
        "row": row,
        "status": display.row_status_badge(row.status),
        "place": place if row.first is None else _place(row),
        "target": row.get_target_display() if row.target else "",
        "space": row.space_name,
        "bad": row.status in {RegisterRowStatus.CONFLICT, RegisterRowStatus.REFUSED},
        "differences": list(_differences(row)),
        "inputs": list(_inputs(row)),
    }


def _place(row: RegisterRow) -> str:
    if row.kind == "prefix":
        return str(row.cidr)
    return str(row.first) if row.first == row.last else f"{row.first}-{row.last}"


_LABELS: dict[str, StrOrPromise] = {
    "prefix": _("Prefix"),
    "mask": _("Mask"),
    "address": _("Address"),
    "first": _("First address"),
    "last": _("Last address"),
    "pool": _("Pool"),
    "holder": _("Holder"),
    "status": _("Status"),
    "vrf": "VRF",
    "cluster": _("Cluster"),
    "tenant": _("Tenant"),
    "description": _("Description"),
}


def _inputs(row: RegisterRow) -> Iterator[tuple[str, StrOrPromise, str]]:
    """Yield (field, label, text) of the texts of a row that can be corrected."""
    object_field = "pool" if row.kind == "prefix" else "holder"
    shared = ("status", "vrf", "cluster", "tenant", "description")
    for name in (*_KEYS[row.kind], object_field, *shared):
        yield name, _LABELS[name], row.texts.get(name, "")


def _differences(row: RegisterRow) -> Iterator[tuple[StrOrPromise, str, str]]:
    """Yield (label, registered value, new value) of each value that a row changes."""
    before = row.before
    if before is None:
        return
    details = before.get("details") or {}
    names = sorted({*details, *row.details})
    pairs: list[tuple[StrOrPromise, str, str]] = [
        (_("Description"), before.get("description") or "", row.description),
        *((name, details.get(name, ""), row.details.get(name, "")) for name in names),
    ]
    if "org" in before:
        pairs.insert(0, (_("Organization"), before["org"] or "", row.org))
    yield from (pair for pair in pairs if pair[1] != pair[2])


# --- buttons --------------------------------------------------------------------------------------


def _perform(request: HttpRequest, register_import: RegisterImport) -> HttpResponse:
    """Perform the action of a button and redirect back to it, with a message of its result."""
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise BadRequest(gettext("There is no such action."))
    with pages.errors_as_messages(request):
        action(request, register_import)
    here, row = request.get_full_path(), lists.parse_id(request.POST.get("row", ""))
    return HttpResponseRedirect(f"{here}#row-{row}" if row else here.partition("?ask=")[0])


def _number(request: HttpRequest) -> int:
    number = lists.parse_id(request.POST.get("row", ""))
    if not 0 < number < 1 << 31:
        raise errors.NotFound(gettext("There is no such row."))
    return number


def _correct(request: HttpRequest, register_import: RegisterImport) -> None:
    """Save the typed values of a row, also invalid ones: the row then shows what is still invalid."""
    values = {name: request.POST[name][:500] for name in drafts.CORRECTED if name in request.POST}
    row = drafts.correct_row(
        register_import.pk, _number(request), values, author=pages.author(request)
    )
    words = {"line": row.line, "status": RegisterRowStatus(row.status).label}
    text = gettext("Row %(line)s is %(status)s now.") % words
    if row.status in {RegisterRowStatus.CONFLICT, RegisterRowStatus.REFUSED}:
        reason = pages.sentence(row.reasons[0]["message"]) if row.reasons else ""
        messages.warning(request, f"{text} {reason}")
    else:
        messages.success(request, text)


def _skip(request: HttpRequest, register_import: RegisterImport) -> None:
    skipped = request.POST["action"] == "skip"
    drafts.skip_rows(
        register_import.pk, [_number(request)], skipped=skipped, author=pages.author(request)
    )


def _check(request: HttpRequest, register_import: RegisterImport) -> None:
    changed = drafts.revalidate(register_import.pk, author=pages.author(request))
    text = gettext("Revalidated against the current register: %(counts)s.")
    messages.success(request, text % {"counts": display.counts_text(changed.counts)})


def _commit(request: HttpRequest, register_import: RegisterImport) -> None:
    skip_bad = request.POST.get("skip_bad") == "true"
    changed = drafts.commit(register_import.pk, skip_bad=skip_bad, author=pages.author(request))
    if changed.status == Status.COMMITTING:
        tasks.notify_register_worker(changed.pk)
        return
    text = gettext("Committed: %(counts)s.")
    messages.success(request, text % {"counts": display.counts_text(changed.counts)})


def _undo(request: HttpRequest, register_import: RegisterImport) -> None:
    changed = drafts.undo(register_import.pk, author=pages.author(request))
    if changed.undo_wanted:
        tasks.notify_register_worker(changed.pk)
        messages.success(request, gettext("A worker is undoing the import."))
        return
    messages.success(request, gettext("The import was undone."))


def _cancel(request: HttpRequest, register_import: RegisterImport) -> None:
    drafts.cancel(register_import.pk, author=pages.author(request))
    messages.success(request, gettext("The import is cancelled; nothing is written."))


_ACTIONS: dict[str, Callable[[HttpRequest, RegisterImport], None]] = {
    "correct": _correct,
    "skip": _skip,
    "unskip": _skip,
    "check": _check,
    "commit": _commit,
    "undo": _undo,
    "cancel": _cancel,
}


def _undo_page(request: HttpRequest, register_import: RegisterImport) -> HttpResponse:
    """Return the page that says what undoing removes, before it does."""
    effect, effects = _effect(register_import), []
    if new := effect["new"]:
        text = ngettext(
            "%(number)s container, pool, range or address that the import created is removed.",
            "%(number)s containers, pools, ranges and addresses that the import created are removed.",
            new,
        )
        effects.append(text % {"number": admin_display.digits(new)})
    if changed := effect["changed"]:
        text = ngettext(
            "%(number)s changed object gets its previous values.",
            "%(number)s changed objects get their previous values.",
            changed,
        )
        effects.append(text % {"number": admin_display.digits(changed)})
    effects.append(
        gettext("The import cannot be undone while somebody else holds addresses in its pools.")
    )
    return pages.confirmation(
        request,
        register_import,
        title=gettext("Undo %(name)s?") % {"name": _name(register_import)},
        effects=effects,
        button=gettext("Undo the import"),
        action="undo",
    )


def _discard_page(request: HttpRequest, register_import: RegisterImport) -> HttpResponse:
    rows = admin_display.digits(sum(register_import.counts.values()))
    return pages.confirmation(
        request,
        register_import,
        title=gettext("Discard the draft of %(name)s?") % {"name": _name(register_import)},
        effects=[
            gettext("Rows that are deleted, with their corrections: %(rows)s.") % {"rows": rows},
            gettext("Nothing was written to the register."),
        ],
        button=gettext("Discard draft"),
        action="cancel",
    )


# By the parameter `ask` and the status of the import: the page that asks before an action.
_QUESTIONS: dict[tuple[str, str], Callable[[HttpRequest, RegisterImport], HttpResponse]] = {
    ("undo", Status.COMMITTED): _undo_page,
    ("discard", Status.DRAFTED): _discard_page,
}
