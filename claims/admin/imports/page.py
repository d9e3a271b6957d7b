"""One import: what its rows would do, where they go, and what became of what was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.imports import actions, display, mapping, progress
from claims.core import address_requests
from claims.entries import ippools
from claims.imports import corrections, drafts, search, vm_status
from claims.models import ImportRow, VMImport, Wave
from claims.models.imports import ImportTarget, RowStatus, Status
from claims.networks import networks
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages

PER_PAGE = 50
_OPEN = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
# Reasons that stand in nobody's way.
_NOTES = frozenset({"prefix_added", "vm_name_changed", "repeated_row", "reserved_subnet"})
# What a file has that is no row: in words for one and for many.
_LEFT_OUT = {
    "blank": "blank line,blank lines",
    "header": "header that comes again,headers that come again",
    "template": "template,templates",
    "srm_placeholder": "placeholder of Site Recovery Manager,placeholders of Site Recovery Manager",
    "vcls": "vSphere Cluster Services VM,vSphere Cluster Services VMs",
    "guest_only_interface": "interface that only the guest has,interfaces that only the guest has",
}


def view(request: HttpRequest, vm_import: VMImport) -> HttpResponseBase:
    wrong = None
    if request.method == "POST":
        pages.require(request, "claims.change_vmimport")
        if request.POST.get("action") != "map":
            return actions.take(request, vm_import)
        with pages.told(request):
            wrong = mapping.save(request, vm_import)
        if not wrong:
            return HttpResponseRedirect(request.get_full_path())
    working = progress.words(vm_import)["working"]
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
        of=vm_import,
        state=display.status(vm_import),
        format=display.format_of(vm_import),
        everything=scoped.request_scope(request).everything,
        progress=progress.words(vm_import) if working else None,
        progress_url=reverse("admin:claims_vmimport_progress", args=[vm_import.pk]),
        may_cancel=may_change and vm_import.status in _OPEN,
        may_change=may_change and drafted,
        drafted=drafted,
        left_out=[
            (_LEFT_OUT.get(name, f"{name},{name}"), count)
            for name, count in vm_import.left_out.items()
        ],
        effect=_effect(vm_import),
        lacking=corrections.lacking(vm_import).count() if drafted and may_change else 0,
        groups=mapping.shown(request, vm_import, wrong) if drafted else None,
        listed=rows,
        waves=_waves(request, vm_import),
        **(
            _after(vm_import, may_change=may_change) if vm_import.status == Status.COMMITTED else {}
        ),
        call=f"imports/{vm_import.pk}/",
    )


def _effect(vm_import: VMImport) -> dict[str, Any]:
    """What writing it does, in numbers."""
    counts = dict.fromkeys(RowStatus.values, 0) | vm_import.counts
    return {
        **counts,
        "writes": counts["new"] + counts["changed"],
        "bad": counts["conflict"] + counts["refused"],
        "total": sum(counts.values()),
        "one": "IPAMClaim" if vm_import.target == ImportTarget.IPAMCLAIMS else "entry",
        "many": "IPAMClaims" if vm_import.target == ImportTarget.IPAMCLAIMS else "entries",
    }


# --- its rows -------------------------------------------------------------------------------------


def _rows(request: HttpRequest, vm_import: VMImport) -> dict[str, Any]:
    """One page of the rows that are chosen, with the chips that choose them."""
    chosen = request.GET.get("verdict", "")
    chosen = chosen if chosen in RowStatus.values else ""
    words = request.GET.get("q", "").replace("\0", "").strip()
    after = lists.number(request.GET.get("after", ""))
    rows: QuerySet[ImportRow] = drafts.rows_of(vm_import)
    if chosen:
        rows = rows.filter(verdict=chosen)
    if words:
        rows = search.matching_rows(rows, words)
    page = list(
        rows.filter(number__gt=min(after, (1 << 31) - 1)).order_by("number")[: PER_PAGE + 1]
    )
    query = {"verdict": chosen, "q": words}
    more = page[PER_PAGE - 1].number if len(page) > PER_PAGE else 0
    return {
        "rows": list(_shown(vm_import, page[:PER_PAGE])),
        "chips": list(_chips(vm_import, chosen, words)),
        "words": words,
        "verdict": chosen,
        "after": after,
        "first": _url(vm_import, **query) if after else "",
        "more": _url(vm_import, **query, after=more) if more else "",
        "here": _url(vm_import, **query, after=after),
    }


def _url(vm_import: VMImport, **query: Any) -> str:
    parameters = {name: value for name, value in query.items() if value}
    return reverse("admin:claims_vmimport_change", args=[vm_import.pk], query=parameters)


def _chips(vm_import: VMImport, chosen: str, words: str) -> Iterator[dict[str, Any]]:
    """All, and each verdict that a row has."""
    total = sum(vm_import.counts.values())
    yield {
        "name": gettext("All"),
        "count": total,
        "url": _url(vm_import, q=words),
        "chosen": not chosen,
    }
    for name in RowStatus.values:
        count = vm_import.counts.get(name, 0)
        if count or name == chosen:
            yield {
                "look": display.verdict(name),
                "count": count,
                "url": _url(vm_import, q=words, verdict=name),
                "chosen": name == chosen,
            }


def _shown(vm_import: VMImport, rows: list[ImportRow]) -> Iterator[dict[str, Any]]:
    standing: dict[int, str] = {}
    if vm_import.status == Status.COMMITTED:
        standing = vm_status.of_rows(vm_import, [row.number for row in rows])
    for row in rows:
        stands = standing.get(row.number)
        yield {
            "row": row,
            "verdict": display.verdict(row.verdict),
            "vm": row.vm or row.source_vm,
            "renamed": row.source_vm if row.vm and row.source_vm != row.vm else "",
            "mac": row.mac or row.source_mac,
            "ips": row.ips or row.source_ips,
            "namespace": row.namespace or row.source_namespace,
            "reasons": _reasons(row),
            "differences": display.differences(row),
            "standing": display.standing(stands) if stands else "",
            "choices": list(_choices(row)),
            "bad": row.verdict in {RowStatus.CONFLICT, RowStatus.REFUSED},
        }


def _choices(row: ImportRow) -> Iterator[tuple[str, str]]:
    """Each address of which the row has another of its family, with what the row has then."""
    if any(reason["code"] == address_requests.TOO_MANY for reason in row.reasons):
        for ip in row.ips:
            rest = [other for other in row.ips if (":" in other) != (":" in ip)]
            if len(rest) + 1 < len(row.ips):
                yield ip, ", ".join([ip, *rest])


def _reasons(row: ImportRow) -> list[dict[str, Any]]:
    """What is in the way first; what the file and the network say alike is told once."""
    reasons_by_message = {
        reason["message"]: reason for reason in reversed(row.reasons) if reason["code"] != "differs"
    }
    once = [
        reason
        for message, reason in reversed(reasons_by_message.items())
        if not any(other != message and other.endswith(message) for other in reasons_by_message)
    ]
    shown = [
        reason | {"note": reason["code"] in _NOTES or reason["code"].endswith("_set_aside")}
        for reason in once
    ]
    return sorted(shown, key=lambda reason: bool(reason["note"]))


# --- after it was written -------------------------------------------------------------------------


def _waves(request: HttpRequest, vm_import: VMImport) -> list[Wave] | None:
    """Those that its VMs can be put into; None for whoever may not."""
    may = request.user.has_perms(["claims.change_wave", namespaces.EVERY_NAMESPACE])
    if vm_import.status != Status.COMMITTED or not may:
        return None
    return list(Wave.objects.filter(cluster=vm_import.cluster_id).order_by("name")[: scoped.MOST])


def _after(vm_import: VMImport, *, may_change: bool) -> dict[str, Any]:
    counts = vm_status.counts(vm_import)
    written = vm_import.counts.get("new", 0) + vm_import.counts.get("changed", 0)
    follows = (
        ippools.writes_ippools(vm_import.cluster_id)
        if vm_import.target == ImportTarget.IPPOOL
        else networks.is_managed(vm_import.cluster)
    )
    return {
        "standings": [
            (display.standing(name), admin_display.digits(number))
            for name, number in counts.items()
            if number
        ],
        "may_undo": may_change and written > 0,
        "follows": follows,
    }
