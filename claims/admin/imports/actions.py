"""Actions of the buttons on an import's page; each calls one service."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext

from claims import tasks
from claims.access import namespaces
from claims.admin.imports import display
from claims.imports import corrections, drafts
from claims.models import VMImport
from claims.models.imports import Status
from claims.waves import waves
from pools.core import errors
from pools.platform.admin import display as admin_display
from pools.platform.admin import lists, pages


def perform(request: HttpRequest, vm_import: VMImport) -> HttpResponse:
    """Perform the action of a button and redirect back to it, with a message of its result."""
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise BadRequest(gettext("There is no such action."))
    with pages.errors_as_messages(request):
        action(request, vm_import)
    here = request.get_full_path()
    row = _row_number(request)
    return HttpResponseRedirect(f"{here}#row-{row}" if row else here)


def _row_number(request: HttpRequest) -> int:
    return lists.parse_id(request.POST.get("row", ""))


def _require_row_number(request: HttpRequest) -> int:
    number = _row_number(request)
    if not 0 < number < 1 << 31:
        raise errors.NotFound(gettext("There is no such row."))
    return number


def _actor(request: HttpRequest) -> dict[str, Any]:
    return {"author": pages.author(request), "user": request.user}


def _correct_row(request: HttpRequest, vm_import: VMImport) -> None:
    """Save the typed values of a row, also invalid ones: the row then shows what is still invalid."""
    post_data = request.POST
    values: dict[str, Any] = {
        name: post_data[name][: corrections.MOST_IPS * 100]
        for name in corrections.COLUMNS
        if name in post_data
    }
    if "ips" in values:
        values["ips"] = values["ips"].replace(",", " ").split()[: corrections.MOST_IPS]
    row = corrections.correct_row(
        vm_import.pk, _require_row_number(request), values, **_actor(request)
    )
    if row.status not in {"conflict", "refused"}:
        messages.success(
            request,
            gettext("Row %(row)s is %(status)s now.")
            % {"row": row.row, "status": display.ROW_STATUS_LABELS[row.status]},
        )
        return
    reason = pages.sentence(row.reasons[0]["message"]) if row.reasons else ""
    text = (
        gettext("Row %(row)s is still in conflict. %(reason)s")
        if row.status == "conflict"
        else gettext("Row %(row)s is still refused. %(reason)s")
    )
    messages.warning(request, text % {"row": row.row, "reason": reason})


def _skip_row(request: HttpRequest, vm_import: VMImport) -> None:
    corrections.skip_rows(
        vm_import.pk, [_require_row_number(request)], skipped=True, **_actor(request)
    )


def _unskip_row(request: HttpRequest, vm_import: VMImport) -> None:
    corrections.skip_rows(
        vm_import.pk, [_require_row_number(request)], skipped=False, **_actor(request)
    )


def _assign_free_address(request: HttpRequest, vm_import: VMImport) -> None:
    row = corrections.assign_free_addresses(
        vm_import.pk, _require_row_number(request), **_actor(request)
    )
    messages.success(
        request,
        (gettext("Row %(row)s has %(ips)s now.") % {"row": row.row, "ips": ", ".join(row.ips)}),
    )


def _assign_missing_addresses(request: HttpRequest, vm_import: VMImport) -> None:
    changed_import = corrections.assign_missing_families(vm_import.pk, **_actor(request))
    messages.success(
        request,
        (
            gettext("Completed: %(counts)s.")
            % {"counts": display.counts_text(changed_import.counts)}
        ),
    )


def _revalidate(request: HttpRequest, vm_import: VMImport) -> None:
    changed_import = drafts.revalidate(vm_import.pk, **_actor(request))
    messages.success(
        request,
        (
            gettext("Revalidated against the current register: %(counts)s.")
            % {"counts": display.counts_text(changed_import.counts)}
        ),
    )


def _commit_import(request: HttpRequest, vm_import: VMImport) -> None:
    skip_bad = request.POST.get("skip_bad") == "true"
    changed_import = drafts.commit(vm_import.pk, skip_bad=skip_bad, **_actor(request))
    if changed_import.status == Status.COMMITTING:
        tasks.notify_worker(changed_import.pk)
    else:
        messages.success(
            request,
            (
                gettext("Committed: %(counts)s.")
                % {"counts": display.counts_text(changed_import.counts)}
            ),
        )


def _undo_import(request: HttpRequest, vm_import: VMImport) -> None:
    changed_import = drafts.undo(vm_import.pk, **_actor(request))
    if changed_import.undo_wanted:
        tasks.notify_worker(changed_import.pk)
        messages.success(request, gettext("A worker is undoing the import."))
        return
    messages.success(request, gettext("The import was undone."))


def _cancel_import(request: HttpRequest, vm_import: VMImport) -> None:
    changed_import = drafts.cancel(vm_import.pk, **_actor(request))
    messages.success(
        request,
        gettext("The import was cancelled; nothing was written.")
        if changed_import.status == Status.CANCELLED
        else gettext("The import is being cancelled; nothing will be written."),
    )


def _add_to_wave(request: HttpRequest, vm_import: VMImport) -> None:
    """Add the import's VMs to a new wave if a name was entered, else to the selected wave."""
    pages.require(request, "claims.change_wave", namespaces.EVERY_NAMESPACE)
    author = pages.author(request)
    name = request.POST.get("wave_name", "").strip()
    with transaction.atomic():
        if name:
            pages.require(request, "claims.add_wave")
            wave = waves.create(vm_import.cluster, name, author=author)
        else:
            wave = waves.get(lists.parse_id(request.POST.get("wave", "")))
            if wave.cluster_id != vm_import.cluster_id:
                raise errors.NotFound(
                    gettext("The cluster %(cluster)s has no such wave.")
                    % {"cluster": vm_import.cluster}
                )
        added = waves.add_import(wave.pk, vm_import, author=author)
    link = admin_display.link(admin_display.url_of(wave), wave.name)
    text = ngettext(
        "{count} VM was added to the wave {wave}.",
        "{count} VMs were added to the wave {wave}.",
        added,
    )
    messages.success(request, format_html(text, count=admin_display.digits(added), wave=link))


_ACTIONS = {
    "correct": _correct_row,
    "skip": _skip_row,
    "unskip": _unskip_row,
    "free": _assign_free_address,
    "missing": _assign_missing_addresses,
    "check": _revalidate,
    "commit": _commit_import,
    "undo": _undo_import,
    "cancel": _cancel_import,
    "wave": _add_to_wave,
}
