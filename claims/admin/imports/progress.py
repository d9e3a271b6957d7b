"""Progress of an import, for its page and for the script that polls it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext

from claims.admin.imports import display
from claims.imports import progress
from claims.models import VMImport
from pools.platform import database
from pools.platform.admin import display as admin_display


def progress_values(vm_import: VMImport) -> dict[str, Any]:
    """Return `{"status", "working", "percent", "text"}`; percent is None if the number of rows is unknown."""
    import_progress = progress.import_progress(vm_import, database.now())
    return {
        "status": vm_import.status,
        "working": progress.is_working(vm_import),
        "percent": import_progress.percent,
        "text": _progress_text(vm_import, import_progress),
    }


def _progress_text(vm_import: VMImport, import_progress: progress.ImportProgress) -> str:
    if vm_import.status == "queued":
        return gettext("Waiting for a worker.")
    done = admin_display.digits(import_progress.done)
    text = (
        (gettext("%(done)s rows") % {"done": done})
        if import_progress.total is None
        else (
            gettext("%(done)s of %(total)s rows")
            % {"done": done, "total": admin_display.digits(import_progress.total)}
        )
    )
    if not progress.is_working(vm_import):
        return f"{str(display.STATUS_LABELS[vm_import.status]).capitalize()}."
    if import_progress.total and (
        import_progress.done >= import_progress.total
        or (vm_import.status == "committing" and not import_progress.done)
    ):
        return gettext("%(text)s; validating the rows") % {"text": text}
    if import_progress.remaining is None:
        return text
    return gettext("%(text)s, about %(remaining)s left") % {
        "text": text,
        "remaining": admin_display.duration(max(import_progress.remaining, 1)),
    }


def view(_request: HttpRequest, vm_import: VMImport) -> HttpResponse:
    return JsonResponse(progress_values(vm_import))
