"""The page of an import: its network mapping, its rows, and after the commit the status of its VMs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext, ngettext_lazy

from claims.access import namespaces
from claims.admin import scoped, tables
from claims.admin.imports import actions, display, mapping, progress
from claims.core import address_requests
from claims.entries import ippools
from claims.imports import corrections, drafts, search, vm_status
from claims.models import ImportRow, VMImport, Wave
from claims.models.imports import ImportTarget, RowStatus, Status
from claims.networks import networks
from pools.platform import database
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages

PER_PAGE = 50
_CANCELLABLE = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
# Reasons that do not make a row invalid.
_NOTE_CODES = frozenset({"prefix_added", "repeated_row", "reserved_subnet", "no_nad"})
_RENAMED = "vm_name_changed"  # shown by the name itself
# Lines of a file that are not imported: labels for one and for many.
_SKIPPED_LABELS: dict[str, Any] = {
    "blank": ngettext_lazy("%(number)s blank line", "%(number)s blank lines", "count"),
    "header": ngettext_lazy("%(number)s repeated header", "%(number)s repeated headers", "count"),
    "template": ngettext_lazy("%(number)s template", "%(number)s templates", "count"),
    "srm_placeholder": ngettext_lazy(
        "%(number)s placeholder of Site Recovery Manager",
        "%(number)s placeholders of Site Recovery Manager",
        "count",
    ),
    "vcls": ngettext_lazy(
        "%(number)s vSphere Cluster Services VM", "%(number)s vSphere Cluster Services VMs", "count"
    ),
    "guest_only_interface": ngettext_lazy(
        "%(number)s interface without a virtual NIC",
        "%(number)s interfaces without a virtual NIC",
        "count",
    ),
}


def view(request: HttpRequest, vm_import: VMImport) -> HttpResponse:
    mapping_errors = None
    if request.method == "POST":
        pages.require(request, "claims.change_vmimport")
        if request.POST.get("action") != "map":
            return actions.perform(request, vm_import)
        with pages.errors_as_messages(request):
            mapping_errors = mapping.save_mapping(request, vm_import)
        if not mapping_errors:
            return HttpResponseRedirect(request.get_full_path())
    question = _QUESTIONS.get((request.GET.get("ask", ""), vm_import.status))
    if question is not None:
        pages.require(request, "claims.change_vmimport")
        return question(request, vm_import)
    working = progress.progress_values(vm_import)["working"]
    rows = (
        None
        if working or vm_import.status in {Status.FAILED, Status.CANCELLED}
        else _rows(request, vm_import)
    )
    drafted = vm_import.status == Status.DRAFTED
    may_change = request.user.has_perm("claims.change_vmimport")
    return pages.page(
        request,
        "import_one.html",
        title=vm_import.file_name
        or (gettext("Import %(vm_import)s") % {"vm_import": vm_import.pk}),
        opts=VMImport._meta,
        original=vm_import,
        vm_import=vm_import,
        state=display.import_status_badge(vm_import),
        format=display.format_name(vm_import),
        everything=scoped.request_scope(request).everything,
        progress=progress.progress_values(vm_import) if working else None,
        progress_url=reverse("admin:claims_vmimport_progress", args=[vm_import.pk]),
        may_cancel=may_change and vm_import.status in _CANCELLABLE,
        may_change=may_change and drafted,
        drafted=drafted,
        skipped_lines=[_skipped_text(name, count) for name, count in vm_import.left_out.items()],
        effect=_commit_effect(vm_import),
        lacking=corrections.rows_lacking_family(vm_import).count() if drafted and may_change else 0,
        groups=mapping.mapping_context(request, vm_import, mapping_errors) if drafted else None,
        listed=rows,
        waves=_available_waves(request, vm_import),
        **(
            _committed_context(vm_import, may_change=may_change)
            if vm_import.status == Status.COMMITTED
            else {}
        ),
        call=f"imports/{vm_import.pk}/",
    )


def _undo_page(request: HttpRequest, vm_import: VMImport) -> HttpResponse:
    """Return the page that says what undoing deletes, before it does."""
    effect, effects = _commit_effect(vm_import), []
    if new := effect["new"]:
        text = ngettext(
            "%(number)s record that the import created is deleted.",
            "%(number)s records that the import created are deleted.",
            new,
        )
        effects.append(text % {"number": admin_display.digits(new)})
    if changed := effect["changed"]:
        text = ngettext(
            "%(number)s changed record gets its previous values.",
            "%(number)s changed records get their previous values.",
            changed,
        )
        effects.append(text % {"number": admin_display.digits(changed)})
    if _is_written_to_cluster(vm_import):
        text = gettext("The next sync writes these changes to %(cluster)s.")
        effects.append(text % {"cluster": vm_import.cluster.name})
    text = gettext(
        "The import cannot be undone while a VM runs with one of these records, or if one was"
        " changed afterwards."
    )
    return pages.confirmation(
        request,
        vm_import,
        title=gettext("Undo %(name)s?") % {"name": _name(vm_import)},
        effects=[*effects, text],
        button=gettext("Undo the import"),
        action="undo",
    )


def _discard_page(request: HttpRequest, vm_import: VMImport) -> HttpResponse:
    rows = admin_display.digits(sum(vm_import.counts.values()))
    return pages.confirmation(
        request,
        vm_import,
        title=gettext("Discard the draft of %(name)s?") % {"name": _name(vm_import)},
        effects=[
            gettext("Rows that are deleted, with their corrections: %(rows)s.") % {"rows": rows},
            gettext("Nothing was written to the register."),
        ],
        button=gettext("Discard draft"),
        action="cancel",
    )


# By the parameter `ask` and the status of the import: the page that asks before an action.
_QUESTIONS: dict[tuple[str, str], Callable[[HttpRequest, VMImport], HttpResponse]] = {
    ("undo", Status.COMMITTED): _undo_page,
    ("discard", Status.DRAFTED): _discard_page,
}


def _name(vm_import: VMImport) -> str:
    return vm_import.file_name or gettext("import %(number)s") % {"number": vm_import.pk}


def _skipped_text(name: str, count: int) -> str:
    number = admin_display.digits(count)
    if name not in _SKIPPED_LABELS:
        return f"{number} {name}"
    return str(_SKIPPED_LABELS[name] % {"count": count, "number": number})


def _commit_effect(vm_import: VMImport) -> dict[str, Any]:
    """Return the numbers of rows by status, and of rows that a commit writes or skips."""
    counts = dict.fromkeys(RowStatus.values, 0) | vm_import.counts
    is_claims = vm_import.target == ImportTarget.IPAMCLAIMS
    return {
        **counts,
        "writes": counts["new"] + counts["changed"],
        "bad": counts["conflict"] + counts["refused"],
        "total": sum(counts.values()),
        "kind_singular": "IPAMClaim" if is_claims else gettext("entry"),
        "kind_plural": "IPAMClaims" if is_claims else gettext("entries"),
    }


# --- its rows -------------------------------------------------------------------------------------


def _rows(request: HttpRequest, vm_import: VMImport) -> dict[str, Any]:
    """Return one page of the filtered rows, with the chips that filter them."""
    chosen_status = request.GET.get("status", "")
    chosen_status = chosen_status if chosen_status in RowStatus.values else ""
    search_text = request.GET.get("q", "").replace("\0", "").strip()
    after = lists.parse_id(request.GET.get("after", ""))
    rows: QuerySet[ImportRow] = drafts.draft_rows(vm_import)
    if chosen_status:
        rows = rows.filter(status=chosen_status)
    if search_text:
        rows = search.matching_rows(rows, search_text)
    rows = rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")
    with database.in_parallel():
        page = list(rows[: PER_PAGE + 1])
    query = {"status": chosen_status, "q": search_text}
    lines = list(_row_contexts(vm_import, page[:PER_PAGE]))
    more = page[PER_PAGE - 1].number if len(page) > PER_PAGE else 0
    return {
        "rows": lines,
        "shared_notes": _share_notes(lines),
        "renamed": any(line["renamed"] for line in lines),
        "chips": list(_chips(vm_import, chosen_status, search_text)),
        "search_text": search_text,
        "status": chosen_status,
        "after": after,
        "first": _url(vm_import, **query) if after else "",
        "more": _url(vm_import, **query, after=more) if more else "",
        "here": _url(vm_import, **query, after=after),
    }


def _url(vm_import: VMImport, **query: Any) -> str:
    parameters = {name: value for name, value in query.items() if value}
    return reverse("admin:claims_vmimport_change", args=[vm_import.pk], query=parameters)


def _chips(vm_import: VMImport, chosen_status: str, search_text: str) -> Iterator[dict[str, Any]]:
    """Yield a chip for all rows, and one for each status that a row has."""
    total = sum(vm_import.counts.values())
    yield {
        "name": gettext("All"),
        "count": total,
        "url": _url(vm_import, q=search_text),
        "chosen": not chosen_status,
    }
    for name in RowStatus.values:
        count = vm_import.counts.get(name, 0)
        if count or name == chosen_status:
            yield {
                "badge": display.row_status_badge(name),
                "count": count,
                "url": _url(vm_import, q=search_text, status=name),
                "chosen": name == chosen_status,
            }


def _row_contexts(vm_import: VMImport, rows: list[ImportRow]) -> Iterator[dict[str, Any]]:
    statuses: dict[int, str] = {}
    if vm_import.status == Status.COMMITTED:
        statuses = vm_status.row_statuses(vm_import, [row.number for row in rows])
    for row in rows:
        vm_status_name = statuses.get(row.number)
        yield {
            "row": row,
            "status": display.row_status_badge(row.status),
            "vm": row.vm or row.source_vm,
            "renamed": row.source_vm if row.vm and row.source_vm != row.vm else "",
            "mac": row.mac or row.source_mac,
            "ips": row.ips or row.source_ips,
            "namespace": row.namespace or row.source_namespace,
            "reasons": _reasons(row),
            "differences": display.differences(row),
            "vm_status": display.vm_status_badge(vm_status_name) if vm_status_name else "",
            "choices": list(_address_choices(row)),
            "bad": row.status in {RowStatus.CONFLICT, RowStatus.REFUSED},
        }


def _address_choices(row: ImportRow) -> Iterator[tuple[str, str]]:
    """Yield each address that the row could keep, if it has too many, with the addresses it has then."""
    if any(reason["code"] == address_requests.TOO_MANY for reason in row.reasons):
        for ip in row.ips:
            rest = [other for other in row.ips if (":" in other) != (":" in ip)]
            if len(rest) + 1 < len(row.ips):
                yield ip, ", ".join([ip, *rest])


def _reasons(row: ImportRow) -> list[dict[str, Any]]:
    """Return the reasons of a row, errors before notes; equal reasons of file and network appear once."""
    reasons_by_message = {
        reason["message"]: reason
        for reason in reversed(row.reasons)
        if reason["code"] not in {"differs", _RENAMED}
    }
    distinct_reasons = [
        reason
        for message, reason in reversed(reasons_by_message.items())
        if not any(other != message and other.endswith(message) for other in reasons_by_message)
    ]
    reason_rows = [
        reason | {"note": reason["code"] in _NOTE_CODES or reason["code"].endswith("_set_aside")}
        for reason in distinct_reasons
    ]
    return sorted(reason_rows, key=lambda reason: bool(reason["note"]))


def _share_notes(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return each note that several rows have, and how many; in the rows it is replaced by its number."""
    notes = [reason for line in lines for reason in line["reasons"] if reason["note"]]
    shared, numbers = tables.shared_texts(note["message"] for note in notes)
    for note in notes:
        note["number"] = numbers.get(note["message"], 0)
    return shared


# --- after the commit -----------------------------------------------------------------------------


def _available_waves(request: HttpRequest, vm_import: VMImport) -> list[Wave] | None:
    """Return the waves to which the import's VMs can be added; None if the user may not do that."""
    may_change_waves = request.user.has_perms(["claims.change_wave", namespaces.EVERY_NAMESPACE])
    if vm_import.status != Status.COMMITTED or not may_change_waves:
        return None
    return list(Wave.objects.filter(cluster=vm_import.cluster_id).order_by("name")[: scoped.MOST])


def _committed_context(vm_import: VMImport, *, may_change: bool) -> dict[str, Any]:
    counts = vm_status.status_counts(vm_import)
    written = vm_import.counts.get("new", 0) + vm_import.counts.get("changed", 0)
    return {
        "vm_statuses": [
            (display.vm_status_badge(name), admin_display.digits(number))
            for name, number in counts.items()
            if number
        ],
        "may_undo": may_change and written > 0,
        "follows": _is_written_to_cluster(vm_import),
    }


def _is_written_to_cluster(vm_import: VMImport) -> bool:
    """Return True if the next sync writes the records of the import to their cluster."""
    if vm_import.target == ImportTarget.IPPOOL:
        return ippools.writes_ippools(vm_import.cluster_id)
    return networks.is_managed(vm_import.cluster)
