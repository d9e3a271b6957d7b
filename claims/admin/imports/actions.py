"""What is done with an import by the buttons of its page: each calls one service."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext

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


def take(request: HttpRequest, vm_import: VMImport) -> HttpResponseBase:
    """Back to where the button stands, with a message of what it did or why it did not."""
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        raise BadRequest(gettext("There is no such action."))
    with pages.errors_as_messages(request):
        action(request, vm_import)
    here = request.get_full_path()
    row = _number(request)
    return HttpResponseRedirect(f"{here}#row-{row}" if row else here)


def _number(request: HttpRequest) -> int:
    return lists.number(request.POST.get("row", ""))


def _row(request: HttpRequest) -> int:
    number = _number(request)
    if not 0 < number < 1 << 31:
        raise errors.NotFound(gettext("There is no such row."))
    return number


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"author": pages.author(request), "user": request.user}


def _correct(request: HttpRequest, vm_import: VMImport) -> None:
    """What was typed is kept as the row's, right or wrong: the row says what is still wrong."""
    post_data = request.POST
    values: dict[str, Any] = {
        name: post_data[name][: corrections.MOST_IPS * 100]
        for name in corrections.COLUMNS
        if name in post_data
    }
    if "ips" in values:
        values["ips"] = values["ips"].replace(",", " ").split()[: corrections.MOST_IPS]
    row = corrections.correct_row(vm_import.pk, _row(request), values, **_who(request))
    if row.verdict not in {"conflict", "refused"}:
        messages.success(
            request,
            (gettext("Row %(row)s is %(verdict)s now.") % {"row": row.row, "verdict": row.verdict}),
        )
        return
    still = gettext("still in conflict") if row.verdict == "conflict" else gettext("still refused")
    why = pages.sentence(row.reasons[0]["message"]) if row.reasons else ""
    messages.warning(
        request,
        (
            gettext("Row %(row)s is %(still)s. %(why)s")
            % {"row": row.row, "still": still, "why": why}
        ),
    )


def _skip(request: HttpRequest, vm_import: VMImport) -> None:
    corrections.skip_rows(vm_import.pk, [_row(request)], skipped=True, **_who(request))


def _unskip(request: HttpRequest, vm_import: VMImport) -> None:
    corrections.skip_rows(vm_import.pk, [_row(request)], skipped=False, **_who(request))


def _free(request: HttpRequest, vm_import: VMImport) -> None:
    row = corrections.assign_free_addresses(vm_import.pk, _row(request), **_who(request))
    messages.success(
        request,
        (gettext("Row %(row)s gets %(ips)s.") % {"row": row.row, "ips": ", ".join(row.ips)}),
    )


def _missing(request: HttpRequest, vm_import: VMImport) -> None:
    done = corrections.assign_missing_families(vm_import.pk, **_who(request))
    messages.success(
        request, (gettext("Completed: %(counts)s.") % {"counts": display.counts_text(done.counts)})
    )


def _check(request: HttpRequest, vm_import: VMImport) -> None:
    done = drafts.revalidate(vm_import.pk, **_who(request))
    messages.success(
        request,
        (
            gettext("Revalidated against the current register: %(counts)s.")
            % {"counts": display.counts_text(done.counts)}
        ),
    )


def _commit(request: HttpRequest, vm_import: VMImport) -> None:
    skip_bad = request.POST.get("skip_bad") == "true"
    done = drafts.commit(vm_import.pk, skip_bad=skip_bad, **_who(request))
    if done.status == Status.COMMITTING:
        tasks.ring(done.pk)
    else:
        messages.success(
            request,
            (gettext("Committed: %(counts)s.") % {"counts": display.counts_text(done.counts)}),
        )


def _undo(request: HttpRequest, vm_import: VMImport) -> None:
    done = drafts.undo(vm_import.pk, **_who(request))
    if done.undo_wanted:
        tasks.ring(done.pk)
        messages.success(request, gettext("A worker is undoing the import."))
        return
    messages.success(request, gettext("The register is as it was before the import."))


def _cancel(request: HttpRequest, vm_import: VMImport) -> None:
    done = drafts.cancel(vm_import.pk, **_who(request))
    outcome = (
        gettext("was cancelled")
        if done.status == Status.CANCELLED
        else gettext("ends as soon as its worker sees it")
    )
    messages.success(
        request, (gettext("The import %(outcome)s; nothing is written.") % {"outcome": outcome})
    )


def _wave(request: HttpRequest, vm_import: VMImport) -> None:
    """Its VMs into a new wave when one is named, else into one that there is."""
    pages.require(request, "claims.change_wave", namespaces.EVERY_NAMESPACE)
    author = pages.author(request)
    name = request.POST.get("wave_name", "").strip()
    with transaction.atomic():
        if name:
            pages.require(request, "claims.add_wave")
            wave = waves.create(vm_import.cluster, name, author=author)
        else:
            wave = waves.get(lists.number(request.POST.get("wave", "")))
            if wave.cluster_id != vm_import.cluster_id:
                raise errors.NotFound(
                    gettext("%(cluster)s has no such wave.") % {"cluster": vm_import.cluster}
                )
        added = waves.add_import(wave.pk, vm_import, author=author)
    link = admin_display.link(admin_display.url_of(wave), wave.name)
    messages.success(
        request, format_html("The wave {} has {} more VMs.", link, admin_display.digits(added))
    )


_ACTIONS = {
    "correct": _correct,
    "skip": _skip,
    "unskip": _unskip,
    "free": _free,
    "missing": _missing,
    "check": _check,
    "commit": _commit,
    "undo": _undo,
    "cancel": _cancel,
    "wave": _wave,
}
